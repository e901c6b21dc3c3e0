"""From a loop-IR function to machine code: the module's text, LLVM's passes, the object file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ansorlite.alignment import aligned
from ansorlite.codegen import statements, streaming
from ansorlite.codegen.builder import Builder, Module
from ansorlite.codegen.context import Context, Storage
from ansorlite.codegen.machine import machine, optimise
from ansorlite.codegen.object import Object
from ansorlite.codegen.workspace import layout
from ansorlite.llvm_option import without_strength_reduction
from ansorlite.loops import printer
from ansorlite.loops.fetch_ahead import fetch_ahead
from ansorlite.loops.interchange import interchange
from ansorlite.loops.nodes import Buffer, Function, Role, Scope, Store
from ansorlite.loops.nodes import statements as statements_of
from ansorlite.loops.outer_product import outer_product
from ansorlite.loops.peel import peel
from ansorlite.loops.prepare import Parts, split
from ansorlite.loops.transposing import transposing
from ansorlite.target import Target
from ansorlite.te.words import WORD

#: LLVM's whole pipeline is run on functions of up to so many values: its time grows as their square where a reduction that is
#: unrolled adds to memory (docs/decisions/size-of-programs.md).
_PROMOTED: Final = 4000


@dataclass(frozen=True)
class Arguments:
    """What the functions of one kernel are called with.

    Attributes:
        positions: of the kernel's parameters.
        offsets: of what is prepared, in its block.
        nbytes: of that block.
    """

    positions: Mapping[Buffer, int]
    offsets: Mapping[Buffer, int]
    nbytes: int


def arguments(function: Function, parts: Parts, target: Target) -> Arguments:
    """Of ``function``, cut into ``parts``. What is prepared has room for one vector past its end, which loads may touch."""
    offsets: dict[Buffer, int] = {}
    end = 0
    for buffer in parts.prepared:
        offsets[buffer] = end
        end += aligned(buffer.nbytes + target.vector_bytes)
    return Arguments({buffer: number for number, buffer in enumerate(function.params)}, offsets, end)


def emit(module: Module, entry: str, function: Function, given: Arguments) -> int:
    """Define ``entry`` as ``function``; the bytes of its workspace."""
    target = module.target
    b = Builder(module, f"void @{entry}(ptr noalias %arguments) #0")
    plan = layout(function, target)
    c = Context(b, target, plan, workspace="")
    count = len(given.positions)
    block = _argument(b, count + 1, given.nbytes) if given.nbytes else ""
    for buffer in function.params:
        inside = given.offsets.get(buffer)
        if inside is None:
            pointer = _argument(b, given.positions[buffer], buffer.nbytes)
        else:
            pointer = b.op(f"getelementptr i8, ptr {block}, i64 {inside}")
        words = inside is None and buffer.dtype == WORD
        c.places[buffer] = Storage(pointer, buffer.strides, 0, module.new_scope(), padded=inside is not None, unaligned=words)
    c.workspace = _argument(b, count, max(1, plan.total(target.threads)))
    statements.emit(c, function.body)
    streaming.fence(c)
    b.do("ret void")
    module.define(entry, b.text())
    return plan.total(target.threads)


def _argument(b: Builder, number: int, nbytes: int) -> str:
    slot = b.op(f"getelementptr ptr, ptr %arguments, i64 {number}")
    known = f"!nonnull {b.module.node('!{}')}, !dereferenceable {b.module.node(f'!{{i64 {nbytes}}}')}"
    return b.op(f"load ptr, ptr {slot}, align 8, {known}, !invariant.load {b.module.node('!{}')}")


_REPEAT = """define void @$entry_repeat(ptr %arguments, i64 %count) #0 {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %again ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %again, label %end
again:
  call void @$entry(ptr %arguments) noinline
  %next = add i64 %i, 1
  br label %loop
end:
  ret void
}"""


def _for_machines(function: Function, target: Target) -> Function:
    """What back ends do to loops first."""
    return transposing(outer_product(peel(interchange(fetch_ahead(function, target)))), target)


def build(function: Function, target: Target) -> Object:
    """Compile ``function`` for ``target``."""
    parts = split(function)
    given = arguments(function, parts, target)
    module = Module(target)
    entry = "ansorlite_" + re.sub(r"\W", "_", function.name, flags=re.ASCII)
    workspace, prepare_workspace = emit(module, entry, _for_machines(parts.main, target), given), 0
    module.define(f"{entry}_repeat", _REPEAT.replace("$entry", entry))
    if parts.prepare is not None:
        prepare_workspace = emit(module, f"{entry}_prepare", _for_machines(parts.prepare, target), given)
    text = module.text()
    promotes = adds_in_memory(function) and module.values <= _PROMOTED
    optimised = optimise(text, target, promotes)
    with without_strength_reduction():
        code = machine(target).emit_object(optimised)
    unread = tuple(number for buffer, number in given.positions.items() if buffer not in parts.main.params)
    loops = "\n\n".join(printer.text(part) for part in (parts.prepare, parts.main) if part is not None)
    sizes = (workspace, prepare_workspace, given.nbytes)
    return Object(code, loops, text, entry, function.outputs, *sizes, unread, target.key, promotes)


def adds_in_memory(function: Function) -> bool:
    """Whether a reduction adds to an element in memory, as the loops as written do: lowering gave it no registers."""
    return any(
        isinstance(node, Store) and node.role is Role.UPDATE and node.buffer.scope is not Scope.REGISTER
        for node in statements_of(function.body)
    )


def assembly(compiled: Object, target: Target) -> str:
    """The machine code of ``compiled``, as people read it."""
    optimised = optimise(compiled.llvm, target, compiled.promotes)
    with without_strength_reduction():
        return str(machine(target).emit_assembly(optimised))
