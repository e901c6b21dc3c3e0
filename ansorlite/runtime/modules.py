"""The runtime's own small modules, from LLVM IR to object code: compiled once, kept for the processes to come."""

from __future__ import annotations

import llvmlite.binding as llvm

from ansorlite.cache import disk as caches
from ansorlite.cache.disk import default_cache
from ansorlite.codegen.machine import machine, optimise
from ansorlite.target import Target


def object_code(text: str, target: Target, *, optimised: bool = False) -> bytes:
    """The object file of a module, from the user's cache if it is there.

    Args:
        text: its LLVM IR.
        optimised: whether LLVM's passes run over it.
    """
    cache, key = default_cache(), caches.key("module", text, target, optimised)
    known = cache.get(key)
    if known is not None:
        return known
    module = optimise(text, target) if optimised else llvm.parse_assembly(text, llvm.create_context())
    made: bytes = machine(target).emit_object(module)
    cache.put(key, made)
    return made
