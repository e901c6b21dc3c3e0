"""The programs that are timed on a GPU: loops with blocks and threads, compiled as all are.

A copy; multiply-adds on numbers of each thread's own; loads from shared memory; a chain of loads, each of which says where the
next one goes; loads of which each takes a sector; and copies ahead of runs of neighbours. All write what they compute to Y.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np

from ansorlite.loops.nodes import (
    Alloc,
    Await,
    Buffer,
    FetchGroup,
    For,
    Function,
    Load,
    LoopKind,
    Role,
    Scope,
    Stmt,
    Store,
    block,
    index,
)
from ansorlite.machine.gpu import SECTOR, Gpu
from ansorlite.te.expr import Expr, Var, const

#: Elements of float32 that a thread copies at once.
LANES: Final = 4
#: Sums of a thread: more than hide the latency of a multiply-add.
SUMS: Final = 16
#: Elements of float32 of a sector, and of int64 of a line of the caches.
SECTOR_ELEMENTS: Final = SECTOR // 4
_LINE: Final = 16
#: Chains that are followed, each by a thread in a block of its own.
_CHASERS: Final = 2
#: Bytes of a copy ahead, and vectors of it that a thread copies.
_COPIED: Final = 8 << 10
_VECTORS: Final = 4

#: Of a block and a thread: what the thread does.
_Phase = Callable[[Var, Var], Stmt]


@dataclass(frozen=True)
class Sizes:
    """Of the programs.

    Attributes:
        memory, cache: elements of float32 that are copied: far more than the cache holds, and few enough for it.
        steps: of what a thread computes.
        blocks: of that.
        threads: of a block.
        sectors: that are read again and again: more than the caches of a processor hold, and few enough for that of all.
        words: of shared memory that a block goes through.
        copies: that a block makes ahead.
    """

    memory: int
    cache: int
    steps: int
    blocks: int
    threads: int = 256
    sectors: int = 1 << 18
    words: int = 4096
    copies: int = 64

    @staticmethod
    def of(gpu: Gpu) -> Sizes:
        """Those that tell something of ``gpu``."""
        sectors = 1 << (gpu.l2 // (4 * SECTOR)).bit_length() - 1
        return Sizes(4 * gpu.l2, gpu.l2 // 32, 1024, 8 * gpu.processors, sectors=sectors)

    @property
    def work(self) -> int:
        """Numbers that all threads add up, each its own."""
        return self.blocks * self.threads * self.steps * SUMS


def copy(elements: int, threads: int) -> Function:
    """Each thread copies one vector."""
    x, y = _argument("X", elements), _argument("Y", elements)

    def vector(b: Var, t: Var) -> Stmt:
        first: Expr = (b * threads + t) * LANES
        return _loop("v", LANES, LoopKind.VECTORIZED, lambda v: Store(y, (first + v,), _load(x, first + v)), LANES)

    return _blocks("copy", (x, y), elements // (threads * LANES), threads, (), vector)


def multiply_adds(sizes: Sizes) -> Function:
    """Sums that do not wait for each other, of products of two numbers that a thread has."""
    threads = sizes.threads
    x, y, sums = _argument("X", threads), _argument("Y", sizes.blocks, threads), _sums(sizes)
    factors = Buffer("factors", (threads, 2), "float32", Scope.PRIVATE)

    def thread(b: Var, t: Var) -> Stmt:
        product = _load(factors, t, index(0)) * _load(factors, t, index(1))
        return block(
            Store(factors, (t, index(0)), _load(x, t)),
            Store(factors, (t, index(1)), _load(x, t) * const(0.5, "float32")),
            _added_up(sizes, sums, y, b, t, lambda _k, _j: product, start=_load(x, t)),
        )

    return _blocks("multiply_adds", (x, y), sizes.blocks, threads, (sums, factors), thread)


def shared_loads(sizes: Sizes) -> Function:
    """Neighbouring threads read neighbouring words, other ones in each step, and add them up."""
    threads = sizes.threads
    x, y, sums = _argument("X", sizes.words), _argument("Y", sizes.blocks, threads), _sums(sizes)
    words = Buffer("words", (sizes.words,), "float32", Scope.SHARED)

    def fill(_: Var, t: Var) -> Stmt:
        def word(n: Var) -> Stmt:
            return Store(words, (n * threads + t,), _load(x, n * threads + t))

        return _loop("n", sizes.words // threads, LoopKind.SERIAL, word)

    def thread(b: Var, t: Var) -> Stmt:
        return _added_up(sizes, sums, y, b, t, lambda k, j: _load(words, (k * 32 + j * threads + t) % sizes.words))

    return _blocks("shared_loads", (x, y), sizes.blocks, threads, (words, sums), fill, thread)


def sector_loads(sizes: Sizes) -> Function:
    """Each thread reads one number of a sector, of other ones in each step, and adds them up."""
    threads, stride = sizes.threads, sizes.blocks * sizes.threads
    x, y, sums = _argument("X", sizes.sectors * SECTOR_ELEMENTS), _argument("Y", sizes.blocks, threads), _sums(sizes)

    def thread(b: Var, t: Var) -> Stmt:
        def number(k: Var, j: Var) -> Expr:
            sector = ((k * SUMS + j) * stride + b * threads + t) % sizes.sectors
            return _load(x, sector * SECTOR_ELEMENTS)

        return _added_up(sizes, sums, y, b, t, number)

    return _blocks("sector_loads", (x, y), sizes.blocks, threads, (sums,), thread)


def chain(nbytes: int) -> np.ndarray[Any, Any]:
    """Of int64: where the next one is, from line to line in no order, round and round."""
    lines = nbytes // 8 // _LINE
    order = np.random.default_rng(0).permutation(lines)
    found = np.zeros(lines * _LINE, np.int64)
    found[order * _LINE] = np.roll(order, -1) * _LINE
    return found


def chase(elements: int, steps: int) -> Function:
    """Each load says where the next one goes."""
    x, y = Buffer("X", (elements,), "int64", Scope.ARGUMENT), Buffer("Y", (_CHASERS,), "int64", Scope.ARGUMENT)
    here = Buffer("here", (1,), "int64", Scope.PRIVATE)

    def thread(b: Var, t: Var) -> Stmt:
        return block(
            Store(here, (t,), b * _LINE),
            _loop("k", steps, LoopKind.SERIAL, lambda _: Store(here, (t,), _load(x, _load(here, t)))),
            Store(y, (b,), _load(here, t)),
        )

    return _blocks("chase", (x, y), _CHASERS, 1, (here,), thread)


def copies_ahead(nbytes: int, sizes: Sizes) -> Function:
    """Blocks copy rows of ``nbytes`` to shared memory, each with a gap behind it, again and again, and add up what is there."""
    columns, threads = nbytes // 4, _COPIED // 4 // LANES // _VECTORS
    rows = _COPIED // nbytes
    x, y = _argument("X", sizes.copies, rows, 2 * columns), _argument("Y", sizes.blocks, threads)
    tile = Buffer("tile", (rows, columns), "float32", Scope.SHARED)

    def fetch(k: Var, t: Var) -> Stmt:
        def vector(n: Var, v: Var) -> Stmt:
            at = ((n * threads + t) * LANES + v) // columns, ((n * threads + t) * LANES + v) % columns
            return Store(tile, at, _load(x, k, *at), "tile", Role.FETCH)

        def vectors(n: Var) -> Stmt:
            return _loop("v", LANES, LoopKind.VECTORIZED, lambda v: vector(n, v), LANES)

        return _loop("n", _VECTORS, LoopKind.UNROLLED, vectors)

    def add(b: Var, t: Var) -> Stmt:
        word = _load(tile, t * LANES // columns, t * LANES % columns)
        return Store(y, (b, t), _load(y, b, t) + word, "Y", Role.UPDATE)

    def one(b: Var) -> Stmt:
        def step(k: Var) -> Stmt:
            return block(FetchGroup(_threads(threads, partial(fetch, k))), Await(0), _threads(threads, partial(add, b)))

        start = _threads(threads, lambda t: Store(y, (b, t), const(0.0, "float32"), "Y", Role.INIT))
        return Alloc(tile, block(start, _loop("k", sizes.copies, LoopKind.SERIAL, step)))

    return Function("copies_ahead", (x, y), 1, _loop("b", sizes.blocks, LoopKind.BLOCK, one))


def _blocks(
    name: str, params: tuple[Buffer, Buffer], blocks: int, threads: int, own: Sequence[Buffer], *phases: _Phase
) -> Function:
    """Blocks whose threads go through ``phases`` together; each has buffers of its ``own``."""

    def one(b: Var) -> Stmt:
        body = block(*(_threads(threads, partial(phase, b)) for phase in phases))
        for buffer in reversed(own):
            body = Alloc(buffer, body)
        return body

    return Function(name, params, 1, _loop("b", blocks, LoopKind.BLOCK, one))


def _sums(sizes: Sizes) -> Buffer:
    """Those of each thread."""
    return Buffer("sums", (sizes.threads, SUMS), "float32", Scope.PRIVATE)


def _added_up(
    sizes: Sizes, sums: Buffer, y: Buffer, b: Var, t: Var, number: Callable[[Var, Var], Expr], start: Expr | None = None
) -> Stmt:
    """What a thread does: to each of its sums it adds a ``number`` in each step, which is told by both, and then adds up all.

    Args:
        start: of each sum; 0 where nothing is said.
    """
    zero = const(0.0, "float32")

    def each(make: Callable[[Var], Stmt]) -> Stmt:
        return _loop("j", SUMS, LoopKind.UNROLLED, make)

    def add(k: Var, j: Var) -> Stmt:
        return Store(sums, (t, j), _load(sums, t, j) + number(k, j), "sums", Role.UPDATE)

    return block(
        each(lambda j: Store(sums, (t, j), zero if start is None else start, "sums", Role.INIT)),
        _loop("k", sizes.steps, LoopKind.SERIAL, lambda k: each(partial(add, k))),
        Store(y, (b, t), zero, "Y", Role.INIT),
        each(lambda j: Store(y, (b, t), _load(y, b, t) + _load(sums, t, j), "Y", Role.UPDATE)),
    )


def _threads(count: int, body: Callable[[Var], Stmt]) -> For:
    return _loop("t", count, LoopKind.THREAD, body)


def _loop(name: str, extent: int, kind: LoopKind, body: Callable[[Var], Stmt], lanes: int = 1) -> For:
    var = Var(name)
    return For(var, index(extent), kind, body(var), lanes)


def _load(buffer: Buffer, *indices: Expr) -> Load:
    return Load(buffer, indices, buffer.dtype)


def _argument(name: str, *shape: int) -> Buffer:
    return Buffer(name, shape, "float32", Scope.ARGUMENT)
