"""How well the draft ranks programs that nobody has measured: ``python -m benchmarks.draft_quality [--suite NAME] [--json]``.

Of each case some programs that the draft likes, and some that it does not, are compiled and timed on one thread, by
processor time, all in turns. *Pick* is the share of the speed of the fastest of them that the default program reaches;
*rank* is Spearman's correlation of the draft's scores with speed.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Final

import click
import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from ansorlite.cost_model.draft import Draft
from ansorlite.cost_model.metrics import rank_correlation
from ansorlite.evolution import first_of_each, keys
from ansorlite.features import extract
from ansorlite.loops.nodes import Buffer, Scope
from ansorlite.measure.inputs import make_inputs
from ansorlite.programs.build import build_candidate
from ansorlite.runtime.arguments import empty
from ansorlite.runtime.kernel import Kernel
from ansorlite.search.default import default_candidate
from ansorlite.sketch.candidate import Candidate
from ansorlite.sketch.sketch import Sketch
from ansorlite.sketch.tile_space import TileSpace
from ansorlite.spaces.derivation import derive
from ansorlite.target import host
from ansorlite.task import Task
from benchmarks.kernels.suites import SUITES

#: Programs sampled of each sketch; of all of them the draft's best, and of the better half some at random, are timed.
_SAMPLE: Final = 2048
#: The share of those timed that are the draft's best.
_LIKED: Final = 0.6
#: Seconds of one turn of one program, and how many turns each has.
_TURN: Final = 0.003
_TURNS: Final = 5
#: A program whose first two calls take so many times as long as the fastest one's has no more turns.
_HOPELESS: Final = 8.0


@dataclass(frozen=True)
class Quality:
    """What came of one case.

    Attributes:
        default, best: seconds of the default program, and of the fastest of those timed.
        rank: Spearman's correlation of the draft's scores with speed.
        candidates: sketch and row of each program timed, the default one first.
        seconds: of each, by the calling thread's processor time.
    """

    case: str
    default: float
    best: float
    rank: float
    candidates: tuple[Candidate, ...]
    seconds: tuple[float, ...]

    @property
    def pick(self) -> float:
        """The share of the best speed that the default program reaches."""
        return self.best / self.default


def drawn(sketches: Sequence[Sketch], draft: Draft, count: int, rng: np.random.Generator) -> list[Candidate]:
    """``count`` different programs: those that the draft likes best of a sample, and others of the better half of it."""
    found: list[tuple[float, Candidate]] = []
    for sketch in sketches:
        space = TileSpace(sketch)
        rows = space.sample(_SAMPLE, rng)
        best = rows[np.argsort(-draft(extract(sketch, rows)), kind="stable")[: _SAMPLE // 16]]
        rows = np.concatenate([rows, space.mutate(np.repeat(best, 8, axis=0), rng)])
        rows = rows[first_of_each(keys(space, rows), set())]
        scores = draft(extract(sketch, rows))
        order = np.argsort(-scores, kind="stable")[: max(count, len(rows) // 2)]
        found += [(float(scores[i]), Candidate(sketch.signature, tuple(map(int, rows[i])))) for i in order]
    found.sort(key=lambda each: -each[0])
    liked = round(_LIKED * count)
    others = rng.permutation(np.arange(liked, len(found)))[: count - liked]
    return [found[i][1] for i in (*range(min(liked, len(found))), *others)]


def seconds_of(runs: Sequence[Callable[[], None]]) -> list[float]:
    """Least processor time of one call of each, over turns."""
    least = [min(_taken(run, 1), _taken(run, 1)) for run in runs]
    limit = _HOPELESS * min(least)
    for _ in range(_TURNS):
        for position, run in enumerate(runs):
            if least[position] <= limit:
                calls = max(1, round(_TURN / max(least[position], 1e-7)))
                least[position] = min(least[position], _taken(run, calls))
    return least


def _taken(run: Callable[[], None], calls: int) -> float:
    start = time.thread_time()
    for _ in range(calls):
        run()
    return (time.thread_time() - start) / calls


def quality(name: str, task: Task, count: int, seed: int) -> Quality:
    """Time the default program of ``task`` among ``count`` others."""
    rng = np.random.default_rng(seed)
    sketches = derive(task)
    draft = Draft(task.target)
    default = default_candidate(task, sketches)
    candidates = [default, *(each for each in drawn(sketches, draft, count, rng) if each != default)]
    params = [Buffer(t.name, t.shape, t.dtype, Scope.ARGUMENT) for t in (*task.dag.inputs, *task.dag.outputs)]
    kernels = [Kernel(build_candidate(task, each, sketches), params, task.target) for each in candidates]
    arrays = [*make_inputs(task.dag, rng), *(empty(t.shape, t.dtype) for t in task.dag.outputs)]
    seconds = seconds_of([kernel.bind(*arrays) for kernel in kernels])
    by_sketch = {sketch.signature: sketch for sketch in sketches}
    scores = [_score(draft, by_sketch[each.sketch], each.row) for each in candidates]
    rank = rank_correlation(np.array(scores), np.array(seconds))
    return Quality(name, seconds[0], min(seconds), rank, tuple(candidates), tuple(seconds))


def _score(draft: Draft, sketch: Sketch, row: Sequence[int]) -> float:
    rows: NDArray[np.int64] = np.array([row], dtype=np.int64)
    return float(draft(extract(sketch, rows))[0])


@click.command()
@click.option("--suite", "suites", multiple=True, type=click.Choice([*SUITES]), default=("anchors", "odd", "memory", "bert"))
@click.option("--case", "pattern", default="", metavar="TEXT", help="Only cases with this in their name.")
@click.option("--candidates", default=48, show_default=True, help="Programs timed beside the default one.")
@click.option("--seed", default=0, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a case, with every program timed.")
def main(suites: tuple[str, ...], pattern: str, candidates: int, seed: int, as_json: bool) -> None:
    """Time the default programs beside others that the draft would have tried next."""
    found: list[Quality] = []
    for case in (case for suite in suites for case in SUITES[suite] if pattern in case.name):
        found.append(quality(case.name, Task(case.operator.tensors(), host(1)), candidates, seed))
        if as_json:
            click.echo(json.dumps(asdict(found[-1]) | {"pick": found[-1].pick}))
    if as_json or not found:
        return
    table = Table("case", "default, us", "best, us", "pick", "rank", title="one thread, processor time")
    for each in found:
        table.add_row(each.case, f"{1e6 * each.default:.1f}", f"{1e6 * each.best:.1f}", f"{each.pick:.2f}", f"{each.rank:.2f}")
    mean, rank = statistics.geometric_mean([each.pick for each in found]), statistics.mean([each.rank for each in found])
    table.add_row("geometric mean, mean", "", "", f"{mean:.2f}", f"{rank:.2f}")
    Console().print(table)


if __name__ == "__main__":
    main()
