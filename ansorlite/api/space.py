"""What ``space=`` takes, resolved."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from ansorlite import spaces
from ansorlite.python_file import named

if TYPE_CHECKING:
    from ansorlite.spaces.builders import Given, SpaceBuilder

#: A function that schedules, several of them, an object that makes sketches, rules, or where one of these is.
Space: TypeAlias = "Given | str"


def space_of(given: Space | None) -> SpaceBuilder | None:
    """What makes the sketches of tasks; ``None`` for the derivation rules of their targets.

    Args:
        given: what the user gave; of a text ``"file.py:NAME"`` or ``"package.module:NAME"`` what is there. A file is run to get
            at it: what it does besides belongs under ``if __name__ == "__main__":``.

    Raises:
        ArgumentError: there is no such file, module or name, or it is no space.
    """
    if given is None:
        return None
    found: Any = named("a space", given) if isinstance(given, str) else given
    return spaces.builder_of(found)
