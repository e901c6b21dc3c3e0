"""One program of a task: compiled to object code, as bytes, and as a callable.

Who loads what was compiled before does without what compiles.
"""

from typing import TYPE_CHECKING, Final

from ansorlite import lazy

if TYPE_CHECKING:
    from ansorlite.programs.build import build_candidate

__all__ = ["build_candidate"]

_HOMES: Final = {"build_candidate": "ansorlite.programs.build"}

__getattr__, __dir__ = lazy.attributes(__name__, _HOMES)
