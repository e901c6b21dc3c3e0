"""Checks many random graphs against onnxruntime.

``python -m tests.fuzz.graphs --count 10000`` prints each graph that is wrong, with its number and the nodes that are wrong on
their own. ``--only NUMBER --save FOLDER`` writes one graph and its inputs.
"""

from __future__ import annotations

import argparse
import collections
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from tests.fuzz.graphs.check import KERNELS, Outcome, check
from tests.fuzz.graphs.generator import random_graph
from tests.fuzz.graphs.triage import culprits
from tests.fuzz.processes import outcomes

#: Graphs that one worker checks; each starts with little memory.
_PIECE = 250

#: Seconds that a graph may take, on average.
SECONDS = 20.0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.graphs", description=__doc__)
    parser.add_argument("--count", type=int, default=1000, help="how many graphs")
    parser.add_argument("--seed", type=int, default=0, help="number of the first one")
    parser.add_argument(
        "--kernels",
        choices=sorted(KERNELS),
        default="default",
        help="compiled default programs, compiled loops as written, or the numpy meaning of tasks",
    )
    parser.add_argument("--processes", type=int, default=1, help="how many at a time")
    parser.add_argument("--only", type=int, help="check this graph, in this process")
    parser.add_argument("--save", type=Path, help="a folder for graphs that are wrong (with --only: for that one)")
    return parser.parse_args()


def save(seed: int, folder: Path) -> None:
    """Write a graph and its inputs: ``NUMBER.onnx``, ``NUMBER_0.npz`` (and ``NUMBER_1.npz``, with other extents)."""
    graph = random_graph(seed)
    folder.mkdir(parents=True, exist_ok=True)
    onnx.save(graph.model, folder / f"{seed}.onnx")
    for n, call in enumerate(graph.calls):
        np.savez(folder / f"{seed}_{n}.npz", **call.inputs)


def _one(seed: int, kernels: str) -> bool:
    graph = random_graph(seed)
    print(onnx.printer.to_text(graph.model))
    verdict = check(graph, KERNELS[kernels])
    print(verdict.outcome.value, verdict.what)
    if not verdict.outcome.good:
        print(*culprits(graph, KERNELS[kernels]), sep="\n")
    return verdict.outcome.good


def report(entry: dict[str, Any]) -> str:
    """A few lines about one graph that is wrong."""
    lines = [
        f"graph {entry['seed']}: {entry['outcome']}: {entry['what']}",
        *(f"    {line}" for line in entry.get("culprits", ())),
    ]
    return "\n".join(lines)


def main() -> int:
    given = _arguments()
    if given.only is not None:
        if given.save:
            save(given.only, given.save)
        return 0 if _one(given.only, given.kernels) else 1
    counts: collections.Counter[str] = collections.Counter()
    operators: collections.Counter[str] = collections.Counter()
    pieces = [
        (first, min(_PIECE, given.seed + given.count - first)) for first in range(given.seed, given.seed + given.count, _PIECE)
    ]

    def piece(part: tuple[int, int]) -> list[dict[str, Any]]:
        return list(outcomes("tests.fuzz.graphs.worker", *part, given.kernels, seconds=SECONDS))

    with ThreadPoolExecutor(given.processes) as pool:
        for found in pool.map(piece, pieces):
            for entry in found:
                counts[entry["outcome"]] += 1
                operators.update(entry.get("operators", ()))
                if not is_good(entry):
                    print(report(entry), flush=True)
                    if given.save:
                        save(entry["seed"], given.save)
            print(f"{sum(counts.values())} graphs: {dict(counts)}", file=sys.stderr, flush=True)
    print(f"{counts.total()} graphs of {operators.total()} nodes and {len(operators)} operators: {dict(counts)}")
    return 0 if all(Outcome(outcome).good for outcome in counts if outcome != "crash") and "crash" not in counts else 1


def is_good(entry: dict[str, Any]) -> bool:
    return entry["outcome"] != "crash" and Outcome(entry["outcome"]).good


if __name__ == "__main__":
    sys.exit(main())
