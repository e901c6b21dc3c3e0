"""What kernels for NVIDIA GPUs have of their own: blocks, threads, barriers, shared memory, shuffles."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

from ansorlite.alignment import DEVICE_ALIGNMENT, aligned
from ansorlite.codegen import control, memory, operators, types
from ansorlite.codegen.builder import Builder
from ansorlite.codegen.context import Body, Context, Storage
from ansorlite.codegen.nvptx import bulk, fetch, matrix, warpgroup
from ansorlite.codegen.nvptx.fragments import once
from ansorlite.codegen.nvptx.tensor_maps import NBYTES
from ansorlite.codegen.scope import Binding
from ansorlite.errors import TargetError
from ansorlite.loops.nodes import (
    THREADS,
    Await,
    Buffer,
    FetchGroup,
    Fold,
    For,
    Intrinsic,
    LoopKind,
    Multiply,
    Scope,
    Stmt,
    Store,
    statements,
)
from ansorlite.loops.phases import barriers, lanes_problem, obstacle, phases, threads_of
from ansorlite.loops.products import product_of
from ansorlite.loops.visit import trips
from ansorlite.machine.matrix import WARP
from ansorlite.te import dtypes
from ansorlite.te.expr import Var
from ansorlite.te.ops import COMBINE

#: The name of a kernel's shared memory: the launch says how much there is.
_SHARED: Final = "shared"
#: What the address of each buffer is a multiple of: of a caller's arrays, and of ours.
ALIGNED: Final = DEVICE_ALIGNMENT

_INTRINSICS: Final = "llvm.nvvm"


class Nvptx:
    """Writes one kernel: one loop over blocks.

    Args:
        planned: what it copies in bulk.
        maps: where blocks hand their tensor maps to the machine, if there are such: the name of a pointer.

    Attributes:
        threads: of a block.
        shared: bytes of shared memory that it has by now.
        copies: whether it has copies by now that land later.
    """

    def __init__(self, b: Builder, block: For | None, planned: bulk.Plan | None, maps: str) -> None:
        self.threads = 1 if block is None else threads_of(block)
        gpu = b.module.target.gpu
        if gpu is not None and self.threads > gpu.block_threads:
            raise TargetError(f"the program needs blocks of {self.threads} threads; {gpu.name} has at most {gpu.block_threads}")
        self.shared = 0
        self.copies = False
        self._warps = False
        self._block = block
        self._fenced = block is not None and any(map(warpgroup.reads_shared, statements(block)))
        self._barriers = frozenset[For]() if block is None else barriers(block)
        if block is not None and any(phases(block.body)) and (reason := obstacle(block)) is not None:
            raise TargetError(f"the program cannot run on a GPU: {reason}")
        self._phase: For | None = None
        self._flying = warpgroup.Flying()
        self._thread = _number(b, "tid", self.threads)
        self._number = _number(b, "ctaid", 1 if block is None else trips(block))
        self._bulk = None if planned is None else bulk.Barriers(planned, self._thread, self.threads)
        self._maps = maps

    def storage(self, c: Context, buffer: Buffer) -> Storage:
        match buffer.scope:
            case Scope.SHARED:
                base = f"ptr addrspacecast (ptr addrspace(3) {_shared(c)} to ptr)"
                if self._bulk is not None and buffer in self._bulk.plan.boxed:
                    self.shared = -(-self.shared // NBYTES) * NBYTES
                pointer = c.b.at_entry(f"getelementptr i8, {base}, i32 {self.shared}")
                self.shared += aligned(buffer.nbytes)
                gpu = c.target.gpu
                if gpu is not None and self.shared > gpu.block_shared:
                    room = f"{gpu.name} has at most {gpu.block_shared}"
                    raise TargetError(f"the program needs {self.shared} bytes of shared memory in a block; {room}")
                return Storage(pointer, buffer.strides, 0, c.b.module.new_scope(), padded=False, aligned=ALIGNED)
            case Scope.PRIVATE:
                # Each thread has its own elements alone: the first index does not count.
                return _slot(c, buffer, replace(buffer, shape=buffer.shape[1:]).size, (0, *buffer.strides[1:]), register=True)
            case Scope.LOCAL | Scope.REGISTER:
                return _slot(c, buffer, buffer.size, buffer.strides, register=buffer.scope is Scope.REGISTER)
        raise TargetError(f"{buffer.name}, of scope {buffer.scope.name}, cannot be allocated within a kernel of a GPU")

    def loop(self, c: Context, loop: For, body: Body) -> bool:
        match loop.kind:
            case LoopKind.BLOCK if loop is self._block:
                if self._bulk is not None:
                    self._begin(c, self._bulk)
                with _bound(c, loop.var, self._number, trips(loop)):
                    body(c, loop.body)
            case LoopKind.VTHREAD:
                # Virtual threads are the same threads again: their loops are written out.
                for number in range(trips(loop)):
                    with control.bound(c, loop.var, str(number), (number, number)):
                        body(c, loop.body)
            case kind if kind in THREADS and self._block is not None:
                self._threads_loop(c, loop, body)
            case _:
                return False
        return True

    def _begin(self, c: Context, copies: bulk.Barriers) -> None:
        """Get ready for bulk copies."""
        b, room = c.b, NBYTES * len(copies.plan.maps)
        handed = ""
        if room:
            handed = b.at_entry(f"add i64 {b.at_entry(f'ptrtoint ptr {self._maps} to i64')}, {NBYTES - 1}")
            handed = b.at_entry(f"and i64 {handed}, {-NBYTES}")
            handed = b.at_entry(f"add i64 {handed}, {b.at_entry(f'mul i64 {self._number}, {room}')}")
        copies.begin(c, _shared(c), handed)
        self.shared += copies.plan.nbytes
        self._barrier(c)
        if copies.maps is not None:
            copies.maps.publish(c)
            self._barrier(c)
            copies.maps.acquire(c)

    def _threads_loop(self, c: Context, loop: For, body: Body) -> None:
        if loop.kind is LoopKind.LANE and self._warps:
            lane = once(c, f"urem i64 {self._thread}, {WARP}")
            self._threads_that(c, loop, lane, trips(loop) < WARP, body)
            return
        if loop in self._barriers:
            self._barrier(c)
        if self._bulk is not None and self._bulk.phase(c, loop):
            return
        if loop.kind is not LoopKind.WARP:
            self._phase = loop
            self._threads_that(c, loop, self._thread, trips(loop) < self.threads, self._landing(body))
            self._phase = None
            return
        if problem := lanes_problem(loop):
            raise TargetError(f"the program cannot run on a GPU: {problem}")
        self._warps = True
        try:
            warp = once(c, f"udiv i64 {self._thread}, {WARP}")
            self._threads_that(c, loop, warp, trips(loop) * WARP < self.threads, body)
        finally:
            self._warps = False

    def _threads_that(self, c: Context, loop: For, number: str, some: bool, body: Body) -> None:
        """Write what threads do whose ``number`` is below the loop's extent; where not ``some``, it is for all of them."""
        if some:
            with (
                control.conditional(c, c.b.op(f"icmp slt i64 {number}, {trips(loop)}")),
                _bound(c, loop.var, number, trips(loop)),
            ):
                body(c, loop.body)
            return
        # What is loaded in a phase is loaded after its barrier, and what other threads store is loaded again.
        with c.scope.inside(c.b.slot()), _bound(c, loop.var, number, trips(loop)):
            body(c, loop.body)

    def _landing(self, body: Body) -> Body:
        """``body``, and the wait for the sums that are flying behind it: before any barrier, so before what products read is
        overwritten."""

        def landing(c: Context, stmt: Stmt) -> None:
            body(c, stmt)
            self._flying.land(c)

        return landing

    def intrinsic(self, c: Context, stmt: Intrinsic, body: Body) -> None:
        del body
        does = stmt.does
        if isinstance(does, Multiply):
            self._multiply(c, stmt)
            return
        if does.width > WARP:
            raise TargetError(f"a GPU folds what at most {WARP} threads have in one operation, not {does.width}")
        if does.source.shape[0] == self.threads:
            _fold(c, does, self._thread)
            return
        with control.conditional(c, c.b.op(f"icmp slt i64 {self._thread}, {does.source.shape[0]}")):
            _fold(c, does, self._thread)

    def fetch(self, c: Context, stmt: Store) -> bool:
        gpu = c.target.gpu
        written = gpu is not None and gpu.async_copies and fetch.copy(c, stmt)
        self.copies |= written
        return written

    def group(self, c: Context, stmt: FetchGroup, body: Body) -> None:
        if self._bulk is not None:
            self._bulk.open(c)
        body(c, stmt.body)
        if self.copies:
            # Groups before the first copy of all are none for the machine; the last ones count.
            fetch.commit(c)
        if self._bulk is not None:
            self._bulk.close(c)

    def wait(self, c: Context, stmt: Await) -> None:
        if self.copies:
            fetch.wait(c, stmt.pending)
        if self._bulk is not None:
            self._bulk.wait(c, stmt.pending)
        self._barrier(c)

    def _barrier(self, c: Context) -> None:
        if self._fenced:
            c.b.do(warpgroup.FENCE)
        c.b.module.declare(f"void @{_INTRINSICS}.barrier0()")
        c.b.do(f"call void @{_INTRINSICS}.barrier0()")

    def _multiply(self, c: Context, stmt: Intrinsic) -> None:
        product = product_of(stmt)
        if isinstance(product, str):
            raise TargetError(f"the program cannot run on a GPU: {product}")
        if self._phase is None:
            raise TargetError("the program cannot run on a GPU: a product of tiles is in no loop over the threads of a block")
        matrix.emit(c, product, self._phase.var, trips(self._phase), self._thread, self._flying)
        if not warpgroup.straight(self._phase.body):
            self._flying.land(c)


