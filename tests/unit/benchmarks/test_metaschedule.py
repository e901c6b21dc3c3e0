"""MetaSchedule as a peer: its expressions mean what ours do, and it goes on where it stopped."""

import importlib
from pathlib import Path

import numpy as np
import pytest

from ansorlite.measure.check import Checker, tolerance
from ansorlite.measure.inputs import make_inputs
from ansorlite.te.dag import ComputeDAG
from benchmarks.kernels.operators.matmul import Matmul
from benchmarks.kernels.operators.operator import Operator
from benchmarks.kernels.peers.metaschedule import MetaSchedule
from benchmarks.kernels.results import Run
from tests.unit.benchmarks.test_operators import SMALL

tvm = pytest.importorskip("tvm", reason="TVM is not installed: pip install 'ansorlite[metaschedule]'")
translation = importlib.import_module("benchmarks.kernels.peers.tvm_te")


@pytest.mark.parametrize("operator", SMALL, ids=str)
def test_translated_expressions_mean_the_same(operator: Operator) -> None:
    dag = ComputeDAG.of(operator.tensors())
    arrays = make_inputs(dag, np.random.default_rng(0))
    output = tvm.runtime.empty(dag.outputs[0].shape, dag.outputs[0].dtype)
    tvm.compile(translation.prim_func(dag), "llvm")["main"](*map(tvm.runtime.tensor, arrays), output)
    assert Checker(["y"], [operator.numpy(*arrays)], tolerance(dag)).compare([output.numpy()]) == ""


def test_a_product_is_tuned_and_a_second_run_measures_nothing(tmp_path: Path) -> None:
    operator = Matmul(5, 7, 3)
    arrays = make_inputs(ComputeDAG.of(operator.tensors()), np.random.default_rng(0))
    files = []
    for _ in range(2):
        (contender,) = MetaSchedule().contenders(operator, arrays, Run(1, 2, 0), tmp_path).values()
        np.testing.assert_allclose(contender.output(contender.call()), operator.numpy(*arrays), rtol=1e-5)
        files.append([path.read_text() for path in sorted(tmp_path.rglob("database_tuning_record.json"))])
    assert files[0] == files[1]
    assert len(files[0][0].splitlines()) == 2


def test_without_trials_there_is_no_program(tmp_path: Path) -> None:
    assert MetaSchedule().contenders(Matmul(5, 7, 3), [], Run(1, 0, 0), tmp_path) == {}
