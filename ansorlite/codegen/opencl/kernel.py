"""One kernel as OpenCL C: a loop over blocks, whose threads are work items; barriers where the phases need them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ansorlite.alignment import aligned
from ansorlite.codegen.nvptx.kernel import outer_buffers
from ansorlite.codegen.opencl.expressions import Expressions, Names
from ansorlite.codegen.opencl.prelude import TYPES
from ansorlite.codegen.opencl.vectors import Vectors
from ansorlite.errors import TargetError
from ansorlite.loops.nodes import (
    THREADS,
    Alloc,
    Await,
    Block,
    Buffer,
    FetchGroup,
    Fold,
    For,
    If,
    Intrinsic,
    LoopKind,
    Prefetch,
    Scope,
    Stmt,
    Store,
    index,
    statements,
)
from ansorlite.loops.phases import barriers, lanes_problem, obstacle, phases, threads_of
from ansorlite.loops.visit import limits, loads, stores, trips
from ansorlite.machine.gpu import Gpu
from ansorlite.machine.matrix import WARP
from ansorlite.te.expr import Const, Expr, Var
from ansorlite.te.numeric import identity
from ansorlite.te.ops import COMBINE

_BARRIER = "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);"


@dataclass(frozen=True)
class ClKernel:
    """
    Attributes:
        text: its definition.
        buffers: that its parameters are: an object of memory for each, and where in it the array begins.
        grid: groups of work items.
        threads: of a group.
        shared: bytes of a group's local memory.
        doubles: whether it has float64.
    """

    text: str
    buffers: tuple[Buffer, ...]
    grid: int
    threads: int
    shared: int
    doubles: bool


def emit(symbol: str, stmt: Stmt, gpu: Gpu | None) -> ClKernel:
    """``symbol`` as a kernel that does ``stmt``: a loop over blocks, else what one work item does alone.

    Raises:
        TargetError: it is no program for a GPU, or needs more than ``gpu`` has.
    """
    block = stmt if isinstance(stmt, For) and stmt.kind is LoopKind.BLOCK else None
    if block is not None and any(phases(block.body)) and (reason := obstacle(block)) is not None:
        raise TargetError(f"the program cannot run on a GPU: {reason}")
    buffers = tuple(outer_buffers(stmt))
    writer = _Writer(block)
    stored, loaded = {store.buffer for store in stores(stmt)}, {load.buffer for load in loads(stmt)}
    for number, buffer in enumerate(buffers):
        constant = "" if buffer in stored else "const "
        restrict = "" if buffer in stored and buffer in loaded else " restrict"
        kind, name = TYPES[buffer.dtype][1], writer.names.of(buffer)
        writer.line(f"__global {constant}{kind} *{restrict} {name} = (__global {constant}{kind} *)(m{number} + at{number});")
    writer.statement(stmt)
    if gpu is not None and writer.threads > gpu.block_threads:
        raise TargetError(f"the program needs blocks of {writer.threads} threads; {gpu.name} has at most {gpu.block_threads}")
    if gpu is not None and writer.shared > gpu.block_shared:
        room = f"{gpu.name} has at most {gpu.block_shared}"
        raise TargetError(f"the program needs {writer.shared} bytes of shared memory in a block; {room}")
    parameters = ", ".join(f"__global uchar *m{number}, ulong at{number}" for number in range(len(buffers)))
    lines = [
        f"__kernel __attribute__((reqd_work_group_size({writer.threads}, 1, 1)))",
        f"void {symbol}({parameters}) {{",
        *(f"  {line}" for line in writer.local),
        *writer.lines,
        "}",
    ]
    doubles = writer.expressions.doubles or any(b.dtype == "float64" for b in (*buffers, *_allocated(stmt)))
    grid = 1 if block is None else trips(block)
    return ClKernel("\n".join(lines), buffers, grid, writer.threads, writer.shared, doubles)


def _allocated(stmt: Stmt) -> Iterator[Buffer]:
    return (node.buffer for node in statements(stmt) if isinstance(node, Alloc))


class _Writer:
    """Writes one kernel's body.

    Attributes:
        local: definitions of what a group shares: OpenCL wants them at the kernel's beginning.
    """

    def __init__(self, block: For | None) -> None:
        self.names = Names()
        self.expressions = Expressions(self.names)
        self.threads = 1 if block is None else threads_of(block)
        self.shared = 0
        self.local: list[str] = []
        self.lines: list[str] = []
        self._block = block
        self._barriers = frozenset[For]() if block is None else barriers(block)
        self._depth = 1
        self._warps = False

    def line(self, text: str) -> None:
        self.lines.append("  " * self._depth + text)

    @contextmanager
    def _inside(self, head: str) -> Iterator[None]:
        self.line(f"{head} {{".lstrip())
        self._depth += 1
        yield
        self._depth -= 1
        self.line("}")

    def statement(self, stmt: Stmt) -> None:
        match stmt:
            case Block(body):
                for child in body:
                    self.statement(child)
            case For():
                self._loop(stmt)
            case Store(buffer, indices, value):
                self._definitions((*indices, value))
                stored = self.expressions.stored(buffer, self.expressions.text(value))
                self.line(f"{self.expressions.place(buffer, indices)} = {stored};")
            case If(cond, body):
                self._definitions(())
                with self._inside(f"if ({self.expressions.text(cond)})"):
                    self.statement(body)
            case Alloc(buffer, body):
                self._allocate(buffer, body)
            case Intrinsic(Fold() as does):
                self._fold(does)
            case Intrinsic():
                self.statement(stmt.body)
            case FetchGroup(body):
                # Its copies are a work item's own loads and stores: they land where they stand.
                self.statement(body)
            case Await():
                self.line(_BARRIER)
            case Prefetch():
                pass
            case _:
                raise TypeError(f"not a statement of the loop IR: {stmt!r}")

    def _definitions(self, roots: Iterable[Expr]) -> None:
        """Of what ``roots`` have in common; none where there are no roots."""
        for line in self.expressions.statement(roots):
            self.line(line)

    def _allocate(self, buffer: Buffer, body: Stmt) -> None:
        kind, name = TYPES[buffer.dtype][1], self.names.of(buffer)
        match buffer.scope:
            case Scope.SHARED:
                self._local(kind, name, buffer.size, buffer.nbytes)
            case Scope.PRIVATE:
                own = buffer.strides[0] if len(buffer.shape) > 1 else 1
                self.line(f"{kind} {name}[{own}];")
            case Scope.LOCAL | Scope.REGISTER:
                with self._inside(""):
                    self.line(f"{kind} {name}[{buffer.size}];")
                    self.statement(body)
                return
            case _:
                reason = f"{buffer.name}, of scope {buffer.scope.name}, cannot be allocated within a kernel of a GPU"
                raise TargetError(reason)
        self.statement(body)

    def _local(self, kind: str, name: str, size: int, nbytes: int) -> None:
        self.local.append(f"__local {kind} {name}[{size}];")
        self.shared += aligned(nbytes)

    def _loop(self, loop: For) -> None:
        match loop.kind:
            case LoopKind.BLOCK if loop is self._block:
                self._bound(loop, "get_group_id(0)", all_of_them=True)
            case kind if kind in THREADS and self._block is not None:
                self._of_threads(loop)
            case LoopKind.VECTORIZED if self._vectors(loop):
                pass
            case _:
                extent = loop.extent
                self.expressions.ranges[loop.var] = (0, max(limits(extent, self.expressions.ranges)[1] - 1, 0))
                self._definitions(())
                if loop.kind in (LoopKind.UNROLLED, LoopKind.VECTORIZED) and isinstance(extent, Const):
                    self.line("#pragma unroll")
                name = self.names.of(loop.var)
                with self._inside(f"for (long {name} = 0; {name} < {self.expressions.text(extent)}; ++{name})"):
                    self.statement(loop.body)

    def _vectors(self, loop: For) -> bool:
        """Write the loop vector by vector, and in each what does not go in vectors one by one; whether any of it does."""
        vectors, name = Vectors.of(self.expressions, loop), self.names.of(loop.var)
        if vectors is None:
            return False
        self.expressions.ranges[loop.var] = (0, vectors.chunks * loop.lanes - 1)
        parts = loop.body.body if isinstance(loop.body, Block) else (loop.body,)
        written = [(part, vectors.lines(part)) for part in parts]
        if not any(lines for _, lines in written):
            return False
        chunk = self.names.of(vectors.chunk)
        self.line("#pragma unroll")
        with self._inside(f"for (long {chunk} = 0; {chunk} < {vectors.chunks}; ++{chunk})"):
            for part, lines in written:
                if lines is None:
                    first = f"{chunk} * {loop.lanes}"
                    self.line("#pragma unroll")
                    with self._inside(f"for (long {name} = {first}; {name} < {first} + {loop.lanes}; ++{name})"):
                        self.statement(part)
                for line in lines or ():
                    self.line(line)
        return True

    def _of_threads(self, loop: For) -> None:
        if loop.kind is LoopKind.LANE and self._warps:
            self._bound(loop, f"get_local_id(0) % {WARP}", all_of_them=trips(loop) == WARP)
            return
        if loop in self._barriers:
            self.line(_BARRIER)
        if loop.kind is not LoopKind.WARP:
            self._bound(loop, "get_local_id(0)", all_of_them=trips(loop) == self.threads)
            return
        if problem := lanes_problem(loop):
            raise TargetError(f"the program cannot run on a GPU: {problem}")
        self._warps = True
        self._bound(loop, f"get_local_id(0) / {WARP}", all_of_them=trips(loop) * WARP == self.threads)
        self._warps = False

    def _bound(self, loop: For, number: str, *, all_of_them: bool) -> None:
        """What those do whose ``number`` is below the loop's extent."""
        name, count = self.names.of(loop.var), trips(loop)
        self.expressions.ranges[loop.var] = (0, count - 1)
        with self._inside(""):
            self.line(f"const long {name} = {number};")
            if all_of_them:
                self.statement(loop.body)
                return
            with self._inside(f"if ({name} < {count})"):
                self.statement(loop.body)

    def _fold(self, does: Fold) -> None:
        """Through local memory: there are no shuffles that every device has."""
        dtype, count, e = does.source.dtype, does.source.shape[0], self.expressions
        kind, memory = TYPES[dtype]
        scratch, lane, me = f"fold_{len(self.local)}", Var("lane"), Var("me")
        self._local(memory, scratch, count, count * max(1, does.source.nbytes // count))
        names = self.names.of(lane), self.names.of(me)
        self.expressions.statement(())
        zero = index(0)
        source, result = (e.place(buffer, (zero,)) for buffer in (does.source, does.result))
        start = e.text(Const(identity(does.op, dtype).item(), dtype))
        taken = f"{scratch}[{names[1]} / {does.width} * {does.width} + {names[0]}]"
        if memory != kind and dtype != "bool":
            taken = f"load_{dtype}({taken})"
        joined = e.binary(COMBINE[does.op], dtype, dtype, "total", taken)
        if memory != kind and dtype != "bool":
            joined = f"round_{dtype}({joined})"
        with self._inside(""):
            self.line(f"const long {names[1]} = get_local_id(0);")
            self.line(f"if ({names[1]} < {count}) {scratch}[{names[1]}] = {source};")
            self.line(_BARRIER)
            with self._inside(f"if ({names[1]} < {count})"):
                self.line(f"{kind} total = {start};")
                with self._inside(f"for (long {names[0]} = 0; {names[0]} < {does.width}; ++{names[0]})"):
                    self.line(f"total = {joined};")
                self.line(f"{result} = {e.stored(does.result, 'total')};")
            # Before it is stored to again.
            self.line(_BARRIER)
