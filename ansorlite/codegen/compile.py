"""From a kernel module to machine code: the text of LLVM IR, LLVM's passes, the object file. The emitter of all CPUs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ansorlite.alignment import aligned
from ansorlite.codegen import matrix_tile, memory, statements, streaming
from ansorlite.codegen.builder import Builder, Module
from ansorlite.codegen.context import Context, Storage
from ansorlite.codegen.cpu import CPU
from ansorlite.codegen.limits import Limits
from ansorlite.codegen.machine import machine, optimise
from ansorlite.codegen.next_rows import next_rows
from ansorlite.codegen.object import Compiled, CompiledLaunch, DeviceObject, Object
from ansorlite.codegen.unroll import unroll
from ansorlite.codegen.workspace import layout
from ansorlite.llvm_option import options_for_emitted_code
from ansorlite.loops import printer
from ansorlite.loops.kernel_module import KernelModule, When
from ansorlite.loops.nodes import Buffer, For, Function, LoopKind, Role, Scope, Stmt, Store, children
from ansorlite.loops.nodes import statements as statements_of
from ansorlite.loops.visit import stores
from ansorlite.target import Target
from ansorlite.te.expr import Var
from ansorlite.te.traversal import free_vars
from ansorlite.te.words import WORD

#: LLVM's whole pipeline is run on functions of up to so many values: its time grows as their square where a reduction that is
#: unrolled adds to memory (docs/decisions/size-of-programs.md).
_PROMOTED: Final = 4000
#: Loops that are no loops in machine code.
_EXPANDED: Final = (LoopKind.UNROLLED, LoopKind.VECTORIZED)


@dataclass(frozen=True)
class Arguments:
    """What the functions of a kernel are called with: the addresses of its parameters, of the workspace, of what is prepared.

    Attributes:
        positions: of the kernel's parameters.
        prepared: offsets of what is prepared, in its block,
        prepared_bytes: and bytes of that block.
        temporaries: offsets of what launches of one time hand on, in the workspace,
        temporary_bytes: and bytes of it that these take.
    """

    positions: Mapping[Buffer, int]
    prepared: Mapping[Buffer, int]
    prepared_bytes: int
    temporaries: Mapping[Buffer, int]
    temporary_bytes: int


def arguments(module: KernelModule, target: Target) -> Arguments:
    """Of the functions of ``module``."""
    positions = {buffer: number for number, buffer in enumerate(module.params)}
    return Arguments(positions, *_in_a_block(module.prepared, target), *_in_a_block(module.temporaries, target))


def _in_a_block(buffers: Sequence[Buffer], target: Target) -> tuple[Mapping[Buffer, int], int]:
    """(offset of each, bytes of all). Each has room for one vector past its end, which loads may touch."""
    offsets: dict[Buffer, int] = {}
    end = 0
    for buffer in buffers:
        offsets[buffer] = end
        end += aligned(buffer.nbytes + target.vector_bytes)
    return offsets, end


def emit(module: Module, symbol: str, function: Function, given: Arguments) -> int:
    """Define ``symbol`` as ``function``; the bytes of its workspace."""
    target = module.target
    function = unroll(function, target)
    b = Builder(module, f"void @{symbol}(ptr noalias %arguments) #0")
    plan = layout(function, target)
    teams = target.threads > 1 and _has_parallel_loop(function)
    c = Context(b, target, plan, "", CPU, starts_teams=teams, last_readers=next_rows(function, target))
    needed = given.temporary_bytes + plan.total(target.threads)
    count = len(given.positions)
    block = _argument(b, count + 1, given.prepared_bytes) if given.prepared_bytes else ""
    workspace = _argument(b, count, max(1, needed)) if given.temporary_bytes else ""
    for buffer in function.params:
        inside = True
        if buffer in given.prepared:
            pointer = b.op(f"getelementptr i8, ptr {block}, i64 {given.prepared[buffer]}")
        elif buffer in given.temporaries:
            pointer = b.op(f"getelementptr i8, ptr {workspace}, i64 {given.temporaries[buffer]}")
        else:
            inside, pointer = False, _argument(b, given.positions[buffer], buffer.nbytes)
        words = not inside and buffer.dtype == WORD
        c.places[buffer] = place = Storage(pointer, buffer.strides, 0, module.new_scope(), padded=inside, unaligned=words)
        if inside and any(store.buffer is buffer for store in stores(function.body)):
            memory.zero_padding(b.op, b.do, place, buffer, buffer, target)
    if workspace:
        c.workspace = b.op(f"getelementptr i8, ptr {workspace}, i64 {given.temporary_bytes}")
    else:
        c.workspace = _argument(b, count, max(1, needed))
    statements.emit(c, function.body)
    streaming.fence(c)
    matrix_tile.release(c)
    b.do("ret void")
    module.define(symbol, b.text())
    return needed


def _has_parallel_loop(function: Function) -> bool:
    return any(isinstance(stmt, For) and stmt.kind is LoopKind.PARALLEL for stmt in statements_of(function.body))


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


def compile(module: KernelModule, target: Target, limits: Limits) -> Object:
    """Compile ``module`` for ``target``, a CPU.

    Raises:
        TargetError: no code is made for its architecture.
        ProgramSizeError: a function is beyond ``limits``.
    """
    given = arguments(module, target)
    text = Module(target, limits.values)
    entry = "ansorlite_" + re.sub(r"\W", "_", module.name, flags=re.ASCII)
    calls = _emit_all(text, entry, module, When.CALL, given)
    if not calls:  # of a module that only prepares
        text.define(entry, f"define void @{entry}(ptr %arguments) #0 {{\n  ret void\n}}")
    launches = (*_emit_all(text, f"{entry}_prepare", module, When.ONCE, given), *calls)
    text.define(f"{entry}_repeat", _REPEAT.replace("$entry", entry))
    promotes = text.values <= _PROMOTED and any(adds_in_place(launch.function.body) for launch in module.launches)
    llvm = text.text()
    optimised = optimise(llvm, target, promotes)
    with options_for_emitted_code(target.architecture):
        code = machine(target).emit_object(optimised)
    return Object(
        code,
        printer.module_text(module),
        llvm,
        module.outputs,
        launches,
        given.prepared_bytes,
        module.unread,
        target.key,
        entry,
        promotes,
    )


def _emit_all(text: Module, symbol: str, module: KernelModule, when: When, given: Arguments) -> list[CompiledLaunch]:
    """Define ``symbol`` as all launches of one time, one after another."""
    functions = module.at(when)
    if len(functions) == 1:
        return [CompiledLaunch(symbol, when, emit(text, symbol, functions[0], given))]
    if not functions:
        return []
    names = [f"{symbol}_{number}" for number in range(len(functions))]
    made = [CompiledLaunch(name, when, emit(text, name, each, given)) for name, each in zip(names, functions, strict=True)]
    calls = "\n".join(f"  call void @{name}(ptr %arguments)" for name in names)
    text.define(symbol, f"define void @{symbol}(ptr %arguments) #0 {{\n{calls}\n  ret void\n}}")
    return made


def adds_in_place(stmt: Stmt, innermost: Var | None = None) -> bool:
    """Whether a loop adds to one element in memory again and again, to which lowering gave no register.

    Args:
        innermost: the variable of the innermost loop around the statement that stays a loop.
    """
    match stmt:
        case For(var, _, kind, body):
            return adds_in_place(body, innermost if kind in _EXPANDED else var)
        case Store(buffer, indices):
            updates = stmt.role is Role.UPDATE and buffer.scope is not Scope.REGISTER
            return updates and innermost is not None and not any(innermost in free_vars(index) for index in indices)
    return any(adds_in_place(child, innermost) for child in children(stmt))


def assembly(compiled: Compiled, target: Target) -> str:
    """The machine code of ``compiled``, as people read it; of a device's, what its driver is given."""
    if isinstance(compiled, DeviceObject):
        return compiled.text
    assert isinstance(compiled, Object)
    optimised = optimise(compiled.llvm, target, compiled.promotes)
    with options_for_emitted_code(target.architecture):
        return str(machine(target).emit_assembly(optimised))
