"""The presets: every part of each is there, and tuning as one of them is tuning with its parts."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import ansorlite as al
from ansorlite.api import makers
from ansorlite.cli.main import main
from ansorlite.errors import ArgumentError
from ansorlite.measure.timing import TIMINGS
from ansorlite.target import host
from ansorlite.tuner.presets import DEFAULT, PRESETS
from benchmarks.kernels.operators.matmul import Matmul


@pytest.mark.parametrize("name", PRESETS)
def test_its_parts_are_there(name: str) -> None:
    preset = PRESETS[name]
    for part, chosen in (
        (makers.STRATEGY, preset.strategy),
        (makers.COST_MODEL, preset.cost_model),
        (makers.SCHEDULER, preset.scheduler),
    ):
        assert chosen in part.known
    assert preset.timing in TIMINGS
    assert preset.round >= 4
    assert preset.about


def test_the_default_is_what_is_tuned_without_one() -> None:
    task = al.Task(Matmul(5, 7, 3).tensors(), host(1))
    histories = [al.tune(task, trials=5, progress=False, **given).history for given in ({}, {"preset": DEFAULT})]
    assert [trial.candidate for trial in histories[0]] == [trial.candidate for trial in histories[1]]


def test_a_preset_without_the_draft_begins_with_the_loops_as_written() -> None:
    task = al.Task(Matmul(5, 7, 3).tensors(), host(1))
    first, *_ = al.tune(task, trials=3, preset="ansor", progress=False).history
    assert first.candidate.trace == "def schedule(s):\n    pass"


@pytest.mark.parametrize("name", ["familyseer", "adatune", "pruner", "tuna"])
def test_what_is_new_in_a_preset_works_in_a_tuning(name: str) -> None:
    """Doubt, priors, timing and shares of trials: what tables do not show."""
    tasks = [al.Task(Matmul(n, 7, 3).tensors(), host(1)) for n in (5, 6)]
    result = al.tune(tasks, trials=14, preset=name, progress=False)
    assert result.trials == 14
    assert all(task.best_latency < 1 for task in result.tasks)


@pytest.mark.parametrize("given", ["ansr", 3, None])
def test_an_unknown_preset_is_one_sentence(given: object) -> None:
    task = al.Task(Matmul(5, 7, 3).tensors(), host(1))
    with pytest.raises(ArgumentError, match=r"unknown preset .*; the presets are: default, random, ansor"):
        al.tune(task, trials=2, preset=given)  # type: ignore[arg-type]


def test_the_command_lists_them_and_tunes_as_one(tmp_path: Path) -> None:
    listed = CliRunner().invoke(main, ["presets", "--json"])
    assert set(json.loads(listed.output)) == set(PRESETS)
    assert "Kirkpatrick" in CliRunner().invoke(main, ["presets"]).output
    kernels = tmp_path / "kernels.py"
    kernels.write_text(
        "from ansorlite import te\ndef twice(n):\n    a = te.placeholder((n,), name='A')\n"
        "    return [a, te.compute((n,), lambda i: a[i] * 2.0, name='B')]\n"
    )
    words = ["tune", f"{kernels}:twice", "--args", "64", "--trials", "3", "--database", str(tmp_path / "t.db"), "--json"]
    tuned = CliRunner().invoke(main, [*words, "--preset", "autotvm-grid"])
    assert tuned.exit_code == 0, tuned.output
    assert json.loads(tuned.stdout)["trials"] == 3
    assert CliRunner().invoke(main, [*words, "--preset", "ansr"]).exit_code == 2
