"""What one task has learnt is tried by a similar one."""

from pathlib import Path

import numpy as np

import ansorlite as al
from ansorlite.records.database import Database
from ansorlite.records.measurement import Measurement, Outcome
from ansorlite.sketch.candidate import NAIVE
from ansorlite.sketch.transplant import transplant
from ansorlite.spaces.derivation import derive
from ansorlite.target import host
from ansorlite.task import Task
from ansorlite.tuner.transfer import transplanted
from tests.workloads import matmul, softmax

TARGET = host(1)
SMALL, LARGE, OTHER = (Task(tensors, TARGET) for tensors in (matmul(32, 48, 64), matmul(64, 48, 128), softmax(32, 48)))


def test_a_program_of_the_same_task_stays_as_it_is() -> None:
    rng = np.random.default_rng(0)
    for sketch in derive(SMALL):
        sizes = [hole.size for hole in sketch.holes]
        row = tuple(rng.integers(sizes).tolist())
        assert transplant(sketch, row, sketch) == row


def test_inner_tiles_and_choices_stay_in_a_larger_task() -> None:
    source, target = derive(SMALL)[0], derive(LARGE)[0]
    rng = np.random.default_rng(1)
    for _ in range(20):
        row = tuple(rng.integers([hole.size for hole in source.holes]).tolist())
        moved = transplant(source, row, target)
        assert moved is not None
        for ours, value, theirs, there in zip(source.holes, row, target.holes, moved, strict=True):
            if ours.table is None:
                assert ours.choices[value] == theirs.choices[there]
            else:
                assert ours.table is not None
                assert theirs.table is not None
                assert (ours.table.spans[value, 1:] == theirs.table.spans[there, 1:]).all()


def test_there_is_nothing_to_move_between_sketches_of_other_steps() -> None:
    assert transplant(derive(SMALL)[0], (0,) * len(derive(SMALL)[0].holes), derive(OTHER)[0]) is None


def known(database: Database, task: Task, latency: float) -> None:
    sketch = derive(task)[0]
    candidate = sketch.candidate(tuple(hole.size // 2 for hole in sketch.holes))
    for each, seconds in ((candidate, latency), (NAIVE, 1.0)):
        database.add(task, Measurement(each, Outcome.OK, "00", seconds, checked=True))


def test_the_best_of_similar_tasks_is_tried(tmp_path: Path) -> None:
    with Database(tmp_path / "t.db") as database:
        assert transplanted(LARGE, derive(LARGE), database) == ()
        known(database, OTHER, 1e-6)
        assert transplanted(LARGE, derive(LARGE), database) == ()
        known(database, SMALL, 1e-5)
        (found,) = transplanted(LARGE, derive(LARGE), database)
        assert any(sketch.row_of(found) for sketch in derive(LARGE))


def test_tuning_begins_with_it(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    with Database(path) as database:
        known(database, SMALL, 1e-5)
        expected = transplanted(LARGE, derive(LARGE), database)
    result = al.tune(LARGE, trials=3, preset="transfer-tuning", database=path, progress=False)
    assert expected[0] in [trial.candidate for trial in result.history]
    assert result.restored == 0
