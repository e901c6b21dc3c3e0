"""What the machine can do at best, measured: float32 multiply-adds, and bytes from each level of memory.

The loops are LLVM IR: independent chains of multiply-adds in registers; a sweep that reads; a sweep that copies.
"""

from __future__ import annotations

import ctypes
import math
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias

import llvmlite.binding as llvm
import numpy as np

from ansorlite.alignment import PAGE
from ansorlite.codegen.builder import Module
from ansorlite.codegen.machine import machine, optimise
from ansorlite.runtime.linker import Linked
from ansorlite.runtime.timing import turns_for
from ansorlite.target import Target

_Bytes: TypeAlias = np.ndarray[Any, Any]

#: Chains of multiply-adds: more than latency times units (4 x 2 on today's cores), few enough for the registers.
_CHAINS: Final = 12
#: Vectors in one step of a sweep.
_WAYS: Final = range(4)
#: Seconds of one attempt, and how many there are: the best counts, as nothing but other work on the machine slows one.
_SECONDS: Final = 0.005
_ATTEMPTS: Final = 60
_FEW: Final = 10
#: Seconds a work after which a few attempts are enough: one sweep of a large memory takes a tenth of a second.
_LONG: Final = 0.5


@dataclass(frozen=True)
class MemoryLevel:
    """One level of memory.

    Attributes:
        name: the cache that the sweep stays in.
        nbytes: how much it goes through, all threads together.
        read, copy: bytes a second; a copied byte counts twice, for it is read and written.
    """

    name: str
    nbytes: int
    read: float
    copy: float

    @property
    def bandwidth(self) -> float:
        """The larger of the two."""
        return max(self.read, self.copy)


@dataclass(frozen=True)
class Peaks:
    """The peaks of so many threads.

    Attributes:
        flops: float32 operations a second; a multiply-add is two.
        levels: from the fastest to main memory.
    """

    threads: int
    flops: float
    levels: tuple[MemoryLevel, ...]

    def level(self, nbytes: int) -> MemoryLevel:
        """The fastest that holds ``nbytes``."""
        return next((level for level in self.levels if nbytes <= level.nbytes), self.levels[-1])

    def seconds(self, flops: int, nbytes: int) -> float:
        """The roofline: the least time for so many operations on data that come and go once."""
        return max(flops / self.flops, nbytes / self.level(nbytes).bandwidth)

    def best(self, other: Peaks) -> Peaks:
        """The higher of each: whatever else runs on the machine can only lower a measured peak."""
        pairs = zip(self.levels, other.levels, strict=True)
        levels = (MemoryLevel(a.name, a.nbytes, max(a.read, b.read), max(a.copy, b.copy)) for a, b in pairs)
        return Peaks(self.threads, max(self.flops, other.flops), tuple(levels))


def measure_flops(target: Target, threads: int) -> float:
    """float32 operations a second of so many cores, roughly; takes a fifth of a second."""
    with Loops(target) as loops, ThreadPoolExecutor(threads) as pool:
        return Team(pool, threads).rates([loops.flops()], _FEW)[0]


def measure_peaks(target: Target, threads: int) -> Peaks:
    """Measure the peaks of ``threads`` cores; takes some two seconds."""
    footprints = _footprints(target, threads)
    with Loops(target) as loops, ThreadPoolExecutor(threads) as pool:
        data = aligned(max(footprints.values()))
        sweeps = [sweep(data, nbytes, threads) for nbytes in footprints.values() for sweep in (loops.reads, loops.copies)]
        flops, *rates = Team(pool, threads).rates([loops.flops(), *sweeps])
    levels = zip(footprints.items(), rates[::2], rates[1::2], strict=True)
    return Peaks(threads, flops, tuple(MemoryLevel(*level, read, copy) for level, read, copy in levels))


