"""From the functions of a kernel module to LLVM IR: each loop over blocks becomes a kernel of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ansorlite.codegen import statements
from ansorlite.codegen.builder import Builder, Module
from ansorlite.codegen.context import Context, Storage
from ansorlite.codegen.nvptx import bulk
from ansorlite.codegen.nvptx.dialect import ALIGNED, Nvptx
from ansorlite.codegen.nvptx.tensor_maps import FEATURE, NBYTES
from ansorlite.codegen.workspace import WorkspaceLayout
from ansorlite.loops.nodes import Alloc, Block, Buffer, For, Function, LoopKind, Scope, Stmt
from ansorlite.loops.nodes import statements as statements_of
from ansorlite.loops.phases import threads_of
from ansorlite.loops.visit import loads, stores, trips


@dataclass(frozen=True)
class GpuKernel:
    """
    Attributes:
        symbol: of the kernel.
        buffers: that its parameters are the addresses of.
        scratch: one more of these, behind them, for what blocks of the kernel keep in memory besides.
        grid: blocks.
        threads: of a block.
        shared: bytes of a block's shared memory.
    """

    symbol: str
    buffers: tuple[Buffer, ...]
    scratch: tuple[Buffer, ...]
    grid: int
    threads: int
    shared: int


def parts(function: Function) -> tuple[tuple[Buffer, ...], tuple[Stmt, ...]]:
    """The temporaries that the kernels of a function hand on, and what each of the kernels does."""
    temporaries: list[Buffer] = []
    found: list[Stmt] = []

    def visit(stmt: Stmt) -> None:
        match stmt:
            case Alloc(buffer, body) if buffer.scope is Scope.GLOBAL:
                temporaries.append(buffer)
                visit(body)
            case Block(body):
                for part in body:
                    visit(part)
            case _:
                found.append(stmt)

    visit(function.body)
    return tuple(temporaries), tuple(found)


def emit(module: Module, symbol: str, stmt: Stmt) -> GpuKernel:
    """Define ``symbol`` as a kernel that does ``stmt``: a loop over blocks, else what one thread does alone.

    Raises:
        TargetError: it is no program for a GPU.
    """
    buffers = tuple(outer_buffers(stmt))
    stored, loaded = {store.buffer for store in stores(stmt)}, {load.buffer for load in loads(stmt)}
    block = stmt if isinstance(stmt, For) and stmt.kind is LoopKind.BLOCK else None
    parameters = [f"ptr {_promises(buffer, stored, loaded)}%p{number}" for number, buffer in enumerate(buffers)]
    gpu = module.target.gpu
    planned = None if block is None or gpu is None else bulk.plan(block, gpu, threads_of(block))
    scratch: tuple[Buffer, ...] = ()
    if block is not None and planned is not None and planned.maps:
        module.need(FEATURE)
        parameters.append(f"ptr noalias align {ALIGNED} %maps")
        # One of each map for each block, and what is missing to a multiple of their size.
        scratch = (Buffer("maps", ((trips(block) * len(planned.maps) + 1) * NBYTES,), "uint8", Scope.GLOBAL),)
    b = Builder(module, f"void @{symbol}({', '.join(parameters)}) #0")
    dialect = Nvptx(b, block, planned, "%maps")
    c = Context(b, module.target, WorkspaceLayout(), "null", dialect)
    for number, buffer in enumerate(buffers):
        c.places[buffer] = Storage(f"%p{number}", buffer.strides, 0, module.new_scope(), padded=False, aligned=ALIGNED)
    statements.emit(c, stmt)
    b.do("ret void")
    module.define(symbol, b.text())
    module.annotate("nvvm.annotations", f'!{{ptr @{symbol}, !"kernel", i32 1}}')
    sizes = ", ".join(f'!"reqntid{axis}", i32 {count}' for axis, count in (("x", dialect.threads), ("y", 1), ("z", 1)))
    module.annotate("nvvm.annotations", f"!{{ptr @{symbol}, {sizes}}}")
    return GpuKernel(symbol, buffers, scratch, 1 if block is None else trips(block), dialect.threads, dialect.shared)


def outer_buffers(stmt: Stmt) -> Iterator[Buffer]:
    """What ``stmt`` uses, but does not allocate, in the order of first use."""
    inside = {node.buffer for node in _allocations(stmt)}
    accesses = [*(load.buffer for load in loads(stmt)), *(store.buffer for store in stores(stmt))]
    return iter(dict.fromkeys(buffer for buffer in accesses if buffer not in inside))


def _allocations(stmt: Stmt) -> Iterator[Alloc]:
    return (node for node in statements_of(stmt) if isinstance(node, Alloc))


def _promises(buffer: Buffer, stored: set[Buffer], loaded: set[Buffer]) -> str:
    """What is only read, or only stored, nobody else changes. What threads hand on to each other, others do."""
    if buffer in stored and buffer in loaded:
        return f"align {ALIGNED} "
    return f"noalias {'' if buffer in stored else 'readonly '}align {ALIGNED} "
