"""Sketches: how they are derived, and the programs that they stand for."""

from typing import TYPE_CHECKING, Final

from ansorlite import lazy

if TYPE_CHECKING:
    from ansorlite.sketch.derivation import derive
    from ansorlite.sketch.program import is_program, lower

__all__ = ["derive", "is_program", "lower"]

_HOMES: Final = {
    "derive": "ansorlite.sketch.derivation",
    "is_program": "ansorlite.sketch.program",
    "lower": "ansorlite.sketch.program",
}

__getattr__, __dir__ = lazy.attributes(__name__, _HOMES)
