"""The draft model: a closed-form estimate of a program's time, from its features alone (after Pruner's PSA, ASPLOS 25).

A statement keeps a core busy with arithmetic, loads, the number of its instructions and the latency of its accumulators, of which
the longest counts; it waits for the near memory (the second cache, and addresses of pages) and the far one (the third cache and
beyond), which overlaps in part. A program takes the sum of its statements. What each of these costs is read from the machine's
row, ``Target.machine``; there is no number of a machine here. The draft ranks programs before anything has been measured, and the
learned model starts from it. ``benchmarks/draft_quality.py`` tells how good it is.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ansorlite.alignment import PAGE
from ansorlite.features.names import COLUMN
from ansorlite.machine.constants import MachineConstants
from ansorlite.target import Target
from ansorlite.target.masks import stores_in_pieces

Numbers: TypeAlias = NDArray[np.float64]


class Cycles(NamedTuple):
    """What keeps statements busy, each in cycles of one core, arrays of shape (statements, n).

    Attributes:
        arithmetic, tiles, loads, latency, issue, branches, crossings: they overlap, but for a share of the shorter ones; tiles
            are products on matrix units, in place of arithmetic on vectors, and loads are then those of tiles; crossings are
            what loads of two lines take longer, which is part of loads, too.
        stores, moves, spills: come on top.
        l2, runs, pages: of bytes from the second cache, of the starts of runs of them, and of the addresses of pages.
        l3, memory: of bytes from beyond, already shared by the threads.
        coherence: of lines that another thread has written, for the thread that reads most of them.
        threads: that share the work.
    """

    arithmetic: Numbers
    tiles: Numbers
    loads: Numbers
    latency: Numbers
    issue: Numbers
    branches: Numbers
    crossings: Numbers
    stores: Numbers
    moves: Numbers
    spills: Numbers
    l2: Numbers
    runs: Numbers
    pages: Numbers
    l3: Numbers
    memory: Numbers
    coherence: Numbers
    threads: Numbers

    def total(self, machine: MachineConstants) -> Numbers:
        """(statements, n): cycles until all threads are done."""
        fed = _overlapping(self.tiles, self.loads, machine.core_overlap)
        units = np.maximum(np.maximum(self.arithmetic, fed), self.latency)
        busy = _overlapping(units, self.issue + self.branches + self.crossings, machine.core_overlap)
        busy = busy + self.stores + self.moves + self.spills
        own = _overlapping(busy, self.l2 + self.runs + self.pages, machine.near_overlap)
        return _overlapping(own / self.threads, self.l3 + self.memory + self.coherence, machine.far_overlap)


class Draft:
    """``(n, statements, features)`` to ``(n,)``: minus the natural logarithm of the estimated seconds."""

    def __init__(self, target: Target) -> None:
        self.target = target

    def __call__(self, features: NDArray[np.float64]) -> NDArray[np.float64]:
        result: NDArray[np.float64] = -np.log(self.seconds(features))
        return result

    def seconds(self, features: NDArray[np.float64]) -> NDArray[np.float64]:
        """(n,) the estimate itself."""
        machine = self.target.machine
        total = np.zeros(len(features))
        for cycles in self.cycles(features).total(machine):
            total += cycles
        return np.maximum(total + self.regions(features), 1.0) / machine.clock

    def regions(self, features: NDArray[np.float64]) -> NDArray[np.float64]:
        """(n,) cycles of entering and leaving parallel loops."""
        parallel, machine = self.parallel(features), self.target.machine
        regions = features[:, :, COLUMN["parallel_region"]].sum(axis=1)
        result: NDArray[np.float64] = machine.wake * parallel.max(axis=1, initial=0.0) + machine.region * regions
        return result

    def parallel(self, features: NDArray[np.float64]) -> NDArray[np.float64]:
        """(n, statements) 1 for those in a parallel loop, else 0."""
        result: NDArray[np.float64] = np.where(features[:, :, COLUMN["parallel"]] > 1.0, 1.0, 0.0)
        return result

    def cycles(self, features: NDArray[np.float64]) -> Cycles:
        """What each statement of each program costs, and why."""
        k = self.target.machine
        # By feature, of all statements at once.
        f = features.transpose(2, 1, 0)

        def magnitude(name: str) -> Numbers:
            result: Numbers = np.exp2(f[COLUMN[name]])
            result -= 1.0
            return result

        def plain(name: str) -> Numbers:
            result: Numbers = f[COLUMN[name]]
            return result

        iterations, unrolled = magnitude("iterations"), np.maximum(magnitude("unrolled"), 1.0)
        lanes = np.exp2(plain("lanes"))
        steps = iterations / (lanes * plain("lane_use"))
        blocks = steps / unrolled
        # A vector may be wider than a register, and its last part narrower.
        native = self.target.lanes("float32")
        registers = np.maximum(np.ceil(lanes / native), 1.0)
        parts = registers - np.where(2.0 * (lanes - (registers - 1.0) * native) <= native, 1.0 - k.half, 0.0)
        done = np.maximum(iterations, 1.0)
        multiplied, converted, dots = magnitude("mul"), magnitude("convert"), magnitude("dot")
        # A multiply-add is one operation, and so is a dot product that is added to a sum.
        fused = np.maximum(magnitude("cheap") - dots, multiplied)
        slow = magnitude("div") * k.div + magnitude("math") * k.math + converted * k.convert + dots * k.dot
        vectors, scalars, strided = magnitude("vector_loads"), magnitude("scalar_loads"), magnitude("strided_loads")
        # Of those that are near each other whole vectors are loaded, and put together two by two by units of arithmetic.
        near, whole = magnitude("near_loads"), magnitude("near_vectors")
        gathered, picks = np.maximum(strided - near, 0.0), np.maximum(whole - near, 0.0)
        # Of a loop's last vector so many elements are left; where they are no power of two, it is masked, or stored in pieces.
        trip, width = np.maximum(np.rint(magnitude("vector_trip")), 1.0), np.minimum(np.exp2(np.ceil(plain("lanes"))), native)
        pieces = np.bitwise_count((trip - (np.ceil(trip / width) - 1.0) * width).astype(np.int64))
        masks = np.where((pieces > 1) & (plain("lane_use") < 1.0), lanes / np.maximum(trip, lanes), 0.0)
        left = (pieces - 1.0) * (k.store + k.arithmetic) if stores_in_pieces(self.target) else k.masked_store
        share = parts / registers
        crossing = magnitude("crossing_loads") * k.crossing * registers
        loading = vectors * (k.load + masks * k.masked) * share * registers + crossing
        loading += scalars * k.broadcast + gathered * lanes * k.gather + whole * registers * k.load
        loaded = (vectors + scalars + whole + picks) * registers + gathered * lanes
        accumulators = np.maximum(magnitude("accumulators"), 1.0)
        accumulates, in_registers = plain("accumulates") > 0, plain("in_registers") > 0
        # Of one step of the reduction the few operands, if they are needed more than once, are held beside the accumulators, and
        # the many come one by one.
        deep, few = np.maximum(unrolled / accumulators, 1.0), np.minimum(vectors, scalars + strided)
        held = accumulators + np.where(unrolled > few, few / deep, 0.0)
        # Picking takes a register that says which elements, and one for what is put together.
        spilled = np.maximum(held * registers + 1.0 + np.where(picks > 0, 2.0, 0.0) - self.target.vector_registers, 0.0)
        spilled = np.where(in_registers, spilled, 0.0)
        # Where some are spilled, others end a block in another register than they began it in, and are moved back.
        copied = np.where(spilled > 0, float(self.target.vector_registers), 0.0)
        issued = steps * registers / done * (fused + converted + dots) + blocks * (loaded + copied)
        # Straight-line code that is longer than what is kept decoded is decoded anew, all but a part of it.
        kept = np.minimum(k.code / np.maximum(issued / np.maximum(blocks, 1.0), 1.0), 1.0)
        each = kept / k.issue + (1.0 - kept) / k.decode
        # Elements that are stored one by one; those of accumulators are loaded so, too.
        apart, again = magnitude("strided_stores") * lanes, np.where(accumulates, k.gather, 0.0)
        moving = k.move * parts + masks * left + apart / accumulators * (k.scatter + again)
        in_memory = np.where(accumulates, np.where(magnitude("inner_reduce") > 1, k.forwarding, k.update), k.store)
        # What the innermost loop does not change is loaded before it, and stored where there are too few registers for it.
        hoisted = np.maximum(magnitude("fixed_loads") - self.target.vector_registers, 0.0)
        hoisted = hoisted * (1.0 + 1.0 / np.maximum(magnitude("inner_trip"), 1.0))
        # An accumulator that finds no register waits for what was just stored.
        latency = np.where(spilled > 0, k.forwarding, np.where(multiplied + dots > 0, k.latency, k.add_latency))
        threads = np.maximum(plain("balance") * self.target.threads, 1.0)
        # Threads share what lies beyond their own caches, and one alone cannot use all of it.
        # Runs that end before a page does are fetched ahead less well.
        runs, from_l3, from_memory = magnitude("l2_runs"), magnitude("l2_traffic"), magnitude("l3_traffic")
        late_l3, late = k.l3_short * np.minimum(from_l3, runs * PAGE), k.memory_short * np.minimum(from_memory, runs * PAGE)
        weights, l3_rate = magnitude("constant_bytes"), np.minimum(threads * k.l3_bytes, k.l3_all)
        l3 = (from_l3 + late_l3) / l3_rate + runs * k.l3_run / threads
        memory = (from_memory + late + magnitude("written_over")) / np.minimum(threads * k.memory_bytes, k.memory_all)
        vectors_alone = Cycles(
            arithmetic=steps * parts / done * (fused * k.arithmetic + slow) + blocks * picks * parts * k.arithmetic,
            tiles=np.zeros(iterations.shape),
            loads=blocks * loading,
            latency=np.where(in_registers, steps * latency / accumulators, 0.0),
            issue=issued * each,
            branches=magnitude("branches") * k.branch,
            crossings=blocks * crossing,
            stores=np.where(in_registers, 0.0, steps * (parts * in_memory + masks * left) + blocks * apart * (k.scatter + again)),
            # Accumulators go back to their tile after as many steps as they live through, unless they are the tile.
            moves=np.where(plain("in_registers") == 1, steps / np.maximum(magnitude("reduce"), 1.0) * moving, 0.0),
            spills=np.where(in_registers, blocks * (deep * spilled + hoisted) * k.spill * share, 0.0),
            l2=magnitude("l1_traffic") / k.l2_bytes,
            runs=magnitude("l1_runs") * k.l2_run,
            pages=magnitude("pages") * k.page,
            # From one call to the next, a cache keeps what fits into it; but weights of a layer give way to those of all others.
            l3=np.where(magnitude("thread_bytes") > self.target.l2 * k.l2_share, l3, weights * threads / l3_rate),
            memory=np.where(magnitude("bytes") > self.target.l3 * k.l3_share, memory, 0.0),
            coherence=magnitude("coherence_misses") * k.coherence_miss,
            threads=threads,
        )
        if not self.target.matrix_dots:
            return vectors_alone
        products, tile_loads, tile_stores = magnitude("tile_products"), magnitude("tile_loads"), magnitude("tile_stores")
        tiled = products > 0

        def instead(of: Numbers, by: Numbers | float) -> Numbers:
            """What it costs where matrix units do what vectors do elsewhere."""
            result: Numbers = np.where(tiled, by, of)
            return result

        v = vectors_alone
        return v._replace(
            arithmetic=instead(v.arithmetic, 0.0),
            tiles=products * k.tile_product,
            loads=instead(v.loads, tile_loads * k.tile_load),
            latency=instead(v.latency, products * k.tile_latency / np.maximum(magnitude("tile_sums"), 1.0)),
            issue=instead(v.issue, (products + tile_loads + tile_stores) / k.issue),
            crossings=instead(v.crossings, 0.0),
            branches=instead(v.branches, products / np.maximum(magnitude("tile_sums"), 1.0) * k.branch),
            moves=v.moves + tile_stores * k.tile_move,
            spills=instead(v.spills, 0.0),
        )


def _overlapping(a: Numbers, b: Numbers, share: Numbers | float) -> Numbers:
    return np.asarray(np.maximum(a, b) + share * np.minimum(a, b))
