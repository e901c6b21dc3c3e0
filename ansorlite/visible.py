"""Text that may reach a terminal. Names and errors come from models, databases and file names of other people, and a terminal
does what control characters in them say: everything that is printed, logged or raised is made visible first.
"""

from __future__ import annotations

import logging
import re
from typing import Final

#: Control characters but newline and tab; what turns the direction of writing; other ends of lines; halves of characters.
_HIDDEN: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\U000e0000-\U000e007f]"
)


def visible(text: str) -> str:
    r"""``text`` with escapes, as in Python's literals, for what a terminal would obey and a reader would not see.

    >>> print(visible("a\x1b[2Jb\u202ec"))
    a\x1b[2Jb\u202ec
    """
    return _HIDDEN.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


def logger(name: str) -> logging.Logger:
    """The logger of a module, whose messages are visible."""
    made = logging.getLogger(name)
    made.addFilter(_make_visible)
    return made


def _make_visible(record: logging.LogRecord) -> bool:
    record.msg, record.args = visible(record.getMessage()), ()
    return True
