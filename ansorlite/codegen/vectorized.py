"""Vectorized loops: cut into chunks of one vector, with the rest masked.

A chunk runs every statement of the body for all its lanes at once. Chunks are written out one after another when they
are few or when they touch registers (whose indices must be constant); else they make an LLVM loop. What is left of a
constant extent runs in the narrowest power of two that holds it, masked; where the target has no masked loads for the
dtypes at hand, as unmasked powers of two. Where a function is computed, which is one long chain of operations, several
vectors make a chunk: their chains are interleaved (docs/decisions/interleaved-chains.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from ansorlite.alignment import CACHE_LINE
from ansorlite.codegen import control, types
from ansorlite.codegen.context import Body, Context, Lanes
from ansorlite.codegen.expressions import evaluate
from ansorlite.codegen.scope import dependence
from ansorlite.codegen.steady import partitioned
from ansorlite.loops.nodes import Block, Buffer, For, If, Load, Scope, Store, statements
from ansorlite.loops.visit import trips
from ansorlite.once import once_for_each
from ansorlite.target import Target, masks
from ansorlite.te import dtypes
from ansorlite.te.expr import Binary, Cast, Expr, Unary
from ansorlite.te.index.ranges import Interval, bounds
from ansorlite.te.ops import Cost, info

#: At most this many chunks are written out when they need not be.
UNROLLED_CHUNKS: Final = 4
#: Vectors of a chunk whose chains are interleaved.
INTERLEAVED: Final = 4


@dataclass(frozen=True)
class _Facts:
    """What a vectorized loop's body does.

    Attributes:
        widest: bytes of the widest value that is computed as data, not as part of an index.
        buffers: that are touched.
        vectorizable: whether all statements can run for many lanes at once: stores go to a place of their own in each.
        chains: whether a function is computed that is written out as a polynomial.
    """

    widest: int
    buffers: frozenset[Buffer]
    vectorizable: bool
    chains: bool

    @cached_property
    def stored(self) -> frozenset[str]:
        """Dtypes that are in memory."""
        return frozenset(buffer.dtype for buffer in self.buffers)

    @cached_property
    def registers(self) -> bool:
        """Whether a register buffer is touched."""
        return any(buffer.scope is Scope.REGISTER for buffer in self.buffers)


@once_for_each
def _facts(loop: For) -> _Facts:
    buffers: set[Buffer] = set()
    sizes = {1}
    vectorizable, chains = True, False

    seen: set[tuple[Expr, bool]] = set()

    def visit(expr: Expr, data: bool) -> None:
        nonlocal chains
        if (expr, data) in seen:  # shared parts once: there may be exponentially many ways to them
            return
        seen.add((expr, data))
        if isinstance(expr, Load):
            buffers.add(expr.buffer)
        if data and (expr.dtype != dtypes.INDEX or isinstance(expr, Load | Cast)):
            sizes.add(4 if expr.dtype in types.STORAGE_FLOATS else dtypes.size(expr.dtype))
        if isinstance(expr, Unary | Binary):
            chains |= info(expr.op).cost is Cost.MATH
        for child in expr.children():
            visit(child, data and not isinstance(expr, Load))

    for stmt in statements(loop.body):
        if isinstance(stmt, Store):
            buffers.add(stmt.buffer)
            sizes.add(dtypes.size(stmt.buffer.dtype))
            visit(stmt.value, True)
            for place in stmt.indices:
                visit(place, False)
            vectorizable &= any(loop.var in dependence(place).variables for place in stmt.indices)
        elif isinstance(stmt, If):
            visit(stmt.cond, False)
        elif not isinstance(stmt, Block):
            vectorizable = False
    return _Facts(max(sizes), frozenset(buffers), vectorizable, chains)


def lanes_of(loop: For, target: Target) -> int:
    """How many lanes a chunk has: what the loop asks for, but no more than fill one register of the widest dtype.

    It is a power of two: LLVM takes a vector of 14 apart into pieces of 8, 4 and 2. Where the target masks, that is one
    of 16 with two lanes off.
    """
    return _lanes(loop, target.vector_bytes, masks.least_masked(target))


def vectors_of(loop: For, target: Target) -> int:
    """In how many chunks a loop of constant extent is run."""
    return -(-trips(loop) // lanes_of(loop, target))


@once_for_each
def _lanes(loop: For, vector_bytes: int, least_masked: int | None) -> int:
    facts = _facts(loop)
    wanted = max(1, min(loop.lanes, vector_bytes // facts.widest))
    return 1 << ((wanted - 1).bit_length() if masks.masks(least_masked, facts.stored) else wanted.bit_length() - 1)


def _width(c: Context, loop: For, lanes: int) -> int:
    """How many lanes a chunk has in the part of a long loop that needs no mask: of one vector, or of several whose chains are
    interleaved, or that are a cache line where lines are asked for. A GPU's threads are interleaved by the GPU.
    """
    facts = _facts(loop)
    alone = not facts.chains or facts.registers or c.target.gpu is not None or lanes * facts.widest < c.target.vector_bytes
    line = CACHE_LINE // facts.widest if facts.buffers & c.next_rows.keys() else 1
    return max(lanes if alone else INTERLEAVED * lanes, line)


def emit(c: Context, loop: For, body: Body) -> None:
    """Write a vectorized loop; ``body`` writes the loop's body in a context."""
    lanes = lanes_of(loop, c.target)
    extent = evaluate(c, loop.extent)
    if lanes == 1 or not _facts(loop).vectorizable:
        _scalar(c, loop, extent.text, bounds(loop.extent, c.ranges), body)
    elif extent.literal:
        _constant(c, loop, int(extent.text), lanes, body)
    else:
        _dynamic(c, loop, extent.text, bounds(loop.extent, c.ranges), lanes, body)


