"""All that is done to a model's graph before its tasks are known."""

from __future__ import annotations

from ansorlite.graph.chunks import run_in_chunks
from ansorlite.graph.fusion import FusionGroup, fuse
from ansorlite.graph.graph import Graph
from ansorlite.graph.passes import optimize
from ansorlite.graph.passes.block_channels import block_channels
from ansorlite.graph.producers import join_producers
from ansorlite.target import Target


def cut(graph: Graph, target: Target, blocked: bool) -> tuple[Graph, tuple[FusionGroup, ...]]:
    """``graph`` after all passes, and the groups of nodes that are computed together, in running order.

    Args:
        blocked: whether convolutions may keep neighbouring channels side by side, where the target has vectors.
    """
    optimized = run_in_chunks(optimize(graph), target)
    if blocked and target.gpu is None:
        lanes = target.lanes("float32")
        # Matrix units multiply rows of as many bytes as a vector has.
        optimized = block_channels(optimized, lanes, target.lanes("uint8") if target.matrix_dots else lanes)
    return optimized, join_producers(optimized, fuse(optimized), target)
