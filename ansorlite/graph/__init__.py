"""A model as a graph, cut into tasks, and as one callable."""

from typing import TYPE_CHECKING, Final

from ansorlite import lazy

if TYPE_CHECKING:
    from ansorlite.graph.hybrid import HybridModel, compile_any
    from ansorlite.graph.open_executable import OpenExecutable
    from ansorlite.graph.open_model import OpenModel

__all__ = ["HybridModel", "OpenExecutable", "OpenModel", "compile_any"]

#: What a model that comes from the cache does without.
_HOMES: Final = {
    "HybridModel": "ansorlite.graph.hybrid",
    "OpenExecutable": "ansorlite.graph.open_executable",
    "OpenModel": "ansorlite.graph.open_model",
    "compile_any": "ansorlite.graph.hybrid",
}

__getattr__, __dir__ = lazy.attributes(__name__, _HOMES)
