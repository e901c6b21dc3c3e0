"""All constants of this machine that loops can tell, measured in less than half a minute.

What a sleeping thread team costs the first parallel loop is not among them: it is a matter of how often the caller lets the team
sleep (in a virtual machine, waking one takes as long as a small kernel).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Final

from ansorlite.alignment import CACHE_LINE, PAGE
from ansorlite.calibration import core, memory, parallel, tiles
from ansorlite.calibration.stopwatch import Stopwatch, Storage, storage
from ansorlite.machine.constants import MachineConstants
from ansorlite.runtime.peaks import Loops, Team
from ansorlite.target import Target
from ansorlite.te.ops import DOTS

CORE: Final[Mapping[str, core.Body]] = {
    body.__name__: body
    for body in (
        core.clock, core.issue, core.arithmetic, core.half, core.latency, core.add_latency, core.div, core.math, core.convert,
        core.load, core.broadcast, core.gather,
        core.scatter, core.masked, core.masked_store, core.crossing, core.store, core.forwarding, core.update, core.move,
        core.spill, core.branch,
    )
}  # fmt: skip
#: Instructions of straight-line code that are tried.
_CODE: Final = (512, 1024, 1536, 2048, 3072, 4096, 6144, 8192)
#: What no longer counts as full speed.
_SLOWER: Final = 1.2
#: By what share of the larger two passes may differ, or else by so many cycles, which no program notices.
_ALIKE: Final = 0.2
_NOTHING: Final = 0.02
#: Lines of a run when the start of one is timed, and when one is that ends before a page does.
_RUN: Final = 2
_SHORT_RUN: Final = 16
#: Bytes of the third cache that runs are read from, at most.
_RUNS: Final = 1 << 23
#: Runs side by side that are tried, and the lines of each that are read before the next one's.
_STREAMS: Final = (4, 8, 16, 32, 64)
_PIECE: Final = 4
#: How often as many bytes as no cache holds are read in such runs, and in order; fewer are read more often.
_SWEEPS: Final = 8
#: How often each rate is measured; and that of the last cache and of memory, of which a sweep may take a tenth of a second.
_ATTEMPTS: Final = 20
_FAR_ATTEMPTS: Final = 6
#: So few that a line of each is in the first cache.
_PAGES: Final = (16, 32, 40, 48, 64, 72, 96, 128, 160, 192, 256)
#: Shares of a cache that a sweep fills; the first is all in it.
_SHARES: Final = (0.5, 0.75, 1.0)


def calibrate(target: Target, start: MachineConstants, say: Callable[[str], None] = lambda _: None) -> MachineConstants:
    """Measure ``target``, which is the machine that this runs on, in two passes: what another guest of it does comes and goes.

    Args:
        start: where the constants that are fitted to programs, not measured, are taken from, and those on which passes differ.
        say: is told what is being measured, and on what passes differ.
    """
    instructions, data = _instructions(target), storage(_most(target))
    found = _measured(target, start, instructions, data, lambda what: say(f"{what}, the first time"))
    again = _measured(target, start, instructions, data, lambda what: say(f"{what}, once more"))
    row, unsteady = agreed(start, found, again)
    if unsteady:
        say(f"done; two passes differ on {', '.join(unsteady)}, which stay as they were")
    return row


def agreed(start: MachineConstants, one: MachineConstants, other: MachineConstants) -> tuple[MachineConstants, list[str]]:
    """The mean of two measurements; of constants on which they differ, ``start``'s, and the names of these."""
    row = {name: (value, getattr(other, name)) for name, value in one.as_dict().items()}
    same = {name for name, both in row.items() if math.isclose(*both, rel_tol=_ALIKE, abs_tol=_NOTHING)}
    means = {name: statistics.mean(both) for name, both in row.items() if name in same}
    return replace(start, **means), [name for name in row if name not in same]


def _measured(
    target: Target, start: MachineConstants, instructions: Stopwatch, data: Storage, say: Callable[[str], None]
) -> MachineConstants:
    """One pass; all loops about memory read ``data``, which takes a second to touch where the last cache is large."""
    say("instructions")
    found = _core(target, start, instructions.seconds())
    say("caches and memory")
    found = _memory(target, found, data)
    say("parallel loops")
    return _coherence(target, _regions(target, found))


def _instructions(target: Target) -> Stopwatch:
    """Loops about instructions: the straight-line ones take seconds to compile."""
    # Operations differ where they are not one instruction: that of bytes counts which is preferred, as quantised models have it.
    preferred = min(target.dots, key=lambda op: DOTS[op][0].bits, default=None)
    dots = {} if preferred is None else {"dot": core.dot_product(preferred)}
    code = {f"code{count}": core.straight(count) for count in _CODE}
    return Stopwatch(target, {**CORE, **dots, **code, **_matrix(target)}, storage(max(1 << 16, 2 * target.l1)))


def _matrix(target: Target) -> Mapping[str, core.Body]:
    """Loops about matrix units, where there are any: products of all kinds take as long."""
    return tiles.bodies(min(target.matrix_dots, key=str)) if target.matrix_dots else {}


