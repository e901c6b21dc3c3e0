"""Sketches, the rules that make them, and the programs that they stand for."""

from typing import TYPE_CHECKING, Final

from ansorlite import lazy

if TYPE_CHECKING:
    from ansorlite.sketch.program import is_program, lower

__all__ = ["is_program", "lower"]

_HOMES: Final = {
    "is_program": "ansorlite.sketch.program",
    "lower": "ansorlite.sketch.program",
}

__getattr__, __dir__ = lazy.attributes(__name__, _HOMES)
