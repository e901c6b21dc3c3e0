"""One run of a preset over a table: the strategy proposes, the table answers."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from ansorlite.cost_model import GBDT, CostModel, RandomModel
from ansorlite.cost_model.ranked import RankedTrees
from ansorlite.cost_model.shared import Pool, SharedModel
from ansorlite.cost_model.uncertain import Bagged
from ansorlite.features import NAMES
from ansorlite.records.measurement import Outcome
from ansorlite.search import STRATEGIES, Observation, StrategyMaker
from ansorlite.search.protocol import SearchProblem
from ansorlite.target import Target
from ansorlite.task import Task
from ansorlite.te.serialize import load
from ansorlite.tuner.cost_models import COST_MODELS
from ansorlite.tuner.loop import round_size
from ansorlite.tuner.presets import Preset
from benchmarks.search.measurer import Noise, TableMeasurer
from benchmarks.search.space import problem_of
from benchmarks.search.table import Table, TableError


@dataclass(frozen=True)
class Course:
    """What a run measured.

    Attributes:
        latencies: in the order of the trials; ``None`` of a failure.
        names: of the programs.
        seconds: that the strategy itself took, of this thread's processor time.
    """

    latencies: tuple[float | None, ...]
    names: tuple[str, ...]
    seconds: float


@dataclass(frozen=True)
class Bench:
    """A table ready for runs: what does not differ between them is made once."""

    table: Table
    problem: SearchProblem
    task: Task | None

    @staticmethod
    def of(table: Table) -> Bench:
        meta = table.meta
        if meta.dag and meta.features != NAMES:
            raise TableError(
                f"the table {meta.name} was recorded with other features than today's; `python -m benchmarks.search describe` "
                "makes them anew"
            )
        task = Task(load(dict(meta.dag)), Target.of(meta.target)) if meta.dag else None
        return Bench(table, problem_of(table), task)

    def model(self, preset: Preset, rng: np.random.Generator) -> CostModel:
        """The preset's cost model; where a table has no features, of the kind nearest to it that makes do with knobs."""
        if self.task is not None:
            (model,) = COST_MODELS[preset.cost_model]([self.task], rng)
            return model
        match preset.cost_model:
            case "random":
                return RandomModel(rng)
            case "shared" | "family":
                return SharedModel(Pool(), "")
            case "bagged" | "forest":
                return Bagged(rng)
            case "ranked":
                return RankedTrees()
            case "bounded":
                return GBDT(bounds=True)
        return GBDT()

    def run(
        self,
        preset: Preset,
        trials: int,
        seed: int,
        noise: Noise = Noise.NONE,
        maker: StrategyMaker | None = None,
        model: CostModel | None = None,
    ) -> Course:
        """Tune on the table. What the draft likes is not measured first: all presets begin with the same knowledge.

        Args:
            maker: of another strategy than the preset's.
            model: another one than the preset's.
        """
        search, learning = np.random.default_rng(seed).spawn(2)
        begin = time.thread_time()
        model = self.model(preset, learning) if model is None else model
        strategy = (maker or STRATEGIES[preset.strategy])(self.problem, model, search)
        measurer = TableMeasurer(self.table, noise, seed)
        latencies: list[float | None] = []
        names: list[str] = []
        while len(names) < trials:
            batch = strategy.propose(round_size(trials - len(names), preset.round))
            if not batch:
                break
            measured = list(measurer.measure(self.task, batch))
            stopped = [each.outcome is Outcome.EARLY_STOPPED for each in measured]
            strategy.observe(list(map(Observation, batch, [each.latency for each in measured], stopped)))
            latencies += [each.latency for each in measured]
            names += [candidate.trace for candidate in batch]
        return Course(tuple(latencies), tuple(names), time.thread_time() - begin)
