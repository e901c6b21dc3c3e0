"""Each operator of the benchmark means the same in te, in numpy, and in ONNX."""

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator

from ansorlite.measure.check import Checker, tolerance
from ansorlite.measure.inputs import make_inputs
from ansorlite.te.dag import ComputeDAG
from ansorlite.te.evaluate import evaluate
from benchmarks.kernels.operators.capsule import CapsuleConv
from benchmarks.kernels.operators.constant import ConstantWeights
from benchmarks.kernels.operators.conv import Conv, Epilogue
from benchmarks.kernels.operators.conv_transpose import ConvTranspose
from benchmarks.kernels.operators.elementwise import BiasGelu, CellState, ScaleShiftAddRelu, TransposeAdd
from benchmarks.kernels.operators.matmul import Activation, AttentionWeights, Dense, Matmul
from benchmarks.kernels.operators.operator import Operator, onnx_model
from benchmarks.kernels.operators.quantized import Int8Conv, Int8Matmul
from benchmarks.kernels.operators.reduction import ArgMax, MatrixNorm, Max, Sum, SumOfSquares
from benchmarks.kernels.operators.softmax import LayerNorm, Softmax
from benchmarks.kernels.suites import SUITES

SMALL = (
    Matmul(5, 7, 3),
    Matmul(5, 7, 3, batch=(2,)),
    *(Dense(4, 6, 5, activation) for activation in Activation),
    AttentionWeights(2, 5, 3, 4),
    Softmax((4, 9)),
    Softmax((4, 9), axis=0),
    LayerNorm(4, 9),
    Conv(2, 3, (9,), 4, kernel=3, stride=2, pad=1),
    *(Conv(2, 3, (7, 6), 4, kernel=3, stride=2, pad=1, epilogue=epilogue) for epilogue in Epilogue),
    Conv(1, 2, (9, 9), 3, kernel=3, pad=2, dilation=2),
    Conv(1, 4, (6, 6), 6, kernel=3, pad=1, groups=2),
    Conv(1, 4, (6, 6), 4, kernel=3, pad=1, groups=4),
    Conv(1, 2, (4, 5, 6), 3, kernel=3, stride=2, pad=1),
    ConvTranspose(2, 3, 4, 5, kernel=4, stride=2, pad=1),
    ConvTranspose(2, 3, 4, 5, kernel=3, stride=2, pad=0, relu=True),
    CapsuleConv(2, 5, 3, 2, kernel=3, stride=2, pad=1),
    Sum((4, 5, 6), (0, 2)),
    Max((4, 5), (1,)),
    MatrixNorm(2, 4, 5),
    SumOfSquares(37),
    SumOfSquares(37, dot=True),
    ArgMax(5, 11),
    ScaleShiftAddRelu((4, 5)),
    BiasGelu(4, 5),
    CellState(4, 5),
    TransposeAdd(4, 5),
    ConstantWeights(Dense(4, 6, 5, Activation.GELU)),
    Int8Matmul(4, 5, 6),
    Int8Conv(2, 3, 6, 4, kernel=3, stride=2, pad=1),
)


@pytest.mark.parametrize("operator", SMALL, ids=str)
def test_te_numpy_and_onnx_mean_the_same(operator: Operator) -> None:
    dag = ComputeDAG.of(operator.tensors())
    arrays = make_inputs(dag, np.random.default_rng(0))
    checker = Checker(["y"], evaluate(dag, arrays), tolerance(dag))
    by_numpy = operator.numpy(*arrays)
    assert by_numpy.shape == dag.outputs[0].shape
    assert checker.compare([by_numpy]) == ""
    weights = {position: arrays[position] for position in operator.weights}
    for constants in ({}, weights):
        feeds = {f"x{n}": array for n, array in enumerate(arrays) if n not in constants}
        by_onnx = ReferenceEvaluator(onnx_model(operator, constants)).run(None, feeds)[0]
        assert checker.compare([np.asarray(by_onnx)]) == ""


def test_every_operator_of_the_suites_was_tried_small() -> None:
    used = {type(case.operator) for cases in SUITES.values() for case in cases}
    assert used == {type(operator) for operator in SMALL}