def _scalar(c: Context, loop: For, extent: str, limits: Interval, body: Body) -> None:
    def one(counter: str) -> None:
        with control.bound(c, loop.var, counter, (0, limits[1] - 1)):
            body(c, loop.body)

    if _facts(loop).registers and extent[0] != "%":
        for iteration in range(int(extent)):
            one(str(iteration))
    else:
        control.counted(c, "0", extent, 1, limits[0] > 0, loop, one)


def chunk(c: Context, loop: For, base: str, first: Interval, lanes: Lanes | None, body: Body) -> None:
    """One chunk that begins at iteration ``base``."""
    count = 1 if lanes is None else lanes.count
    with control.bound(c, loop.var, base, (first[0], first[1] + count - 1)), c.within(lanes, c.guard):
        body(c, loop.body)


def _constant(c: Context, loop: For, extent: int, lanes: int, body: Body) -> None:
    width = _width(c, loop, lanes)
    whole, done = extent // width, 0
    if whole > (UNROLLED_CHUNKS if width == lanes else 0) and not _facts(loop).registers:
        full, done = Lanes(loop.var, width), whole * width
        for begin, end in partitioned(c, loop, done, width):
            _whole(c, loop, begin, end, full, body)
    for begin, piece in pieces(c, loop, extent):
        if begin >= done:
            chunk(c, loop, str(begin), (begin, begin), piece, body)


def _whole(c: Context, loop: For, begin: int, end: int, full: Lanes, body: Body) -> None:
    """Chunks of all lanes, from iteration ``begin`` to ``end``."""
    bases = (begin, end - full.count)
    if bases[0] == bases[1]:
        chunk(c, loop, str(begin), bases, full, body)
    else:
        control.counted(c, str(begin), str(end), full.count, True, loop, lambda base: chunk(c, loop, base, bases, full, body))


def pieces(c: Context, loop: For, extent: int) -> Sequence[tuple[int, Lanes | None]]:
    """The chunks of a vectorized loop of a constant extent, each with its first iteration; ``None`` for lanes: a scalar."""
    return _pieces(loop, extent, c.target.vector_bytes, masks.least_masked(c.target))


@once_for_each
def _pieces(loop: For, extent: int, vector_bytes: int, least_masked: int | None) -> Sequence[tuple[int, Lanes | None]]:
    lanes = _lanes(loop, vector_bytes, least_masked)
    whole, rest = divmod(extent, lanes)
    result: list[tuple[int, Lanes | None]] = [(number * lanes, Lanes(loop.var, lanes)) for number in range(whole)]
    native = masks.masks(least_masked, _facts(loop).stored)
    ends = ((0, 1 << (rest - 1).bit_length()),) if native and rest else masks.powers_of_two(rest)
    for begin, width in ends:
        active = min(rest - begin, width)
        tail = Lanes(loop.var, width, None if active == width else types.first_lanes(active, width), overrun=True, active=active)
        result.append((whole * lanes + begin, None if width == 1 else tail))
    return tuple(result)


def _runtime_mask(c: Context, remaining: str, lanes: int) -> str:
    """The first ``remaining`` lanes; a number that may be negative, or larger than ``lanes``."""
    b = c.b
    few = b.intrinsic("smin", "i64", 1, remaining, str(lanes))
    some = b.intrinsic("smax", "i64", 1, few, "0")
    narrow = b.op(f"trunc i64 {some} to i32")
    kind = f"<{lanes} x i32>"
    spread = b.splat(types.Operand(narrow), "i32", lanes)
    return b.op(f"icmp slt {kind} {types.iota(lanes, 1, 'i32')}, {spread}")


def _dynamic(c: Context, loop: For, extent: str, limits: Interval, lanes: int, body: Body) -> None:
    """An extent that is known only at run time."""
    low, high = limits
    if math.isfinite(high) and (_facts(loop).registers or high <= lanes):
        test = "true" if low > 0 else c.b.op(f"icmp sgt i64 {extent}, 0")
        with control.conditional(c, test):
            for begin in range(0, int(high), lanes):
                remaining = extent if begin == 0 else c.b.op(f"sub i64 {extent}, {begin}")
                tail = Lanes(loop.var, lanes, _runtime_mask(c, remaining, lanes), overrun=begin == 0)
                chunk(c, loop, str(begin), (begin, begin), tail, body)
        return
    all_ = (0, high - 1)

    def chunks(done: str, width: int) -> str:
        """Chunks of so many lanes, as many as are whole; where they end."""
        beyond = c.b.op(f"srem i64 {extent}, {width}")
        end, full = c.b.op(f"sub i64 {extent}, {beyond}"), Lanes(loop.var, width)
        control.counted(c, done, end, width, False, loop, lambda base: chunk(c, loop, base, all_, full, body))
        return end

    whole, width = "0", _width(c, loop, lanes)
    if width > lanes:
        whole = chunks(whole, width)
    whole = chunks(whole, lanes)
    if not masks.masks_natively(c.target, _facts(loop).stored):
        control.counted(c, whole, extent, 1, False, loop, lambda at: chunk(c, loop, at, all_, None, body))
        return
    with control.conditional(c, c.b.op(f"icmp slt i64 {whole}, {extent}")):
        remaining = c.b.op(f"sub i64 {extent}, {whole}")
        tail = Lanes(loop.var, lanes, _runtime_mask(c, remaining, lanes), overrun=True)
        chunk(c, loop, whole, all_, tail, body)
