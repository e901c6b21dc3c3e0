"""Whether AutoTVM's base model of other tasks saves trials: its search over each grid, with what the clouds of others teach."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np

from ansorlite.cost_model import Group
from ansorlite.cost_model.based import BasedModel
from ansorlite.tuner.base_model import base
from ansorlite.tuner.presets import PRESETS
from benchmarks.common.tables import Table as Grid
from benchmarks.search import metrics
from benchmarks.search.judge import Bench
from benchmarks.search.results import Judged
from benchmarks.search.table import Table

TRIALS: Final = 64
#: Of the best speed.
SHARE: Final = 0.95
#: A run that does not reach it counts with so many trials.
NEVER: Final = 2 * TRIALS


def groups_of(table: Table) -> Iterator[Group]:
    """The programs of a table that was read with its features, as a model takes them."""
    assert table.features is not None
    _, first = np.unique(table.key, return_index=True)
    for number, sketch in enumerate(table.meta.sketches):
        own = first[table.sketch[first] == number]
        if len(own):
            features = table.features[own, : sketch.statements].astype(np.float64)
            yield Group(features, table.seconds[own].astype(np.float64), table.meta.task)


def experiment(grids: Mapping[str, Table], clouds: Sequence[Table], seeds: int) -> Grid:
    """Trials to 0.95 of the best speed, the median over seeds, of AutoTVM's annealing under trees, with and without a base."""
    rows = []
    ratios = []
    preset = PRESETS["autotvm"]
    for name, table in grids.items():
        bench = Bench.of(table)
        others = [group for cloud in clouds if cloud.meta.task != table.meta.task for group in groups_of(cloud)]
        ground = base(others)
        found: dict[bool, list[float]] = {False: [], True: []}
        for seed in range(seeds):
            for based in found:
                course = bench.run(preset, TRIALS, seed, model=BasedModel(ground) if based else None)
                run = Judged.of("autotvm", name, seed, TRIALS, "", course)
                best = metrics.best_so_far(run.bests, TRIALS, metrics.slowest(table))
                found[based].append(metrics.trials_to(best, table.best, SHARE) or NEVER)
        alone, helped = (float(np.median(found[based])) for based in (False, True))
        ratios.append(helped / alone)
        rows.append((name, *(f"{value:.0f}" if value <= TRIALS else f"> {TRIALS}" for value in (alone, helped))))
    rows.append(("the median of the ratios", "", f"{np.median(ratios):.2f}"))
    notes = (
        f"Trials to {SHARE} of the best speed, the median of {seeds} seeds. The base is of the clouds of all other tasks, "
        f"{sum(len(np.unique(cloud.key)) for cloud in clouds):,} programs in all.",
        f"To be shown: a base saves a fifth of the trials in the median: {'met' if np.median(ratios) <= 0.8 else 'missed'}.",
    )
    return Grid("transfer", ("grid", "AutoTVM's annealing", "with a base"), tuple(rows), notes)