def _shared(c: Context) -> str:
    """The name of the kernel's shared memory."""
    if not c.b.module.has(_SHARED):
        c.b.module.define(_SHARED, f"@{_SHARED} = external addrspace(3) global [0 x i8], align 1024")
    return f"@{_SHARED}"


def _number(b: Builder, name: str, count: int) -> str:
    """Which of ``count`` this is: of threads, or of blocks; an i64."""
    full = f"{_INTRINSICS}.read.ptx.sreg.{name}.x"
    b.module.declare(f"i32 @{full}()")
    short = b.at_entry(f"call range(i32 0, {count}) i32 @{full}()" if count > 1 else "add i32 0, 0")
    return b.at_entry(f"zext nneg i32 {short} to i64")


@contextmanager
def _bound(c: Context, var: Var, number: str, count: int) -> Iterator[None]:
    """A variable that is the same all over the kernel, for the time of a ``with``."""
    c.scope.variables[var] = Binding(number, 0, None)
    c.ranges[var] = (0, count - 1)
    yield
    del c.scope.variables[var]


def _slot(c: Context, buffer: Buffer, size: int, strides: tuple[int, ...], *, register: bool) -> Storage:
    """Registers, or memory of the thread's own where an index is not known."""
    pointer = c.b.at_entry(f"alloca [{size} x {types.MEMORY[buffer.dtype]}], align {ALIGNED}")
    row = buffer.shape[-1] if buffer.shape else 1
    return Storage(pointer, strides, 0, None, padded=False, register=register, row=row, aligned=ALIGNED)


