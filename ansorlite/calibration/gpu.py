"""What a GPU does of what its data sheet says, measured with programs of our own: a minute at most.

Each program is loops with blocks and threads, compiled as all are: a copy, in memory and within the cache that all share; a copy
of nearly nothing, which is a launch; multiply-adds on numbers of each thread's own; loads from shared memory; a chain of loads,
each of which says where the next one goes; loads of which each takes a sector; and copies ahead of runs of neighbours, past the
registers and in bulk.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from ansorlite.errors import CalibrationError
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
from ansorlite.machine.gpu import Gpu
from ansorlite.machine.kept_gpu import GpuRates
from ansorlite.platforms import build
from ansorlite.programs.build import kernel_on
from ansorlite.runtime.timing import TimingSettings
from ansorlite.target import Target
from ansorlite.te.expr import Expr, Var, const

_THREADS: Final = 256
_LANES: Final = 4
#: Sums of a thread: more than hide the latency of a multiply-add.
_CHAINS: Final = 16
#: Words of shared memory that a block goes through; each thread reads so many of them in a step.
_WORDS: Final = 4096
_READS: Final = 16
#: Elements of float32 of a sector, and of int64 of a line of the caches.
_SECTOR: Final = 8
_LINE: Final = 16
#: Chains that are followed, each by a thread in a block of its own.
_CHASERS: Final = 2
#: Bytes of runs that are tried, of a copy of so many bytes, which is made so often.
_RUNS: Final = (64, 128, 256, 512, 1024)
_COPIED: Final = 8 << 10
_COPIES: Final = 64
_TIMING: Final = TimingSettings(min_seconds=0.05, min_repeats=5)


@dataclass(frozen=True)
class Sizes:
    """Of the programs.

    Attributes:
        memory, cache: elements of float32 that are copied: far more than the cache holds, and few enough for it.
        steps: of what a thread computes.
        blocks: of that.
        threads: of a block.
        sectors: that are read again and again: more than the caches of a processor hold, and few enough for that of all.
    """

    memory: int
    cache: int
    steps: int
    blocks: int
    threads: int = _THREADS
    sectors: int = 1 << 18

    @staticmethod
    def of(gpu: Gpu) -> Sizes:
        """Those that tell something of ``gpu``."""
        sectors = 1 << (gpu.l2 // (4 * 4 * _SECTOR)).bit_length() - 1
        return Sizes(4 * gpu.l2, gpu.l2 // 32, 1024, 8 * gpu.processors, sectors=sectors)


def calibrate_gpu(target: Target, sizes: Sizes | None = None, say: Callable[[str], None] = lambda _: None) -> GpuRates:
    """Measure ``target``, a GPU of this machine.

    Args:
        sizes: of the programs.
        say: is told what is being measured.

    Raises:
        CalibrationError: it cannot be measured.
        TargetError, MemoryLimitError: it is not here, or has no room.
    """
    gpu = target.gpu
    if gpu is None:
        raise CalibrationError(f"{target.key} is no GPU")
    sizes = sizes or Sizes.of(gpu)
    say("launches")
    launch = _seconds(target, _copy(_LANES, 1), _LANES)
    say("memory")
    bandwidth = _copied(target, sizes.memory, sizes.threads, launch)
    say("the cache that all share")
    cached = _copied(target, sizes.cache, sizes.threads, launch)
    say("multiply-adds")
    work = sizes.blocks * sizes.threads * sizes.steps
    flops = 2.0 * work * _CHAINS / _beyond(_seconds(target, _multiply_adds(sizes), sizes.threads), launch)
    say("shared memory")
    words = work * _READS / _beyond(_seconds(target, _shared_loads(sizes), _WORDS), launch)
    # A processor does two operations of a lane in a cycle.
    clock = flops / (2.0 * gpu.processors * gpu.lanes)
    say("how long a load takes")
    chain = _chain(sizes.memory * 4)
    cold = replace(_TIMING, flush_bytes=2 * gpu.l2)
    waited = _beyond(_seconds(target, _chase(chain.size, sizes.steps), chain, cold), launch)
    say("sectors")
    read = work * _READS * _SECTOR * 4
    sectors = read / _beyond(_seconds(target, _sector_loads(sizes), sizes.sectors * _SECTOR), launch)
    say("bulk copies")
    bulk = _worth_it({nbytes: _of_runs(target, nbytes, sizes.blocks) for nbytes in _RUNS}) if gpu.bulk_bytes else 0
    per_cycle = gpu.processors * clock
    return GpuRates(bandwidth, flops, launch, words / per_cycle, cached, waited / sizes.steps * clock, sectors / per_cycle, bulk)


def _seconds(
    target: Target, function: Function, given: int | np.ndarray[Any, Any], settings: TimingSettings | None = None
) -> float:
    """Of one call on an array, or on so many elements."""
    kernel = kernel_on(build(function, target), function.params, target, None)
    array = np.ones(given, np.float32) if isinstance(given, int) else given
    return kernel.benchmark(array, settings=settings or _TIMING).median


def _of_runs(target: Target, nbytes: int, blocks: int) -> tuple[float, float]:
    """Seconds that copies of such runs take: past the registers, and in bulk."""
    assert target.gpu is not None
    function = _copies_ahead(nbytes, blocks)
    elements = function.params[0].size
    singly, bulk = (
        _seconds(replace(target, gpu=replace(target.gpu, bulk_bytes=least)), function, elements) for least in (0, nbytes)
    )
    return singly, bulk


def _worth_it(found: Mapping[int, tuple[float, float]]) -> int:
    """From how many bytes on bulk copies take no longer than others; more than were tried where they always do."""
    least = 2 * max(found)
    for nbytes in sorted(found, reverse=True):
        singly, bulk = found[nbytes]
        if bulk > singly:
            break
        least = nbytes
    return least


def _beyond(seconds: float, launch: float) -> float:
    """What a program takes besides being launched."""
    if seconds <= launch:
        raise CalibrationError("a program took no longer than its launch; calibrate again when nothing else runs on the GPU")
    return seconds - launch


def _copied(target: Target, elements: int, threads: int, launch: float) -> float:
    """Bytes a second, both ways counted."""
    whole = elements // (threads * _LANES) * threads * _LANES
    return 2.0 * 4 * whole / _beyond(_seconds(target, _copy(whole, threads), whole), launch)


def _loop(name: str, extent: int, kind: LoopKind, body: Callable[[Var], Stmt], lanes: int = 1) -> For:
    var = Var(name)
    return For(var, index(extent), kind, body(var), lanes)


def _load(buffer: Buffer, *indices: Expr) -> Load:
    return Load(buffer, indices, buffer.dtype)


def _argument(name: str, *shape: int) -> Buffer:
    return Buffer(name, shape, "float32", Scope.ARGUMENT)


def _copy(elements: int, threads: int) -> Function:
    """Each thread copies one vector."""
    x, y = _argument("X", elements), _argument("Y", elements)

    def vector(b: Var, t: Var) -> Stmt:
        first: Expr = (b * threads + t) * _LANES
        return _loop("v", _LANES, LoopKind.VECTORIZED, lambda v: Store(y, (first + v,), _load(x, first + v)), _LANES)

    blocks = elements // (threads * _LANES)
    body = _loop("b", blocks, LoopKind.BLOCK, lambda b: _loop("t", threads, LoopKind.THREAD, lambda t: vector(b, t)))
    return Function("copy", (x, y), 1, body)


def _multiply_adds(sizes: Sizes) -> Function:
    """Sums that do not wait for each other, of products of two numbers that a thread has."""
    threads = sizes.threads
    x, y = _argument("X", threads), _argument("Y", sizes.blocks, threads)
    sums = Buffer("sums", (threads, _CHAINS), "float32", Scope.PRIVATE)
    factors = Buffer("factors", (threads, 2), "float32", Scope.PRIVATE)

    def each(make: Callable[[Var], Stmt]) -> Stmt:
        return _loop("j", _CHAINS, LoopKind.UNROLLED, make)

    def thread(b: Var, t: Var) -> Stmt:
        def add(j: Var) -> Stmt:
            product = _load(factors, t, index(0)) * _load(factors, t, index(1))
            return Store(sums, (t, j), _load(sums, t, j) + product, "sums", Role.UPDATE)

        def total(j: Var) -> Stmt:
            return Store(y, (b, t), _load(y, b, t) + _load(sums, t, j), "Y", Role.UPDATE)

        return block(
            Store(factors, (t, index(0)), _load(x, t)),
            Store(factors, (t, index(1)), _load(x, t) * const(0.5, "float32")),
            each(lambda j: Store(sums, (t, j), _load(x, t), "sums", Role.INIT)),
            _loop("k", sizes.steps, LoopKind.SERIAL, lambda _: each(add)),
            Store(y, (b, t), const(0.0, "float32"), "Y", Role.INIT),
            each(total),
        )

    def one(b: Var) -> Stmt:
        return Alloc(sums, Alloc(factors, _loop("t", threads, LoopKind.THREAD, lambda t: thread(b, t))))

    return Function("multiply_adds", (x, y), 1, _loop("b", sizes.blocks, LoopKind.BLOCK, one))


def _shared_loads(sizes: Sizes) -> Function:
    """Neighbouring threads read neighbouring words, other ones in each step, and add them up."""
    threads = sizes.threads
    x, y = _argument("X", _WORDS), _argument("Y", sizes.blocks, threads)
    words, sums = Buffer("words", (_WORDS,), "float32", Scope.SHARED), Buffer("sums", (threads, _READS), "float32", Scope.PRIVATE)

    def fill(t: Var) -> Stmt:
        def word(n: Var) -> Stmt:
            return Store(words, (n * threads + t,), _load(x, n * threads + t))

        return _loop("n", _WORDS // threads, LoopKind.SERIAL, word)

    def thread(b: Var, t: Var) -> Stmt:
        def each(make: Callable[[Var], Stmt]) -> Stmt:
            return _loop("j", _READS, LoopKind.UNROLLED, make)

        def read(k: Var, j: Var) -> Stmt:
            word = _load(words, (k * 32 + j * threads + t) % _WORDS)
            return Store(sums, (t, j), _load(sums, t, j) + word, "sums", Role.UPDATE)

        return block(
            each(lambda j: Store(sums, (t, j), const(0.0, "float32"), "sums", Role.INIT)),
            _loop("k", sizes.steps, LoopKind.SERIAL, lambda k: each(lambda j: read(k, j))),
            Store(y, (b, t), const(0.0, "float32"), "Y", Role.INIT),
            each(lambda j: Store(y, (b, t), _load(y, b, t) + _load(sums, t, j), "Y", Role.UPDATE)),
        )

    def one(b: Var) -> Stmt:
        phases = block(_loop("t", threads, LoopKind.THREAD, fill), _loop("t", threads, LoopKind.THREAD, lambda t: thread(b, t)))
        return Alloc(words, Alloc(sums, phases))

    return Function("shared_loads", (x, y), 1, _loop("b", sizes.blocks, LoopKind.BLOCK, one))


def _chain(nbytes: int) -> np.ndarray[Any, Any]:
    """Of int64: where the next one is, from line to line in no order, round and round."""
    lines = nbytes // 8 // _LINE
    order = np.random.default_rng(0).permutation(lines)
    found = np.zeros(lines * _LINE, np.int64)
    found[order * _LINE] = np.roll(order, -1) * _LINE
    return found


def _chase(elements: int, steps: int) -> Function:
    """Each load says where the next one goes."""
    x, y = Buffer("X", (elements,), "int64", Scope.ARGUMENT), Buffer("Y", (_CHASERS,), "int64", Scope.ARGUMENT)
    here = Buffer("here", (1,), "int64", Scope.PRIVATE)

    def thread(b: Var, t: Var) -> Stmt:
        return block(
            Store(here, (t,), b * _LINE),
            _loop("k", steps, LoopKind.SERIAL, lambda _: Store(here, (t,), _load(x, _load(here, t)))),
            Store(y, (b,), _load(here, t)),
        )

    def one(b: Var) -> Stmt:
        return Alloc(here, _loop("t", 1, LoopKind.THREAD, lambda t: thread(b, t)))

    return Function("chase", (x, y), 1, _loop("b", _CHASERS, LoopKind.BLOCK, one))


def _sector_loads(sizes: Sizes) -> Function:
    """Each thread reads one number of a sector, of other ones in each step, and adds them up."""
    threads, stride = sizes.threads, sizes.blocks * sizes.threads
    x, y = _argument("X", sizes.sectors * _SECTOR), _argument("Y", sizes.blocks, threads)
    sums = Buffer("sums", (threads, _READS), "float32", Scope.PRIVATE)

    def each(make: Callable[[Var], Stmt]) -> Stmt:
        return _loop("j", _READS, LoopKind.UNROLLED, make)

    def thread(b: Var, t: Var) -> Stmt:
        def read(k: Var, j: Var) -> Stmt:
            sector = ((k * _READS + j) * stride + b * threads + t) % sizes.sectors
            return Store(sums, (t, j), _load(sums, t, j) + _load(x, sector * _SECTOR), "sums", Role.UPDATE)

        return block(
            each(lambda j: Store(sums, (t, j), const(0.0, "float32"), "sums", Role.INIT)),
            _loop("k", sizes.steps, LoopKind.SERIAL, lambda k: each(lambda j: read(k, j))),
            Store(y, (b, t), const(0.0, "float32"), "Y", Role.INIT),
            each(lambda j: Store(y, (b, t), _load(y, b, t) + _load(sums, t, j), "Y", Role.UPDATE)),
        )

    def one(b: Var) -> Stmt:
        return Alloc(sums, _loop("t", threads, LoopKind.THREAD, lambda t: thread(b, t)))

    return Function("sector_loads", (x, y), 1, _loop("b", sizes.blocks, LoopKind.BLOCK, one))


def _copies_ahead(nbytes: int, blocks: int) -> Function:
    """Blocks copy rows to shared memory, each with a gap behind it, again and again, and add up what is there."""
    columns, threads = nbytes // 4, _COPIED // 4 // _LANES // 4
    rows = _COPIED // nbytes
    x, y = _argument("X", _COPIES, rows, 2 * columns), _argument("Y", blocks, threads)
    tile = Buffer("tile", (rows, columns), "float32", Scope.SHARED)

    def fetch(k: Var, t: Var) -> Stmt:
        def vector(n: Var, v: Var) -> Stmt:
            at = ((n * threads + t) * _LANES + v) // columns, ((n * threads + t) * _LANES + v) % columns
            return Store(tile, at, _load(x, k, *at), "tile", Role.FETCH)

        return _loop("n", 4, LoopKind.UNROLLED, lambda n: _loop("v", _LANES, LoopKind.VECTORIZED, lambda v: vector(n, v), _LANES))

    def add(b: Var, t: Var) -> Stmt:
        word = _load(tile, t * _LANES // columns, t * _LANES % columns)
        return Store(y, (b, t), _load(y, b, t) + word, "Y", Role.UPDATE)

    def one(b: Var) -> Stmt:
        def step(k: Var) -> Stmt:
            copy = FetchGroup(_loop("t", threads, LoopKind.THREAD, lambda t: fetch(k, t)))
            return block(copy, Await(0), _loop("t", threads, LoopKind.THREAD, lambda t: add(b, t)))

        start = _loop("t", threads, LoopKind.THREAD, lambda t: Store(y, (b, t), const(0.0, "float32"), "Y", Role.INIT))
        return Alloc(tile, block(start, _loop("k", _COPIES, LoopKind.SERIAL, step)))

    return Function("copies_ahead", (x, y), 1, _loop("b", blocks, LoopKind.BLOCK, one))
