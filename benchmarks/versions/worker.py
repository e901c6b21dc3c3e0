"""One version of ansorlite, the one on the path, at the other end of a pipe. It speaks the public interface, and of the search
what the version's own ``benchmarks.search_speed`` does.

A request is a line of JSON, and so is its answer.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import ansorlite as al

# The cases are those of the version's own checkout: both know the same operators, and how to search the same workloads.
from benchmarks import search_speed
from benchmarks.kernels.suites import SUITES


class Worker:
    """One case at a time."""

    def __init__(self) -> None:
        self.calls: dict[str, Callable[[], object]] = {}
        self.stages: dict[str, Callable[[], object]] = {}

    def tune(self, suite: str, case: str, trials: int, time_limit: float | None, seed: int, database: str) -> dict[str, object]:
        """Tune, and have the tuned and the untuned program ready.

        Seconds are those that a trial took.
        """
        task = _task(suite, case)
        with al.Database(database) as records:
            result = al.tune(task, trials=trials, time_limit=time_limit, database=records, seed=seed, progress=False)
            tuned = al.compile(task, records)
        untuned = al.compile(task)
        rng = np.random.default_rng(seed)
        arrays = [_array(rng, buffer.shape, buffer.dtype) for buffer in tuned.inputs]
        expected = [np.asarray(array) for array in _all(untuned(*arrays))]
        found = [np.asarray(array) for array in _all(tuned(*arrays))]
        outputs = [np.empty(buffer.shape, buffer.dtype) for buffer in tuned.outputs]
        self.calls = {"tuned": tuned.bind(*arrays, *outputs), "untuned": untuned.bind(*arrays, *[np.copy(o) for o in outputs])}
        alike = all(np.allclose(a, b, 1e-2, 1e-3 * float(np.abs(b).max(initial=1))) for a, b in zip(found, expected, strict=True))
        return {"seconds": result.seconds / max(result.trials, 1), "alike": alike}

    def turn(self, program: str, seconds: float) -> dict[str, object]:
        """Call a program for so many seconds, twice at least; the median seconds of a call."""
        call, taken, end = self.calls[program], [], time.perf_counter() + seconds
        while len(taken) < 2 or time.perf_counter() < end:
            begin = time.perf_counter()
            call()
            taken.append(time.perf_counter() - begin)
        return {"latency": statistics.median(taken)}

    def record(self, workload: str) -> dict[str, object]:
        """CPU seconds of the first row of a workload's sketch, its key and features: what computes them is written down."""
        sketch = _sketch(workload)
        space = search_speed.TileSpace(sketch)

        def first() -> None:
            row = space.sample(1, np.random.default_rng(0))
            space.canonical(row)
            search_speed.extract(sketch, row)

        return {"seconds": search_speed.once(first)}

    def prepare(self, workload: str) -> dict[str, object]:
        """Have the two stages from a population of a workload to scores ready, the model trained."""
        sketch, rng = _sketch(workload), np.random.default_rng(0)
        rows = search_speed.TileSpace(sketch).sample(search_speed.POPULATION, rng)
        draft = search_speed.Draft(sketch.target)
        model = search_speed.BlendedModel(draft, search_speed.GBDT())
        features = search_speed.extract(sketch, rows)
        known = features[: search_speed.TRAINED_ON]
        model.fit([search_speed.Group(known, draft.seconds(known) * rng.lognormal(0, 0.5, len(known)))])
        self.stages = {"features": lambda: search_speed.extract(sketch, rows), "model": lambda: model.predict(features)}
        self.score()
        return {"holes": len(sketch.holes)}

    def score(self) -> dict[str, object]:
        """CPU seconds of each stage."""
        return {name: search_speed.once(stage) for name, stage in self.stages.items()}


def _sketch(workload: str) -> search_speed.Sketch:
    """The one of the most holes."""
    made = search_speed.derive(search_speed.Task(search_speed.WORKLOADS[workload]()))
    return max(made, key=lambda sketch: len(sketch.holes))


def _task(suite: str, name: str) -> al.Task:
    return al.Task(next(case for case in SUITES[suite] if case.name == name).operator.tensors())


def _array(rng: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> np.ndarray[Any, Any]:
    kind = np.dtype(dtype)
    if kind.kind in "iu":
        return rng.integers(0, 64, shape).astype(kind)
    return rng.uniform(0.1, 1, shape).astype(kind)


def _all(results: Any) -> tuple[Any, ...]:
    return results if isinstance(results, tuple) else (results,)


def main() -> None:
    worker = Worker()
    answers, sys.stdout = sys.stdout, sys.stderr  # what a version prints is no answer
    for line in sys.stdin:
        request = json.loads(line)
        answer = getattr(worker, request.pop("do"))(**request)
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