def _fold(c: Context, does: Fold, thread: str) -> None:
    """By shuffles: each step joins what threads have that are twice as far from each other."""
    b, dtype = c.b, does.source.dtype
    value = memory.register_load(c, c.places[does.source], dtype, 1, 0).text
    members = "-1"
    if does.width < WARP:
        short = b.op(f"trunc i64 {thread} to i32")
        first = b.op(f"and i32 {short}, {WARP - does.width}")
        members = b.op(f"shl i32 {(1 << does.width) - 1}, {first}")
    distance = 1
    while distance < does.width:
        other = _shuffled(b, dtype, value, distance, members)
        value = operators.binary(b, COMBINE[does.op], dtype, 1, value, other)
        distance *= 2
    memory.register_store(c, c.places[does.result], dtype, None, value, 0)
    c.versions[does.result] += 1


def _shuffled(b: Builder, dtype: str, value: str, distance: int, members: str) -> str:
    """What the thread has whose number differs by ``distance``: a value of any type goes as words of 32 bits."""
    kind = types.VALUE[dtype]
    bits = 1 if dtype == "bool" else {"float": 32, "double": 64}.get(kind) or 8 * dtypes.size(dtype)
    whole = b.op(f"bitcast {kind} {value} to i{bits}") if kind in ("float", "double") else value
    if bits < 32:
        whole = b.op(f"zext i{bits} {whole} to i32")
    words = [whole]
    if bits == 64:
        words = [b.op(f"trunc i64 {whole} to i32"), b.op(f"trunc i64 {b.op(f'lshr i64 {whole}, 32')} to i32")]
    arguments = [("i32", str(distance)), ("i32", str(WARP - 1))]
    words = [b.call("i32", f"{_INTRINSICS}.shfl.sync.bfly.i32", ("i32", members), ("i32", word), *arguments) for word in words]
    if bits == 64:
        low, high = (b.op(f"zext i32 {word} to i64") for word in words)
        result = b.op(f"or i64 {low}, {b.op(f'shl i64 {high}, 32')}")
    else:
        result = b.op(f"trunc i32 {words[0]} to i{bits}") if bits < 32 else words[0]
    return b.op(f"bitcast i{bits} {result} to {kind}") if kind in ("float", "double") else result
