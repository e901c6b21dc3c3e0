"""The comparison of default programs with others, on one small task."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from ansorlite.cost_model.draft import Draft
from ansorlite.search.default import default_candidate
from ansorlite.spaces.derivation import derive
from ansorlite.target import host
from ansorlite.task import Task
from benchmarks.draft_quality import drawn, main, quality
from benchmarks.kernels.operators.matmul import Matmul


def test_the_default_program_is_timed_among_others() -> None:
    task = Task(Matmul(5, 7, 3).tensors(), host(1))
    found = quality("small", task, count=4, seed=0)
    assert found.candidates[0] == default_candidate(task, derive(task))
    assert len(set(found.candidates)) == len(found.candidates) == len(found.seconds)
    assert found.default == found.seconds[0]
    assert found.best == min(found.seconds)
    assert 0 < found.pick <= 1


def test_programs_are_drawn_once_each() -> None:
    task = Task(Matmul(33, 17, 9).tensors(), host(1))
    candidates = drawn(derive(task), Draft(task.target), 20, np.random.default_rng(0))
    assert len(candidates) == len(set(candidates)) == 20


def test_a_line_of_json_for_each_case() -> None:
    result = CliRunner().invoke(main, ["--suite", "odd", "--case", "1x1009x509", "--candidates", "2", "--json"])
    assert result.exit_code == 0, result.output
    (line,) = result.output.splitlines()
    assert json.loads(line)["pick"] == pytest.approx(json.loads(line)["best"] / json.loads(line)["default"])
