"""What a GPU does of what its data sheet says, measured with programs of our own: a minute at most.

Each program is loops with blocks and threads, compiled as all are: a copy, in memory and within the cache that all share; a copy
of nearly nothing, which is a launch; multiply-adds on numbers of each thread's own; loads from shared memory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from ansorlite.errors import CalibrationError
from ansorlite.loops.nodes import Alloc, Buffer, For, Function, Load, LoopKind, Role, Scope, Stmt, Store, block, index
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
_TIMING: Final = TimingSettings(min_seconds=0.05, min_repeats=5)


@dataclass(frozen=True)
class Sizes:
    """Of the programs.

    Attributes:
        memory, cache: elements of float32 that are copied: far more than the cache holds, and few enough for it.
        steps: of what a thread computes.
        blocks: of that.
        threads: of a block.
    """

    memory: int
    cache: int
    steps: int
    blocks: int
    threads: int = _THREADS

    @staticmethod
    def of(gpu: Gpu) -> Sizes:
        """Those that tell something of ``gpu``."""
        return Sizes(4 * gpu.l2, gpu.l2 // 32, 1024, 8 * gpu.processors)


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
    return GpuRates(bandwidth, flops, launch, words / (gpu.processors * clock), cached)


def _seconds(target: Target, function: Function, elements: int) -> float:
    """Of one call on so many elements."""
    kernel = kernel_on(build(function, target), function.params, target, None)
    return kernel.benchmark(np.ones(elements, np.float32), settings=_TIMING).median


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
