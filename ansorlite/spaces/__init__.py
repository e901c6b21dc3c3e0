"""Where the sketches of a task come from: derivation rules, or schedule functions and builders of the user's own."""

from typing import TYPE_CHECKING, Final

from ansorlite import lazy

if TYPE_CHECKING:
    from ansorlite.spaces.builders import Derived, builder_of, sketches_of
    from ansorlite.spaces.derivation import derive

__all__ = ["Derived", "builder_of", "derive", "sketches_of"]

_HOMES: Final = {
    "Derived": "ansorlite.spaces.builders",
    "builder_of": "ansorlite.spaces.builders",
    "derive": "ansorlite.spaces.derivation",
    "sketches_of": "ansorlite.spaces.builders",
}

__getattr__, __dir__ = lazy.attributes(__name__, _HOMES)
