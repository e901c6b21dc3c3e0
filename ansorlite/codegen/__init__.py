"""From loop IR to machine code: one emitter of LLVM IR for every target."""

from ansorlite.codegen.compile import Object, assembly, build

__all__ = ["Object", "assembly", "build"]
