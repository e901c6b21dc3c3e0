"""The features of one statement, by name: the columns of a feature array.

Magnitudes are log2; a count of 0 stays 0 by ``log2(1 + x)``. Traffic is in bytes of whole cache lines, for one execution of
the kernel on one thread.
"""

from __future__ import annotations

from typing import Final

#: How many accesses have columns of their own; the rest are summed into the totals only.
ACCESSES: Final = 4

_LOOPS = (
    "iterations",  # how often the statement runs
    "parallel",  # iterations of the parallel loop
    "balance",  # how evenly threads share them, 0..1, not a log
    "parallel_region",  # its share of the statements that are in the same parallel loop, 0 outside of any, not a log
    "lanes",
    "vector_trip",
    "lane_use",  # the share of lanes that do work, 0..1, not a log
    "unrolled",  # statements of straight-line code, the vectorised loop in vectors
    "reduce",  # iterations of reduction loops
    "inner_reduce",  # of those inside of all other loops that are not straight-line code
    "inner_trip",  # iterations of the innermost of the loops that are loops in the machine code
    "branches",  # iterations of loops that are loops in the machine code, the innermost included
)
_WORK = ("cheap", "mul", "div", "math", "convert", "dot")  # operations in all
_TILE = (
    "in_registers",  # of accumulators: 0 in memory, 1 in registers and moved to memory, 2 in registers until they are taken
    "accumulates",  # flag
    "accumulators",  # vectors of accumulators in straight-line code
    "vector_loads",  # distinct vectors loaded in straight-line code
    "scalar_loads",  # distinct scalars broadcast in straight-line code
    "strided_loads",  # distinct vectors gathered in straight-line code
    "near_loads",  # of these, those whose elements are so near that whole vectors are loaded and picked from
    "near_vectors",  # whole vectors loaded for these
    "fixed_loads",  # of all those, the ones that the innermost loop does not change
    "strided_stores",  # vectors stored element by element in straight-line code; part of one where neighbours are stored as one
    "crossing_loads",  # of the vectors loaded, those that begin in one cache line and end in the next
)
_MEMORY = (
    "bytes",
    "thread_bytes",  # of these what the busiest thread touches
    "constant_bytes",  # of these what is the same in every call: a model's weights
    "l1_traffic",
    "l2_traffic",
    "l3_traffic",
    "written_over",  # of what is fetched into the last cache, what is only fetched to be written over
    "l1_intensity",
    "l2_intensity",
    "l3_intensity",
    "l1_runs",  # runs of neighbouring lines that are fetched into the first cache, in the innermost loop's order
    "l2_runs",  # into the second cache, in the order of all loops
    "pages",  # whose addresses are looked for, because more of them are in use than a core remembers
    "prefetches",  # lines that are asked for ahead, as the schedule says
    "coherence_misses",  # lines that the busiest thread reads, or fetches ahead, and another one has written
)
#: Of matrix units for dot products.
MATRIX: Final = (
    "tile_products",  # products of tiles, each of which matrix units do at once; 0 where vectors do it
    "tile_loads",  # tiles loaded, of factors and of sums
    "tile_stores",  # tiles of sums stored
    "tile_sums",  # tiles of sums that are added to in turn
)
_ACCESS = ("unique", "l1", "l2", "l3", "lane_stride", "write", "loads", "reuse")

#: Feature names in column order.
NAMES: Final[tuple[str, ...]] = (
    *_LOOPS,
    *_WORK,
    *_TILE,
    *_MEMORY,
    *MATRIX,
    *(f"{what}_{number}" for number in range(ACCESSES) for what in _ACCESS),
)
NUM_FEATURES: Final = len(NAMES)
#: Column of each name.
COLUMN: Final[dict[str, int]] = {name: position for position, name in enumerate(NAMES)}
