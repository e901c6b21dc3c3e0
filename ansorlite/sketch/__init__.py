"""Sketches: how they are derived, the programs that they stand for, and which of these to take untried."""

from typing import TYPE_CHECKING, Final

from ansorlite import lazy

if TYPE_CHECKING:
    from ansorlite.sketch.default import default_candidate
    from ansorlite.sketch.derivation import derive
    from ansorlite.sketch.program import lower

__all__ = ["default_candidate", "derive", "lower"]

_HOMES: Final = {
    "default_candidate": "ansorlite.sketch.default",
    "derive": "ansorlite.sketch.derivation",
    "lower": "ansorlite.sketch.program",
}

__getattr__, __dir__ = lazy.attributes(__name__, _HOMES)