def _core(target: Target, start: MachineConstants, seconds: Mapping[str, float]) -> MachineConstants:
    clock = 1.0 / seconds["clock"]
    cycles = {name: taken * clock for name, taken in seconds.items()}
    beyond = core.too_many(target)
    kept, decode = straight_line({count: cycles[f"code{count}"] for count in _CODE}, cycles["issue"])
    return replace(
        start,
        clock=clock,
        issue=1.0 / cycles["issue"],
        code=kept,
        decode=decode,
        **{name: cycles[name] for name in ("arithmetic", "div", "math", "convert", "latency", "add_latency", "load", "store")},
        **(_tiles(cycles) if target.matrix_dots else {}),
        **{name: cycles[name] for name in ("broadcast", "gather", "scatter", "update", "move", "branch", "forwarding")},
        dot=cycles.get("dot", start.dot),
        half=min(cycles["half"] / cycles["arithmetic"], 1.0),
        masked=max(cycles["masked"] - cycles["load"], 0.0),
        masked_store=max(cycles["masked_store"] - cycles["store"], 0.0),
        crossing=max(cycles["crossing"] - cycles["load"], 0.0),
        spill=max((cycles["spill"] - cycles["arithmetic"]) * (target.vector_registers + beyond) / beyond, 0.0),
    )


def _tiles(cycles: Mapping[str, float]) -> Mapping[str, float]:
    """What is said of matrix units, by the cycles that each of their loops takes."""
    moved = cycles["tile_moved"] - tiles.STEPS * cycles["tile_product"] - cycles["tile_load"]
    return {name: cycles[name] for name in ("tile_product", "tile_latency", "tile_load")} | {"tile_move": max(moved, 0.0)}


def straight_line(cycles: Mapping[int, float], issue: float) -> tuple[float, float]:
    """How many instructions are kept decoded, and others come a cycle, by the cycles of each where there are so many.

    What is kept is what was used last: as soon as code does not fit, hardly any of it is found when its turn comes again. So the
    longest counts that was not slower, and nothing is made of those that were in part.
    """
    longest, fast = max(cycles), min(cycles.values())
    kept = max(count for count, each in cycles.items() if each <= _SLOWER * fast)
    return float(kept), 1.0 / (issue if kept == longest else cycles[longest])


