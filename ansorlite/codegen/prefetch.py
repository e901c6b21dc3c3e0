"""What the next iterations of a sum in registers load is fetched while this one multiplies.

Packed operands are read from front to back, but the machine's own prefetching ends with each page and is slow to begin again. A
loop that computes more than it loads has room for prefetches, which take the place of a load each. What a loop around it reads
again in each of its iterations, a panel that many tiles have in common, is in the first cache, and is not fetched; nor is what is
read so slowly that a line would be asked for more than once. Nothing is read by prefetches, so they may run past the end of a
buffer.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from ansorlite.alignment import CACHE_LINE
from ansorlite.codegen.architecture import architecture_of
from ansorlite.codegen.context import Context, Counter, Lanes, Stream
from ansorlite.te import dtypes

#: LLVM's names for where a line is wanted.
FIRST_CACHE: Final = 3
SECOND_CACHE: Final = 2

#: Bytes of an iteration, at most: straight-line code of 34 lines, of a 3x3 convolution, took 1.8 times as long with prefetches.
_MOST: Final = 512


def note(c: Context, pointer: str, dtype: str, first: int, stride: int | None, lanes: Lanes | None) -> None:
    """A load was written: of element ``first`` beyond ``pointer``, or of lanes from there, ``stride`` apart if that is known."""
    stream = c.streams.get(pointer) if architecture_of(c.target).ahead else None
    if stream is None:
        return
    if lanes is not None and (stride is None or stride < 0):
        stream.even = False
    last = first + (0 if lanes is None or stride is None else (lanes.count - 1) * stride)
    size = dtypes.size(dtype)
    stream.loads.add((first * size, (last + 1) * size))


def emit(c: Context, counter: Counter) -> None:
    """At the end of a loop's body: prefetches of what it reads continuously, if there is room for all of them."""
    _, trips = c.loops[-1]
    distance = architecture_of(c.target).ahead
    own = {pointer: stream for pointer, stream in c.streams.items() if stream.counter is counter}
    loads = sum(len(stream.loads) for stream in own.values())
    for pointer in own:
        del c.streams[pointer]
    if math.isinf(trips):
        return
    kept = _kept(own, c.loops, c.target.l1)
    lines = [
        (pointer, number)
        for pointer, stream in own.items()
        if pointer not in kept and stream.continuous and CACHE_LINE <= stream.step <= _MOST and trips * stream.step >= distance
        for number in range(-(-stream.step // CACHE_LINE))
    ]
    if loads + len(lines) >= c.registers.stores:
        return
    for pointer, number in lines:
        line(c, c.b.op(f"getelementptr i8, ptr {pointer}, i64 {distance + number * CACHE_LINE}"), FIRST_CACHE)


def _kept(streams: Mapping[str, Stream], loops: Sequence[tuple[int, float]], room: int) -> set[str]:
    """Those that find in a first cache of ``room`` bytes what an earlier iteration of one of ``loops`` has read."""
    read: dict[str, float] = {pointer: min(abs(each.step), CACHE_LINE * len(each.loads)) for pointer, each in streams.items()}
    kept: set[str] = set()
    inside = math.inf
    for layer, iterations in reversed(loops):
        if sum(read.values()) > room:
            break
        for pointer, stream in streams.items():
            if any(layer <= depth < inside for depth in stream.depends):
                read[pointer] *= iterations
            else:
                kept.add(pointer)
        inside = layer
    return kept


def further(c: Context, pointer: str, nbytes: int, distance: int) -> None:
    """Beside a load of so many bytes: ask for as many from ``distance`` on, into the second cache; not where that would be parts
    of lines, each of which would be asked for again and again."""
    for begin in range(0, nbytes - nbytes % CACHE_LINE, CACHE_LINE):
        line(c, c.b.op(f"getelementptr i8, ptr {pointer}, i64 {distance + begin}"), SECOND_CACHE)


def line(c: Context, pointer: str, cache: int) -> None:
    """Ask for the line at ``pointer``: into the first cache, or the second."""
    if not architecture_of(c.target).ahead:
        return
    c.b.module.declare("void @llvm.prefetch.p0(ptr, i32, i32, i32)")
    c.b.do(f"call void @llvm.prefetch.p0(ptr {pointer}, i32 0, i32 {cache}, i32 1)")
