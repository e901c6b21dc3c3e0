"""From loop IR to machine code: the emitter of LLVM IR for all CPUs."""

from typing import TYPE_CHECKING, Final

from ansorlite import lazy

if TYPE_CHECKING:
    from ansorlite.codegen.compile import assembly
    from ansorlite.codegen.object import Object

__all__ = ["Object", "assembly"]

_HOMES: Final = {
    "Object": "ansorlite.codegen.object",
    "assembly": "ansorlite.codegen.compile",
}

__getattr__, __dir__ = lazy.attributes(__name__, _HOMES)
