"""The order of a graph's nodes."""

from __future__ import annotations

import numpy as np
import pytest

from ansorlite.graph.describe import Value
from ansorlite.graph.graph import Graph, Node
from ansorlite.topi.activations import relu

#: Result → what it is computed of, each by one input.
READS = {"a": "x", "b": "a", "c": "x", "d": "b", "e": "c", "f": "d"}


def ordered(names: list[str]) -> list[str]:
    nodes = [Node(name, relu, (READS[name],)) for name in names]
    graph = Graph.of({"x": Value((2,), "float32")}, {"y": "f", "z": "e"}, nodes, {})
    return [node.output for node in graph.nodes]


@pytest.mark.parametrize("seed", range(20))
def test_producers_come_before_consumers_in_the_given_order_where_that_can_be(seed: int) -> None:
    given = np.random.default_rng(seed).permutation(list(READS)).tolist()
    found = ordered(given)
    waiting, done = list(given), ["x"]
    while waiting:
        # The definition: of those that can be computed, the first.
        first = next(name for name in waiting if READS[name] in done)
        waiting.remove(first)
        done.append(first)
    assert found == done[1:]


def test_an_order_that_can_be_is_kept() -> None:
    given = ["c", "e", "a", "b", "d", "f"]
    assert ordered(given) == given
