"""From loop IR to machine code: one emitter of LLVM IR for every target."""

from typing import TYPE_CHECKING, Final

from ansorlite import lazy

if TYPE_CHECKING:
    from ansorlite.codegen.compile import assembly, build
    from ansorlite.codegen.object import Object

__all__ = ["Object", "assembly", "build"]

_HOMES: Final = {
    "Object": "ansorlite.codegen.object",
    "assembly": "ansorlite.codegen.compile",
    "build": "ansorlite.codegen.compile",
}

__getattr__, __dir__ = lazy.attributes(__name__, _HOMES)
