"""All that is done to a model's graph before its tasks are known."""

from __future__ import annotations

from ansorlite.graph.chunks import run_in_chunks
from ansorlite.graph.fusion import FusionGroup, fuse
from ansorlite.graph.graph import Graph
from ansorlite.graph.passes import optimize
from ansorlite.graph.passes.block_channels import block_channels
from ansorlite.graph.passes.lower_products import lower_products
from ansorlite.graph.producers import join_producers
from ansorlite.target import Target
from ansorlite.te.ops import DOTS


def cut(graph: Graph, target: Target, blocked: bool, precision: str) -> tuple[Graph, tuple[FusionGroup, ...]]:
    """``graph`` after all passes, and the groups of nodes that are computed together, in running order.

    Args:
        blocked: whether convolutions may keep neighbouring channels side by side, where the target has vectors.
        precision: what products of float32 multiply.
    """
    optimized = run_in_chunks(optimize(graph), target)
    if precision != "float32":
        optimized = lower_products(optimized, precision)
    if blocked and target.gpu is None:
        # Matrix units multiply rows of as many bytes as a vector has.
        rows = {pieces.dtype: target.lanes(pieces.dtype) for op in target.matrix_dots for pieces in DOTS[op]}
        optimized = block_channels(optimized, target.lanes("float32"), rows)
    return optimized, join_producers(optimized, fuse(optimized), target)
