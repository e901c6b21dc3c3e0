"""Explorers beside one another, at equal calls of the model: what ProTuner and Chameleon are to show of their searches.

On each grid a model learns from some random programs; each explorer then looks for what it likes. Only the first so many programs
that an explorer has scored count, so that none is better for having looked at more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ansorlite.cost_model import GBDT, Group
from ansorlite.search.explorer_table import EXPLORERS
from ansorlite.search.explorers import ExplorerMaker, Rows
from ansorlite.search.protocol import SearchProblem
from benchmarks.common.tables import Table as Grid
from benchmarks.search.space import problem_of
from benchmarks.search.table import Table

Floats: TypeAlias = NDArray[np.float64]

#: Programs that the model learns from, and those that an explorer may score of a sketch.
LEARNT: Final = 64
CALLS: Final = 96
#: Of what was scored, the mean of so many of the best: the pool that a batch is chosen from.
POOL: Final = 16
COMPARED: Final[Mapping[str, ExplorerMaker]] = {
    name: EXPLORERS[name] for name in ("trees", "beam", "policy", "annealing", "generations")
}


@dataclass(frozen=True)
class Reached:
    """What an explorer found within :data:`CALLS` programs.

    Attributes:
        best: the highest score.
        pool: the mean of the :data:`POOL` highest.
    """

    best: float
    pool: float


def explored(table: Table, problem: SearchProblem, seed: int) -> dict[str, Reached]:
    """By explorer, on the sketch of the grid that has most programs."""
    position = int(np.bincount(table.sketch).argmax())
    shown = problem.spaces[position]
    rng = np.random.default_rng(seed)
    rows = shown.space.sample(LEARNT, rng)
    seconds = dict(zip(table.traces, table.seconds.astype(np.float64).tolist(), strict=True))
    latencies = np.array([seconds[shown.candidate(tuple(row)).trace] for row in rows.tolist()])
    model = GBDT()
    model.fit([Group(shown.programs(rows).features, latencies)])
    found = {}
    for name, make in COMPARED.items():
        scored: list[Floats] = []

        def score(asked: Rows, scored: list[Floats] = scored) -> Floats:
            scores = model.predict(shown.programs(asked).features)
            scored.append(scores)
            return scores

        make(shown.space, np.random.default_rng([seed, 1]))(score, rows[:0], 1.0, set())
        first = np.sort(np.concatenate(scored)[:CALLS])[::-1]
        found[name] = Reached(float(first[0]), float(first[:POOL].mean()))
    return found


def experiment(grids: Mapping[str, Table], seeds: int) -> Grid:
    """What each explorer reaches on each grid, and whether that is what was to be shown."""
    rows, trees, policy = [], 0, 0
    for name, table in grids.items():
        problem = problem_of(table)
        runs = [explored(table, problem, seed) for seed in range(seeds)]
        best = {each: float(np.median([run[each].best for run in runs])) for each in COMPARED}
        pool = {each: float(np.median([run[each].pool for run in runs])) for each in COMPARED}
        trees += best["trees"] >= best["beam"] - 1e-9
        policy += pool["policy"] >= pool["annealing"] - 1e-9
        rows.append((name, *(f"{best[each]:.3f} / {pool[each]:.3f}" for each in COMPARED)))
    notes = (
        f"The highest score / the mean of the {POOL} highest, of the first {CALLS} programs that each explorer scored; medians "
        f"of {seeds} seeds. The model learnt from {LEARNT} random programs; its scores are shares of the best speed of those.",
        _claim("ProTuner: trees reach at least a beam's best score", trees, 8, len(grids)),
        _claim("Chameleon: the policy's pool scores at least annealing's", policy, 8, len(grids)),
    )
    return Grid("explorers", ("grid", *COMPARED), tuple(rows), notes)


def _claim(text: str, count: int, wanted: int, of: int) -> str:
    verdict = "met" if count * 12 >= wanted * of else "missed"
    return f"{text} on {wanted} of 12 grids: {count} of {of}, {verdict}."
