"""Sketches: how they are derived, the programs that they stand for, and which of these to take untried."""

from typing import TYPE_CHECKING, Final

from ansorlite import lazy

if TYPE_CHECKING:
    from ansorlite.sketch.default import default_candidate, default_candidates
    from ansorlite.sketch.derivation import derive
    from ansorlite.sketch.program import is_program, lower

__all__ = ["default_candidate", "default_candidates", "derive", "is_program", "lower"]

_HOMES: Final = {
    "default_candidate": "ansorlite.sketch.default",
    "default_candidates": "ansorlite.sketch.default",
    "derive": "ansorlite.sketch.derivation",
    "is_program": "ansorlite.sketch.program",
    "lower": "ansorlite.sketch.program",
}

__getattr__, __dir__ = lazy.attributes(__name__, _HOMES)