def _footprints(target: Target, threads: int) -> dict[str, int]:
    private = threads * target.l2
    shared = max(target.l3, 2 * private)
    return {"L1": threads * target.l1 // 2, "L2": private // 2, "L3": shared // 2, "memory": 4 * shared}


class Work(NamedTuple):
    """What threads do at the same time.

    Attributes:
        of: each thread, by its number: takes so many turns.
        amount: of what one turn of one thread is about.
    """

    of: Callable[[int], Callable[[int], None]]
    amount: int


class Team:
    """Threads that begin together."""

    def __init__(self, pool: ThreadPoolExecutor, threads: int) -> None:
        self._pool = pool
        self._threads = threads

    def rates(self, works: Sequence[Work], attempts: int = _ATTEMPTS) -> list[float]:
        """Of each work the best total of its amount a second.

        They take turns: so each is tried at moments all over the time that this takes, and what else is going on slows none
        throughout.
        """
        each = [[work.of(number) for number in range(self._threads)] for work in works]
        turns = [turns_for(partial(self._together, functions), _SECONDS) for functions in each]
        best, begin = [math.inf] * len(works), time.perf_counter()
        for attempt in range(attempts):
            if attempt >= _FEW and time.perf_counter() - begin > _LONG * len(works):
                break
            best = [min(least, self._together(f, n)) for least, f, n in zip(best, each, turns, strict=True)]
        return [self._threads * w.amount * n / least for w, n, least in zip(works, turns, best, strict=True)]

    def _together(self, works: list[Callable[[int], None]], turns: int) -> float:
        barrier = threading.Barrier(self._threads)

        def one(work: Callable[[int], None]) -> tuple[float, float]:
            barrier.wait()
            start = time.perf_counter()
            work(turns)
            return start, time.perf_counter()

        spans = list(self._pool.map(one, works))
        return max(end for _, end in spans) - min(start for start, _ in spans)


class Loops:
    """The compiled loops; ctypes lets other threads run while one of them is called.

    Attributes:
        chains: of multiply-adds.
        block: bytes that one step of a sweep moves.
        flops_a_turn: operations of one turn of :meth:`multiply_adds`.
        sink: one vector: what the chains begin and end with, and what a sweep that reads leaves.
    """

    def __init__(self, target: Target) -> None:
        lanes = target.vector_bytes // 4
        self.chains = _CHAINS
        self.block = len(_WAYS) * target.vector_bytes
        self.flops_a_turn = 1000 * _CHAINS * lanes * 2
        module = Module(target)
        module.define("multiply_adds", _multiply_adds(lanes))
        module.declare(f"<{lanes} x float> @llvm.fma.v{lanes}f32(<{lanes} x float>, <{lanes} x float>, <{lanes} x float>)")
        module.define("read", _read(lanes))
        module.define("copy", _copy(lanes))
        code = machine(target).emit_object(optimise(module.text(), target))
        library = llvm.JITLibraryBuilder().add_object_img(code)
        for symbol in ("multiply_adds", "read", "copy"):
            library.export_symbol(symbol)
        self._linked = linked = Linked(library, target)
        self.sink = aligned(target.vector_bytes)
        count, pointer = ctypes.c_int64, ctypes.c_void_p
        self._multiply_adds = ctypes.CFUNCTYPE(None, count, pointer)(linked["multiply_adds"])
        self._read = ctypes.CFUNCTYPE(None, count, pointer, count, pointer)(linked["read"])
        self._copy = ctypes.CFUNCTYPE(None, count, pointer, count, pointer)(linked["copy"])

    def __enter__(self) -> Loops:
        return self

    def __exit__(self, *_: object) -> None:
        del self._multiply_adds, self._read, self._copy, self._linked

    def multiply_adds(self, turns: int) -> None:
        """Take 1,000 steps in every chain a turn."""
        self._multiply_adds(1000 * turns, self.sink.ctypes.data)

    def reader(self, buffer: _Bytes, nbytes: int) -> Callable[[int], None]:
        """Reads ``nbytes`` of ``buffer`` a turn."""
        return lambda turns: self._read(nbytes // self.block, buffer.ctypes.data, turns, self.sink.ctypes.data)

    def copier(self, buffer: _Bytes, nbytes: int) -> Callable[[int], None]:
        """Copies the first half of ``buffer`` to its second: ``nbytes`` a turn, read and written."""
        half = nbytes // self.block // 2
        start = buffer.ctypes.data
        return lambda turns: self._copy(half, start, turns, start + half * self.block)

    def flops(self) -> Work:
        """:meth:`multiply_adds` of every thread, as operations."""
        return Work(lambda _: self.multiply_adds, self.flops_a_turn)

    def reads(self, data: _Bytes, nbytes: int, threads: int) -> Work:
        """:meth:`reader` of every thread, each of its part of ``nbytes`` of ``data``."""
        return self._sweeps(self.reader, data, nbytes, threads)

    def copies(self, data: _Bytes, nbytes: int, threads: int) -> Work:
        """:meth:`copier` of every thread, each of its part of ``nbytes`` of ``data``."""
        return self._sweeps(self.copier, data, nbytes, threads)

    def _sweeps(self, sweep: Callable[[_Bytes, int], Callable[[int], None]], data: _Bytes, nbytes: int, threads: int) -> Work:
        # As far apart as they can be, for cores fetch what lies ahead; each begins on a page.
        apart = len(data) // threads // PAGE * PAGE
        part = max(min(nbytes // threads, apart) // self.block, 1) * self.block
        return Work(lambda number: sweep(data[number * apart :], part), part)


def aligned(nbytes: int) -> _Bytes:
    """Bytes that begin on a page; all touched."""
    raw = np.ones(nbytes + PAGE, np.uint8)
    begin = -raw.ctypes.data % PAGE
    return raw[begin : begin + nbytes]


def _multiply_adds(lanes: int) -> str:
    """``void multiply_adds(int64 steps, void *sink)``: so many steps of every chain."""
    vector = f"<{lanes} x float>"
    chains = range(_CHAINS)
    phis = "\n".join(f"  %c{n} = phi {vector} [ %start, %entry ], [ %d{n}, %loop ]" for n in chains)
    body = "\n".join(
        f"  %d{n} = call {vector} @llvm.fma.v{lanes}f32({vector} %start, {vector} %start, {vector} %c{n})" for n in chains
    )
    sums = "\n".join(f"  %s{n} = fadd {vector} {f'%s{n - 1}' if n else '%start'}, %d{n}" for n in chains)
    return f"""define void @multiply_adds(i64 %steps, ptr %sink) #0 {{
entry:
  %start = load {vector}, ptr %sink, align 4
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
{phis}
{body}
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %steps
  br i1 %more, label %loop, label %end
end:
{sums}
  store {vector} %s{_CHAINS - 1}, ptr %sink, align 4
  ret void
}}"""


def _copy(lanes: int) -> str:
    """``void copy(int64 blocks, void *from, int64 turns, void *to)``: blocks of four vectors, all of them every turn."""
    vector = f"<{lanes} x i32>"
    body = "\n".join(
        f"  %q{n} = getelementptr {vector}, ptr %to, i64 %at{n}\n  store {vector} %v{n}, ptr %q{n}, align 4" for n in _WAYS
    )
    return _sweep("copy", vector, body=body)


def _read(lanes: int) -> str:
    """``void read(int64 blocks, void *from, int64 turns, void *to)``: folds all it reads into ``to``, so that it is read."""
    vector = f"<{lanes} x i32>"
    return _sweep(
        "read",
        vector,
        before="\n".join(f"  %o{n} = phi {vector} [ zeroinitializer, %entry ], [ %d{n}, %sweep_end ]" for n in _WAYS),
        carried="\n".join(f"  %c{n} = phi {vector} [ %o{n}, %sweep ], [ %d{n}, %loop ]" for n in _WAYS),
        body="\n".join(f"  %d{n} = xor {vector} %c{n}, %v{n}" for n in _WAYS),
        after=f"""  %f0 = xor {vector} %d0, %d1
  %f1 = xor {vector} %d2, %d3
  %f2 = xor {vector} %f0, %f1
  store {vector} %f2, ptr %to, align 4""",
    )


def _sweep(name: str, vector: str, *, body: str, before: str = "", carried: str = "", after: str = "") -> str:
    """A loop over blocks of four vectors inside a loop of turns; ``body`` uses %v0 ... %v3, which are at %at0 ... %at3."""
    loads = "\n".join(
        f"""  %at{n} = add i64 %first, {n}
  %p{n} = getelementptr {vector}, ptr %from, i64 %at{n}
  %v{n} = load {vector}, ptr %p{n}, align 4"""
        for n in _WAYS
    )
    return f"""define void @{name}(i64 %blocks, ptr %from, i64 %turns, ptr %to) #0 {{
entry:
  br label %sweep
sweep:
  %turn = phi i64 [ 0, %entry ], [ %turned, %sweep_end ]
{before}
  br label %loop
loop:
  %i = phi i64 [ 0, %sweep ], [ %next, %loop ]
{carried}
  %first = shl i64 %i, 2
{loads}
{body}
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %blocks
  br i1 %more, label %loop, label %sweep_end
sweep_end:
  call void asm sideeffect "", "~{{memory}}"()
  %turned = add i64 %turn, 1
  %again = icmp slt i64 %turned, %turns
  br i1 %again, label %sweep, label %end
end:
{after}
  ret void
}}"""
