"""Checks random graphs one after another; prints two lines of JSON for each: before, and after.

``python -m tests.fuzz.graphs.worker FIRST COUNT default|naive|meaning``
"""

from __future__ import annotations

import json
import sys

from tests.fuzz.graphs.check import KERNELS, check
from tests.fuzz.graphs.generator import random_graph
from tests.fuzz.graphs.triage import culprits


def main(first: int, count: int, kernels: str) -> None:
    ready = KERNELS[kernels]
    for seed in range(first, first + count):
        print(json.dumps({"seed": seed}), flush=True)
        graph = random_graph(seed)
        verdict = check(graph, ready)
        nodes = [] if verdict.outcome.good else culprits(graph, ready)
        operators = [node.op_type for node in graph.model.graph.node]
        print(
            json.dumps({"outcome": verdict.outcome.value, "what": verdict.what, "operators": operators, "culprits": nodes}),
            flush=True,
        )


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
