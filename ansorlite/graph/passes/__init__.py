"""Passes over a graph, in the order they run. Each is a pure function, with *before → after* in its docstring.

What depends on the machine comes after them (:mod:`ansorlite.graph.passes.block_channels`); nothing after that looks at layouts.
"""

from functools import partial
from typing import Final

from ansorlite.graph.graph import Graph, Pass
from ansorlite.graph.passes.affine import combine_affine
from ansorlite.graph.passes.assigned_slices import simplify_assigned_slices
from ansorlite.graph.passes.cleanup import (
    eliminate_common_subexpressions,
    eliminate_dead_nodes,
    merge_equal_constants,
    simplify_views,
)
from ansorlite.graph.passes.fold_constants import fold_constants
from ansorlite.graph.passes.fold_scales import fold_scales_into_weights
from ansorlite.graph.passes.quantized.integers import compute_on_integers
from ansorlite.graph.passes.quantized.known_weights import describe_weights
from ansorlite.graph.passes.quantized.quantize_early import quantize_early
from ansorlite.graph.passes.quantized.requantize import quantize_sums, requantize_sums, skip_bytes
from ansorlite.graph.passes.quantized.spread_scales import spread_scales
from ansorlite.graph.passes.scales_of_products import scale_products
from ansorlite.topi.quantized import dequantize

PASSES: Final[tuple[Pass, ...]] = (
    # What integers stand for must be seen before it is computed.
    partial(fold_constants, keep=frozenset((dequantize,))),
    eliminate_common_subexpressions,
    quantize_early,
    compute_on_integers,
    requantize_sums,
    quantize_sums,
    skip_bytes,
    fold_constants,
    describe_weights,
    spread_scales,
    simplify_views,
    simplify_assigned_slices,
    eliminate_common_subexpressions,
    scale_products,
    combine_affine,
    fold_scales_into_weights,
    combine_affine,
    merge_equal_constants,
    eliminate_common_subexpressions,
    eliminate_dead_nodes,
)


def optimize(graph: Graph) -> Graph:
    """``graph`` after every pass of :data:`PASSES`."""
    for rewrite in PASSES:
        graph = rewrite(graph)
    return graph
