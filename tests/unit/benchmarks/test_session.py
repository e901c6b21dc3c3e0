"""One small case through the benchmark: tuned, checked, timed; and the command's mistakes."""

import pytest
from click.testing import CliRunner

import ansorlite as al
from benchmarks.kernels import session
from benchmarks.kernels.__main__ import main
from benchmarks.kernels.operators.constant import ConstantWeights
from benchmarks.kernels.operators.matmul import Dense, Matmul
from benchmarks.kernels.operators.operator import Array
from benchmarks.kernels.results import BARE, CALLED, UNTUNED, Run
from benchmarks.kernels.session import Settings
from benchmarks.kernels.suites import Case

SETTINGS = Settings(Run(threads=1, trials=3, seed=0), ("numpy",), untuned=True, seconds=0.0, time_limit=None)


def test_a_case_is_tuned_checked_and_timed() -> None:
    case = Case("small", Matmul(5, 7, 3))
    with al.Database(":memory:") as database:
        tuning = session.tune("odd", case, SETTINGS, database)
        timing = session.compare("odd", case, SETTINGS, database)
    assert (tuning.trials, tuning.restored) == (3, 0)
    assert tuning.curve
    assert tuning.seconds == pytest.approx(sum(tuning.phases.values()), rel=1e-3)
    assert set(timing.seconds) == {CALLED, BARE, UNTUNED, "numpy"}
    assert set(timing.called) == set(timing.bare) == {UNTUNED, "numpy"}
    assert timing.wrong == {}
    assert timing.recorded
    assert (timing.flops, timing.nbytes) == (2 * 5 * 7 * 3, 4 * (15 + 21 + 35))


def test_constant_weights_are_prepared_before_calls_are_timed() -> None:
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed: pip install 'ansorlite[bench]'")
    case = Case("constant", ConstantWeights(Dense(5, 7, 3)))
    timing = session.compare("constant", case, Settings(Run(1, 0, 0), ("onnxruntime",), False, 0.0, None), None)
    assert set(timing.seconds) == {CALLED, BARE, "onnxruntime", "onnxruntime constant"}
    assert timing.wrong == {}


class _Wrong(Matmul):
    """numpy computes something else."""

    def numpy(self, *x: Array) -> Array:
        return super().numpy(*x) + 1


def test_an_output_that_is_wrong_is_said() -> None:
    case = Case("wrong", _Wrong(5, 7, 3))
    timing = session.compare("odd", case, Settings(Run(1, 0, 0), (), False, 0.0, None), None)
    assert "35 of 35 elements" in timing.wrong[CALLED]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--suite", "nothing"], "there is no suite nothing; the suites are: all, anchors"),
        (["--case", "no such case"], "no case of anchors"),
        (["--against", "gcc"], "there is no peer gcc; the peers are: torch"),
    ],
)
def test_mistakes_are_one_sentence(arguments: list[str], said: str) -> None:
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 2
    assert said in result.output
