"""The backend that measures real programs: sketches, lowering, LLVM, and the runtime. Runs inside of the workers.

Those that build do without what loads, and those that run programs without what compiles: that is most of the package.
"""

from typing import TYPE_CHECKING, Final

from ansorlite import lazy

if TYPE_CHECKING:
    from ansorlite.measure.native.compiling import build, default
    from ansorlite.measure.native.loading import load

__all__ = ["build", "default", "load"]

_HOMES: Final = {
    "build": "ansorlite.measure.native.compiling",
    "default": "ansorlite.measure.native.compiling",
    "load": "ansorlite.measure.native.loading",
}

__getattr__, __dir__ = lazy.attributes(__name__, _HOMES)
