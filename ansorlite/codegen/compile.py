"""From a loop-IR function to machine code: the module's text, LLVM's passes, the object file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import llvmlite.binding as llvm

from ansorlite.codegen import statements
from ansorlite.codegen.builder import Builder, Module
from ansorlite.codegen.context import Context, Place
from ansorlite.codegen.workspace import aligned, layout
from ansorlite.loops import printer
from ansorlite.loops.nodes import Buffer, Function, Role, Scope, Store
from ansorlite.loops.nodes import statements as statements_of
from ansorlite.loops.peel import peel
from ansorlite.loops.prepare import Parts, split
from ansorlite.target import Target


@dataclass(frozen=True)
class Object:
    """A compiled kernel: data only, so it can be pickled, kept and sent.

    The entry is a C function ``void entry(void **arguments)``: the addresses of the parameters in call order, then those
    of the workspace and of the block of what is prepared (both 64-byte aligned). Beside it, ``void entry_repeat(void
    **arguments, int64_t count)`` calls it in a row; and where ``prepared`` is not 0, ``void entry_prepare(void **arguments)``
    fills that block from the constants among the parameters, and must have run before the entry.

    Attributes:
        code: an object file.
        loops: the loop IR as text.
        llvm: the LLVM IR before optimisation.
        entry: the symbol of the entry.
        outputs: how many of the last parameters are written.
        workspace: bytes that a call needs for its temporaries.
        prepare_workspace: bytes that preparing needs for its own.
        prepared: bytes of what is prepared.
        unread: positions of the parameters that the entry itself does not read: their addresses may be anything.
        target: key of the target it is for.
        promotes: whether LLVM was left to find registers for sums that are kept in memory.
    """

    code: bytes
    loops: str
    llvm: str
    entry: str
    outputs: int
    workspace: int
    prepare_workspace: int
    prepared: int
    unread: tuple[int, ...]
    target: str
    promotes: bool

    @property
    def repeat(self) -> str:
        """The symbol of the function that calls the entry many times."""
        return f"{self.entry}_repeat"

    @property
    def prepare(self) -> str:
        """The symbol of the function that prepares, if anything is."""
        return f"{self.entry}_prepare"


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
        c.places[buffer] = Place(pointer, buffer.strides, 0, module.new_scope(), padded=inside is not None)
    c.workspace = _argument(b, count, max(1, plan.total(target.threads)))
    statements.emit(c, function.body)
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


@cache
def _initialize() -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()


@cache
def machine(target: Target) -> Any:
    """llvmlite's target machine for ``target``."""
    _initialize()
    backend = llvm.Target.from_triple(target.triple)
    return backend.create_target_machine(cpu=target.cpu, features=target.features, opt=3, reloc="pic", codemodel="default")


def optimise(text: str, target: Target, promotes: bool = False) -> Any:
    """The llvmlite module of ``text`` after LLVM's passes.

    They are few: the emitter itself hoists, shares and unrolls. Stack slots become registers, instructions take the form that
    instruction selection knows, empty blocks go.

    Args:
        promotes: run LLVM's whole pipeline, which keeps in a register what a loop adds to in memory.
    """
    module = llvm.parse_assembly(text, llvm.create_context())
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    options.loop_vectorization = options.slp_vectorization = options.loop_unrolling = False
    builder = llvm.create_pass_builder(machine(target), options)
    if promotes:
        builder.getModulePassManager().run(module, builder)
        return module
    passes = llvm.create_new_module_pass_manager()
    passes.add_sroa_pass()
    passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    passes.run(module, builder)
    return module


@contextmanager
def _without_strength_reduction() -> Iterator[None]:
    """Keep LLVM from reducing strength in loops, half of its time: the emitter's pointers step along with them already.

    The option holds for the whole process, so it is set back. (llvmlite lets one thread at a time into LLVM.)
    """
    llvm.set_option("ansorlite", "-disable-lsr=true")
    try:
        yield
    finally:
        llvm.set_option("ansorlite", "-disable-lsr=false")


def build(function: Function, target: Target) -> Object:
    """Compile ``function`` for ``target``."""
    parts = split(function)
    given = arguments(function, parts, target)
    module = Module(target)
    entry = "ansorlite_" + re.sub(r"\W", "_", function.name, flags=re.ASCII)
    workspace, prepare_workspace = emit(module, entry, peel(parts.main), given), 0
    module.define(f"{entry}_repeat", _REPEAT.replace("$entry", entry))
    if parts.prepare is not None:
        prepare_workspace = emit(module, f"{entry}_prepare", peel(parts.prepare), given)
    text, promotes = module.text(), adds_in_memory(function)
    optimised = optimise(text, target, promotes)
    with _without_strength_reduction():
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
    with _without_strength_reduction():
        return str(machine(target).emit_assembly(optimised))