def _memory(target: Target, c: MachineConstants, data: Storage) -> MachineConstants:
    c = _bandwidths(target, c, data)
    l2, l3 = target.l2 // 2, min(target.l3 // 2, _RUNS)
    bodies: dict[str, core.Body] = {"l2_run": memory.runs(l2, _RUN), "l3_run": memory.runs(l3, _RUN)}
    bodies |= {f"pages{count}": memory.pages(count) for count in _PAGES}
    seconds = Stopwatch(target, bodies, data).seconds()
    cycles = {name: taken * c.clock for name, taken in seconds.items()}
    waits = [cycles[f"pages{count}"] for count in _PAGES]
    reached = [count for count, wait in zip(_PAGES, waits, strict=True) if wait <= (min(waits) + max(waits)) / 2]
    return replace(
        c,
        near_overlap=_overlap(target, c, data, target.l1 // 4, target.l2 // 2, c.l2_bytes),
        far_overlap=_overlap(target, c, data, target.l2 // 2, _third(target), c.l3_bytes),
        tlb_pages=float(max(reached)),
        page=waits[-1] - min(waits),
        l2_run=max(cycles["l2_run"] - _RUN * CACHE_LINE / c.l2_bytes, 0.0),
        l3_run=max(cycles["l3_run"] - _RUN * CACHE_LINE / c.l3_bytes, 0.0),
        l3_short=_short(target, data, _third(target)),
        memory_short=_short(target, data, _far(target)),
        streams=_streams(target, data, _third(target)),
    )


def _short(target: Target, data: Storage, nbytes: int) -> float:
    """What reading so many bytes in runs of some lines takes beyond reading them in order, as a share of that.

    Two products of each vector keep a core from looking ahead beyond a run, as the work of most programs does.
    """
    seconds = _swept(target, data, {"short": memory.scattered(nbytes, _SHORT_RUN, 2), "long": memory.streamed(nbytes, 2)}, nbytes)
    return max(seconds["short"] / seconds["long"] - 1.0, 0.0)


def _streams(target: Target, data: Storage, nbytes: int) -> float:
    """How many runs side by side, together so many bytes long, are read as fast as a few."""
    seconds = _swept(target, data, {f"beside{count}": memory.beside(nbytes, count, _PIECE, 2) for count in _STREAMS}, nbytes)
    fast = min(seconds.values())
    return float(max(count for count in _STREAMS if seconds[f"beside{count}"] <= _SLOWER * fast))


def _swept(target: Target, data: Storage, bodies: Mapping[str, core.Body], nbytes: int) -> dict[str, float]:
    """Seconds of each vector, where loops read so many bytes again and again."""
    return Stopwatch(target, bodies, data).sweeps(nbytes // target.vector_bytes, _SWEEPS * _far(target) // nbytes)


def _overlap(target: Target, c: MachineConstants, data: Storage, within: int, beyond: int, rate: float) -> float:
    """The share of reading from beyond a cache, or of the arithmetic on what is read, that the other does not hide.

    Both take about as long here, so that most of it shows. What is read in order is fetched ahead, what is read in short runs is
    not; programs do both, and the mean of the two counts.

    Args:
        within, beyond: bytes that are in the cache, and bytes that are in the next one.
        rate: bytes a cycle that come from there.
    """
    products = min(max(round(target.vector_bytes / rate / c.arithmetic), 1), target.vector_registers // 2)
    bodies: dict[str, core.Body] = {}
    for name, nbytes, count in (("busy", within, products), ("traffic", beyond, 1), ("both", beyond, products)):
        bodies[f"{name}_streamed"] = memory.streamed(nbytes, count)
        bodies[f"{name}_scattered"] = memory.scattered(nbytes, _RUN, count)
    seconds = Stopwatch(target, bodies, data).seconds()
    shares = []
    for order in ("streamed", "scattered"):
        shorter, longer = sorted((seconds[f"busy_{order}"], seconds[f"traffic_{order}"]))
        shares.append(min(max((seconds[f"both_{order}"] - longer) / shorter, 0.0), 1.0))
    return statistics.mean(shares)


def _bandwidths(target: Target, c: MachineConstants, data: Storage) -> MachineConstants:
    caches, third = (target.l1, target.l2, target.l3), _third(target)
    far = _far(target)
    sizes = dict.fromkeys([third, far, *(int(part * size) for size in caches for part in _SHARES)])
    with Loops(target) as loops, ThreadPoolExecutor(target.threads) as pool:

        def measured(threads: int, wanted: Iterable[int], attempts: int) -> dict[int, float]:
            reads = {size: loops.reads(data, size, threads) for size in wanted}
            found = Team(pool, threads).rates(list(reads.values()), attempts)
            return {size: rate / c.clock for size, rate in zip(reads, found, strict=True)}

        rates = measured(1, [size for size in sizes if size <= third], _ATTEMPTS)
        rates |= measured(1, [size for size in sizes if size > third], _FAR_ATTEMPTS)
        together = measured(target.threads, (third, far), _FAR_ATTEMPTS)
    l3_all, memory_all = together[third], together[far]

    def share(size: int, beyond: float) -> float:
        """The part of a cache that can be filled before it slows down half-way to what lies beyond."""
        slow = (rates[int(_SHARES[0] * size)] + beyond) / 2
        return max((part for part in _SHARES if rates[int(part * size)] >= slow), default=_SHARES[0])

    l2, l3, memory = rates[int(_SHARES[0] * target.l2)], rates[third], rates[far]
    return replace(
        c,
        l2_bytes=l2,
        l3_bytes=l3,
        memory_bytes=memory,
        l3_all=max(l3_all, l3),
        memory_all=max(memory_all, memory),
        l1_share=share(target.l1, l2),
        l2_share=share(target.l2, l3),
        l3_share=share(target.l3, memory),
    )


def _most(target: Target) -> int:
    """Bytes of memory that suffice for all loops about caches and memory."""
    # The last vectors of a sweep may lie behind its end, and runs side by side a piece each.
    behind = max(target.vector_registers * target.vector_bytes, _STREAMS[-1] * _PIECE * CACHE_LINE)
    return max(_far(target) + behind, (_PAGES[-1] + 1) * PAGE)


def _far(target: Target) -> int:
    """Bytes of a sweep that no cache keeps anything of."""
    return 4 * max(target.l3, 2 * target.threads * target.l2)


def _third(target: Target) -> int:
    """Bytes of a sweep of the third cache. Others may use it as well: so much as is far beyond the second, and no more."""
    return min(target.l3 // 2, 6 * target.l2)


def _regions(target: Target, c: MachineConstants) -> MachineConstants:
    if target.threads == 1:
        return c
    # The caller alone would do all of a loop that has no work: so there is some, for each thread as much as one has alone.
    bodies = {"alone": parallel.loop_of(parallel.BUSY, 1), "together": parallel.loop_of(parallel.BUSY, target.threads)}
    seconds = Stopwatch(target, bodies, storage(0), parallel.FUNCTIONS).seconds()
    return replace(c, region=max(seconds["together"] - seconds["alone"], 0.0) * c.clock)


def _coherence(target: Target, c: MachineConstants) -> MachineConstants:
    """Two threads: one writes lines, and is busy while the other one reads them; beside each of both without the other."""
    if target.threads == 1:
        return c
    bodies: dict[str, core.Body] = {each.__name__: each for each in (parallel.writes, parallel.reads, parallel.both)}
    # Where a host moves virtual cores about, lines come from the same core at times, and from far away at others.
    seconds = Stopwatch(target, bodies, storage(parallel.LINES * CACHE_LINE), parallel.FUNCTIONS).seconds(share=0.5)
    return replace(c, coherence_miss=max(seconds["both"] - seconds["reads"] - seconds["writes"], 0.0) * c.clock)
