"""Programs for a GPU written by hand in loop form, with their numpy meaning: what back ends are held against."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ansorlite.loops.intrinsics import fold
from ansorlite.loops.nodes import Alloc, Buffer, Function, If, Load, LoopKind, Role, Scope, Stmt, Store, block
from ansorlite.loops.pipeline import pipelined
from ansorlite.te import dtypes
from ansorlite.te.expr import Expr, Var, cast, const
from ansorlite.te.functions import exp, maximum
from ansorlite.te.ops import ReduceOp

from .unit.loops.build import argument, load, loop, store

BLOCK, THREAD, UNROLLED, VECTORIZED = LoopKind.BLOCK, LoopKind.THREAD, LoopKind.UNROLLED, LoopKind.VECTORIZED
Array = NDArray[Any]


@dataclass(frozen=True)
class Program:
    """
    Attributes:
        meaning: of the inputs.
        barriers: how many there are in the PTX.
        most_registers: of a thread, on sm_80.
    """

    function: Function
    meaning: Callable[..., Array]
    barriers: int
    most_registers: int
    low: float = -2.0
    high: float = 2.0

    def arrays(self, seed: int = 0) -> list[Array]:
        """Inputs that cannot be written, and outputs that show what has not been."""
        rng = np.random.default_rng(seed)
        inputs = len(self.function.params) - self.function.outputs
        given = [rng.uniform(self.low, self.high, b.shape).astype(b.dtype) for b in self.function.params[:inputs]]
        for array in given:
            array.flags.writeable = False
        return [*given, *(_unwritten(b) for b in self.function.params[inputs:])]


def _unwritten(buffer: Buffer) -> Array:
    """An array that shows what has not been written."""
    return np.full(buffer.shape, np.nan if dtypes.is_float(buffer.dtype) else 77, dtypes.NUMPY[buffer.dtype])


def _private(name: str, *shape: int) -> Buffer:
    return Buffer(name, shape, "float32", Scope.PRIVATE)


def _shared(name: str, *shape: int) -> Buffer:
    return Buffer(name, shape, "float32", Scope.SHARED)


def _allocated(buffers: tuple[Buffer, ...], body: Stmt) -> Stmt:
    for buffer in reversed(buffers):
        body = Alloc(buffer, body)
    return body


ZERO: Final = const(0.0, "float32")


def element_wise(n: int = 1000, threads: int = 64, lanes: int = 4) -> Program:
    """exp(x) + y, in vectors, with a guarded end."""
    x, y, z = argument("X", n), argument("Y", n), argument("Z", n)

    def chunk(b: Var, t: Var) -> Stmt:
        first: Expr = (b * threads + t) * lanes
        body = loop("v", lanes, lambda v: store(z, (first + v,), exp(load(x, first + v)) + load(y, first + v)), VECTORIZED, lanes)
        return If(first < n, body)

    blocks = -(-n // (threads * lanes))
    body = loop("b", blocks, lambda b: loop("t", threads, lambda t: chunk(b, t), THREAD), BLOCK)
    return Program(Function("element_wise", (x, y, z), 1, body), lambda x, y: np.exp(x) + y, 0, 40)


def row_sums(rows: int = 6, columns: int = 300, threads: int = 128) -> Program:
    """A block for each row: each thread adds up a part, warps join theirs by shuffles, then one warp all of these."""
    x, y = argument("X", rows, columns), argument("Y", rows)
    part, whole, warps = _private("part", threads), _private("whole", threads), _shared("warps", threads // 32)

    def mine(r: Var, t: Var) -> Stmt:
        start = Store(part, (t,), ZERO, "part", Role.INIT)

        def add(k: Var) -> Stmt:
            column: Expr = k * threads + t
            add_up = Store(part, (t,), load(part, t) + load(x, r, column), "part", Role.UPDATE)
            return If(column < columns, add_up)

        return block(start, loop("k", -(-columns // threads), add))

    def first_lanes(t: Var) -> Stmt:
        return If(t % 32 < 1, store(warps, (t // 32,), load(part, t)))

    def gather(t: Var) -> Stmt:
        count = threads // 32
        taken = Load(warps, (t % count,), "float32")
        return store(whole, (t,), taken)

    def row(r: Var) -> Stmt:
        phases = block(
            loop("t", threads, lambda t: mine(r, t), THREAD),
            fold(ReduceOp.SUM, part, part, 32),
            loop("t", threads, first_lanes, THREAD),
            loop("t", threads, gather, THREAD),
            fold(ReduceOp.SUM, whole, whole, threads // 32),
            loop("t", threads, lambda t: If(t < 1, store(y, (r,), load(whole, t))), THREAD),
        )
        return _allocated((part, whole, warps), phases)

    function = Function("row_sums", (x, y), 1, loop("r", rows, row, BLOCK))
    return Program(function, lambda x: x.sum(1, dtype=np.float64), 1, 40)


def softmax(rows: int = 5, columns: int = 256, threads: int = 64) -> Program:
    """A row stays with its block: the largest element, the sum and the outputs in one launch."""
    x, y = argument("X", rows, columns), argument("Y", rows, columns)
    each = columns // threads
    kept, largest, total = _private("kept", threads, each), _private("largest", threads), _private("total", threads)
    row_of = _shared("row", threads // 32)

    def phase(body: Callable[[Var], Stmt]) -> Stmt:
        return loop("t", threads, body, THREAD)

    def over(t: Var, body: Callable[[Var], Stmt]) -> Stmt:
        del t
        return loop("e", each, body, UNROLLED)

    def join(op: ReduceOp, private: Buffer) -> Stmt:
        """All threads get what all have, through shared memory."""
        return block(
            fold(op, private, private, 32),
            phase(lambda t: If(t % 32 < 1, store(row_of, (t // 32,), load(private, t)))),
            phase(lambda t: store(private, (t,), Load(row_of, (t % (threads // 32),), "float32"))),
            fold(op, private, private, threads // 32),
        )

    def row(r: Var) -> Stmt:
        def begin(t: Var) -> Stmt:
            element = over(t, lambda e: store(kept, (t, e), load(x, r, e * threads + t)))
            most = over(t, lambda e: store(largest, (t,), maximum(load(largest, t), load(kept, t, e))))
            return block(element, store(largest, (t,), const(float("-inf"), "float32")), most)

        def powers(t: Var) -> Stmt:
            power = over(t, lambda e: store(kept, (t, e), exp(load(kept, t, e) - load(largest, t))))
            add = over(t, lambda e: store(total, (t,), load(total, t) + load(kept, t, e)))
            return block(power, store(total, (t,), ZERO), add)

        def end(t: Var) -> Stmt:
            return over(t, lambda e: store(y, (r, e * threads + t), load(kept, t, e) / load(total, t)))

        parts = block(phase(begin), join(ReduceOp.MAX, largest), phase(powers), join(ReduceOp.SUM, total), phase(end))
        return _allocated((kept, largest, total, row_of), parts)

    def meaning(x: Array) -> Array:
        e = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
        result: Array = e / e.sum(1, keepdims=True)
        return result

    # Before each of the two gathers, and before the second row of partial results is stored over the first.
    return Program(Function("softmax", (x, y), 1, loop("r", rows, row, BLOCK)), meaning, 3, 64)


def transpose(n: int = 64, m: int = 96, tile: int = 32, rows: int = 8) -> Program:
    """Through a tile of shared memory with a padded row, so that both sides are read and written side by side."""
    x, y, s = argument("X", n, m), argument("Y", m, n), _shared("tile", tile, tile + 1)

    def one(b: Var) -> Stmt:
        by, bx = b // (m // tile), b % (m // tile)

        def read(t: Var) -> Stmt:
            def line(k: Var) -> Stmt:
                r: Expr = t // tile + k * rows
                return store(s, (r, t % tile), load(x, by * tile + r, bx * tile + t % tile))

            return loop("k", tile // rows, line, UNROLLED)

        def write(t: Var) -> Stmt:
            def line(k: Var) -> Stmt:
                r: Expr = t // tile + k * rows
                return store(y, (bx * tile + r, by * tile + t % tile), load(s, t % tile, r))

            return loop("k", tile // rows, line, UNROLLED)

        return Alloc(s, block(loop("t", tile * rows, read, THREAD), loop("t", tile * rows, write, THREAD)))

    body = loop("b", (n // tile) * (m // tile), one, BLOCK)
    return Program(Function("transpose", (x, y), 1, body), lambda x: x.T, 1, 40)


def product(
    m: int,
    n: int,
    k: int,
    tile: tuple[int, int, int],
    each: tuple[int, int],
    most_registers: int = 128,
    stages: int = 1,
    pads: tuple[int, ...] = (),
    swizzle: int = 1,
) -> Program:
    """ReLU of a matrix product: tiles of A (transposed) and B in shared memory, a tile of C in each thread's registers.

    Args:
        stages: slots of rings that tiles of A and B are in.
        pads, swizzle: of the tile of A.
    """
    (bm, bn, bk), (tm, tn) = tile, each
    across, threads = bn // tn, (bm // tm) * (bn // tn)
    a, b, c = argument("A", m, k), argument("B", k, n), argument("C", m, n)
    a_tile, b_tile, sums = _shared("A_tile", bk, bm), _shared("B_tile", bk, bn), _private("sums", threads, tm, tn)
    a_tile = replace(a_tile, pads=pads, swizzle=swizzle)

    def each_sum(make: Callable[[Var, Var], Stmt]) -> Stmt:
        return loop("i", tm, lambda i: loop("j", tn, lambda j: make(i, j), UNROLLED), UNROLLED)

    def column(t: Expr, j: Expr) -> Expr:
        """Neighbouring threads have neighbouring vectors of 4."""
        return t % across * 4 + j // 4 * (across * 4) + j % 4

    def one(number: Var) -> Stmt:
        by, bx = number // (n // bn), number % (n // bn)

        def copy(k0: Var, t: Var) -> Stmt:
            def of_a(e0: Var) -> Stmt:
                e: Expr = e0 * threads + t
                return store(a_tile, (e % bk, e // bk), load(a, by * bm + e // bk, k0 * bk + e % bk))

            def of_b(e0: Var) -> Stmt:
                e: Expr = (e0 * threads + t) * 4
                row, first = e // bn, e % bn
                one_vector = lambda v: store(b_tile, (row, first + v), load(b, k0 * bk + row, bx * bn + first + v))  # noqa: E731
                return loop("v", 4, one_vector, VECTORIZED, 4)

            return block(loop("e", bm * bk // threads, of_a, UNROLLED), loop("e", bn * bk // threads // 4, of_b, UNROLLED))

        def update(t: Var) -> Stmt:
            def step(k1: Var) -> Stmt:
                def add(i: Var, j: Var) -> Stmt:
                    x, y = load(a_tile, k1, t // across * tm + i), load(b_tile, k1, column(t, j))
                    return Store(sums, (t, i, j), load(sums, t, i, j) + x * y, "sums", Role.UPDATE)

                return each_sum(add)

            return loop("k1", bk, step, UNROLLED)

        def out(t: Var) -> Stmt:
            def vector(i: Var, j: Var) -> Stmt:
                def element(v: Var) -> Stmt:
                    value = maximum(load(sums, t, i, j * 4 + v), ZERO)
                    return store(c, (by * bm + t // across * tm + i, bx * bn + column(t, j * 4 + v)), value)

                return loop("v", 4, element, VECTORIZED, 4)

            return loop("i", tm, lambda i: loop("j", tn // 4, lambda j: vector(i, j), UNROLLED), UNROLLED)

        start = loop("t", threads, lambda t: each_sum(lambda i, j: Store(sums, (t, i, j), ZERO, "sums", Role.INIT)), THREAD)
        slices = loop(
            "k0",
            k // bk,
            lambda k0: block(loop("t", threads, lambda t: copy(k0, t), THREAD), loop("t", threads, update, THREAD)),
        )
        if stages == 1:
            return _allocated((a_tile, b_tile, sums), block(start, slices, loop("t", threads, out, THREAD)))
        ring = pipelined(slices, (a_tile, b_tile), stages)
        return Alloc(sums, block(start, ring, loop("t", threads, out, THREAD)))

    function = Function("product", (a, b, c), 1, loop("block", (m // bm) * (n // bn), one, BLOCK))
    barriers = 2 if stages == 1 else 1
    return Program(function, lambda a, b: np.maximum(a.astype(np.float64) @ b, 0), barriers, most_registers)


def warps_and_lanes(warps: int = 3, groups: int = 4) -> Program:
    """Loops over warps and lanes, with fewer of both than the widest phase has."""
    x, y, s = argument("X", groups, warps * 32), argument("Y", groups, 128), _shared("s", 128)

    def one(g: Var) -> Stmt:
        clear = loop("t", 128, lambda t: store(s, (127 - t,), ZERO), THREAD)
        fill = loop(
            "w",
            warps,
            lambda w: loop("l", 20, lambda lane: store(s, (w * 32 + lane,), load(x, g, w * 32 + lane)), LoopKind.LANE),
            LoopKind.WARP,
        )
        write = loop("t", 128, lambda t: store(y, (g, t), load(s, 127 - t)), THREAD)
        return Alloc(s, block(clear, fill, write))

    def meaning(x: Array) -> Array:
        result = np.zeros((groups, 128))
        for w in range(warps):
            result[:, w * 32 : w * 32 + 20] = x[:, w * 32 : w * 32 + 20]
        return result[:, ::-1]

    return Program(Function("warps_and_lanes", (x, y), 1, loop("g", groups, one, BLOCK)), meaning, 2, 40)


def integers() -> Program:
    """Of a row, how many are above 0: conversions, and a fold of another type."""
    rows, threads = 4, 64
    x, y = argument("X", rows, threads), argument("Y", rows, dtype="int64")
    count = Buffer("count", (threads,), "int64", Scope.PRIVATE)
    joined = Buffer("joined", (2,), "int64", Scope.SHARED)

    def row(r: Var) -> Stmt:
        mine = loop("t", threads, lambda t: store(count, (t,), cast(load(x, r, t) > 0.0, "int64")), THREAD)
        lanes = loop("t", threads, lambda t: If(t % 32 < 1, store(joined, (t // 32,), load(count, t))), THREAD)
        end = loop("t", threads, lambda t: If(t < 1, store(y, (r,), load(joined, 0) + load(joined, 1))), THREAD)
        return _allocated((count, joined), block(mine, fold(ReduceOp.SUM, count, count, 32), lanes, end))

    function = Function("integers", (x, y), 1, loop("r", rows, row, BLOCK))
    return Program(function, lambda x: (x > 0).sum(1), 1, 40)


#: Small, for what interprets them.
SMALL: Final = {
    "element_wise": element_wise(100, 8),
    "row_sums": row_sums(3, 100, 64),
    "softmax": softmax(2, 128, 64),
    "transpose": transpose(16, 8, 8, 4),
    "product": product(16, 32, 16, (16, 16, 8), (4, 4)),
    "ring": product(16, 32, 40, (16, 16, 8), (4, 4), stages=3),
    "warps_and_lanes": warps_and_lanes(),
    "integers": integers(),
}
#: Of the shapes that a GPU is given.
GOLDEN: Final = {
    "element_wise": element_wise(),
    "row_sums": row_sums(),
    "softmax": softmax(),
    "transpose": transpose(),
    "product": product(128, 128, 32, (128, 128, 16), (8, 8)),
    "ring": product(128, 128, 48, (128, 128, 8), (8, 8), stages=4, pads=(0, 4)),
    "ring_of_two": product(64, 64, 40, (32, 64, 8), (4, 8), stages=2),
    "swizzle": product(128, 128, 32, (128, 128, 8), (8, 8), stages=3, swizzle=8),
    "warps_and_lanes": warps_and_lanes(),
    "integers": integers(),
}
