"""What is computed together, and as which task."""

from __future__ import annotations

import numpy as np
import pytest

from ansorlite.graph.builder import GraphBuilder
from ansorlite.graph.describe import Pattern, Value, describe
from ansorlite.graph.fusion import fuse
from ansorlite.graph.model import Model
from ansorlite.topi.activations import relu
from ansorlite.topi.conv import conv
from ansorlite.topi.elementwise import add, exp, multiply
from ansorlite.topi.matmul import gemm
from ansorlite.topi.shape import concat, gather, reshape, strided_slice, transpose
from ansorlite.topi.softmax import softmax

IMAGE = Value((1, 3, 8, 8), "float32")


@pytest.fixture
def build() -> GraphBuilder:
    builder = GraphBuilder()
    builder.input("x", IMAGE)
    return builder


def _weight(build: GraphBuilder, *shape: int) -> str:
    return build.constant(np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32), "w")


def _names(build: GraphBuilder, **outputs: str) -> list[str]:
    return [group.name for group in fuse(build.finish(outputs))]


@pytest.mark.parametrize(
    ("operator", "shapes", "attributes", "pattern"),
    [
        (relu, [(2, 3)], {}, Pattern.ELEMENTWISE),
        (add, [(2, 3), (3,)], {}, Pattern.ELEMENTWISE),
        (transpose, [(2, 3)], {"axes": (1, 0)}, Pattern.INJECTIVE),
        (concat, [(2, 3), (2, 3)], {"axis": 0}, Pattern.INJECTIVE),
        (gemm, [(2, 3), (3, 4)], {}, Pattern.REDUCTION),
        (softmax, [(2, 3)], {}, Pattern.REDUCTION),
    ],
)
def test_patterns_are_read_off_the_expressions(operator, shapes, attributes, pattern):
    values = tuple(Value(shape, "float32") for shape in shapes)
    assert describe(operator, values, tuple(attributes.items())).pattern is pattern


def test_alignment_is_read_off_the_expressions():
    values = (Value((2, 3), "float32"), Value((1, 3), "float32"))
    assert describe(add, values, ()).aligned == (True, False)
    indices = (Value((2, 3), "float32"), Value((2,), "int64"))
    assert describe(gather, indices, (("axis", 0),)).pattern is Pattern.INJECTIVE


def test_a_convolution_takes_its_followers_along(build):
    result = build.apply(conv, "x", _weight(build, 4, 3, 1, 1))
    result = build.apply(relu, build.apply(add, result, _weight(build, 4, 1, 1)))
    assert _names(build, y=result) == ["conv+add+relu"]


def test_a_value_that_two_read_or_that_is_given_out_ends_its_group(build):
    result = build.apply(conv, "x", _weight(build, 4, 3, 1, 1))
    left, right = build.apply(relu, result), build.apply(exp, result)
    assert _names(build, y=left, z=right) == ["conv", "relu", "exp"]
    assert _names(build, y=left, z=result) == ["conv", "relu", "exp"]


def test_a_residual_sum_joins_the_branch_that_is_computed_last(build):
    left = build.apply(conv, "x", _weight(build, 4, 3, 1, 1))
    right = build.apply(conv, build.apply(relu, "x"), _weight(build, 4, 3, 1, 1))
    assert _names(build, y=build.apply(relu, build.apply(add, left, right))) == ["conv", "relu", "conv+add+relu"]


def test_a_follower_that_broadcasts_the_value_stays_apart(build):
    result = build.apply(conv, "x", _weight(build, 1, 3, 1, 1))
    assert _names(build, y=build.apply(multiply, result, "x")) == ["conv", "multiply"]


def test_element_wise_chains_are_one_group_and_softmax_is_one(build):
    result = build.apply(exp, build.apply(relu, build.apply(add, "x", "x")))
    assert _names(build, y=build.apply(softmax, result)) == ["add+relu+exp", "softmax"]


def test_movements_are_in_no_group(build):
    flat = build.apply(reshape, build.apply(relu, "x"), shape=(3, 64))
    part = build.apply(strided_slice, flat, starts=(1, 0), counts=(2, 64), steps=(1, 1))
    both = build.apply(concat, build.apply(exp, part), flat, axis=0)
    assert _names(build, y=build.apply(exp, both)) == ["relu", "exp", "exp"]


def test_a_concatenation_that_interleaves_is_a_task(build):
    both = build.apply(concat, "x", build.apply(exp, "x"), axis=2)
    assert _names(build, y=build.apply(relu, both)) == ["exp", "concat+relu"]


def test_equal_groups_are_one_task_with_a_weight(build):
    result = "x"
    for n in range(3):
        weight = build.constant(np.full((3, 3, 1, 1), n, np.float32), "w")
        result = build.apply(relu, build.apply(conv, result, weight))
    model = Model.of(build.finish({"y": result}))
    assert [(weight, len(task.dag.inputs)) for task, weight in model.tasks] == [(3, 2)]
    assert model.assignments == (0, 0, 0)
    assert [t.name for t in model.tasks[0][0].dag.inputs] == ["x", "weight"]
    assert model.outputs == {"y": IMAGE}


def test_a_value_that_is_read_twice_is_one_argument(build):
    model = Model.of(build.finish({"y": build.apply(add, "x", "x")}))
    ((task, _),) = model.tasks
    assert len(task.dag.inputs) == 1
