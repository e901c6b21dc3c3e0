"""A small part of ``python -m benchmarks.audit``: what runs in Python gives what onnxruntime gives, or is refused by name."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

pytest.importorskip("onnxruntime", reason="onnxruntime is not installed: pip install 'ansorlite[peers]'")

from ansorlite.errors import ModelError
from ansorlite.frontends.onnx import load_model
from ansorlite.frontends.onnx.misread import refusal
from ansorlite.frontends.onnx.operators.table import converter
from benchmarks.audit.run import audit
from benchmarks.audit.seeds import seeds
from benchmarks.audit.verdict import Outcome, Way, difference, judge
from tests.onnx.support import make_model, run

#: Found wrong once where they ran in Python, though they have converters or bodies.
_ONCE_WRONG = ("AveragePool", "DynamicQuantizeLinear", "Hardmax", "MaxPool", "ReverseSequence", "Softmax", "Split")

#: onnxruntime has them not at all, or they take long to make.
_NOT_COMPARED = {"BitCast", "ImageDecoder"}

_SLOW = {"AveragePool", "MaxPool"}


def _in_python(operator: str) -> bool:
    """Whether a node of an operator runs in Python always: by the reference."""
    node = seeds()[operator][0].node
    schema = onnx.defs.get_schema(node.op_type, domain=node.domain)
    return converter(node) is None and not schema.has_function and not schema.has_context_dependent_function


def _operators() -> list[str]:
    found = [name for name in seeds() if _in_python(name) and "training" not in name and name not in _NOT_COMPARED]
    return sorted({*found, *_ONCE_WRONG})


@pytest.mark.parametrize("operator", _operators())
def test_variations(operator):
    bad = [v for v in audit(operator, 3 if operator in _SLOW else 6, 2) if v.outcome in (Outcome.WRONG, Outcome.CRASH)]
    assert not bad, "\n".join(f"{v.way.value}: {v.case}: {v.detail}" for v in bad)


@pytest.mark.parametrize("way", Way)
@pytest.mark.parametrize("operator", ["Loop", "RoiAlign", "ai.onnx.ml.LinearRegressor", "ai.onnx.ml.Scaler"])
def test_seeds_are_right_however_inputs_are_given(operator, way):
    """Nothing is skipped: these are all taken by onnxruntime, and by us."""
    outcomes = [judge(case, way).outcome for case in seeds()[operator]]
    assert Outcome.RIGHT in outcomes
    assert set(outcomes) <= {Outcome.RIGHT, Outcome.UNCHECKED, Outcome.REFUSED}


def _ml(operator: str, **attributes: object) -> onnx.NodeProto:
    return helper.make_node(operator, ["x"], ["y"], domain="ai.onnx.ml", **attributes)


def _regressor(aggregate: str, targets: list[int], leaves: list[int], count: int = 2) -> onnx.NodeProto:
    """A tree with two leaves, nodes 1 and 2. ``leaves``: which of them each weight is at."""
    return _ml(
        "TreeEnsembleRegressor",
        aggregate_function=aggregate,
        n_targets=count,
        nodes_treeids=[0, 0, 0],
        nodes_nodeids=[0, 1, 2],
        nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF"],
        nodes_featureids=[0, 0, 0],
        nodes_values=[0.5, 0.0, 0.0],
        nodes_truenodeids=[1, 0, 0],
        nodes_falsenodeids=[2, 0, 0],
        target_treeids=[0] * len(targets),
        target_nodeids=[1 + leaf for leaf in leaves],
        target_ids=targets,
        target_weights=[1.5 * number - 1.0 for number in range(len(targets))],
    )


@pytest.mark.parametrize(
    ("node", "message"),
    [
        (_ml("LinearClassifier", coefficients=[1.0] * 4, intercepts=[0.5], classlabels_ints=[0, 1]), "one row of coefficients"),
        (_ml("LinearClassifier", coefficients=[1.0] * 8, intercepts=[0.5, 1.0], classlabels_ints=[0, 1]), ""),
        (_ml("Normalizer"), "norm='MAX'"),
        (_ml("Normalizer", norm="L1"), ""),
        (_ml("SVMClassifier", post_transform="SOFTMAX"), "post_transform is not supported"),
        (_ml("TreeEnsembleClassifier", classlabels_int64s=[0, 1]), "for two classes runtimes differ"),
        (_ml("TreeEnsembleClassifier", classlabels_int64s=[0, 1, 2]), ""),
        (_ml("TreeEnsemble", post_transform=1), "post_transform is not supported"),
        (_ml("TreeEnsemble", aggregate_function=2, n_targets=2), "aggregate_function MIN or MAX"),
        (_ml("TreeEnsemble", aggregate_function=2, n_targets=1), ""),
        (_regressor("MIN", [0, 1], [0, 0]), "a weight of every target at every leaf"),
        (_regressor("MAX", [0, 1, 1], [0, 0, 1]), "a weight of every target at every leaf"),
        (_regressor("MAX", [0, 1, 0, 1], [0, 0, 1, 1]), ""),
        (_regressor("MAX", [0, 2, 0, 1], [0, 0, 1, 1]), "a weight of every target at every leaf"),
        (_regressor("MAX", [0, 1, 0, 1], [0, 0, 1, 1], 10**15), "a weight of every target at every leaf"),
        (_regressor("SUM", [0, 1], [0, 0]), ""),
    ],
)
def test_what_nothing_runs_right_is_refused(node, message):
    assert message in refusal(node)
    assert bool(message) == bool(refusal(node))


def test_floats_that_a_cast_writes_as_strings_are_compared_as_numbers():
    assert difference([np.array(["1.50", "nan", "word"])], [np.array(["1.5", "nan", "word"], object)], digits_open=True) == ""
    assert difference([np.array(["1.5"])], [np.array(["1.6"])], digits_open=True)
    assert difference([np.array(["a"])], [np.array(["b"])], digits_open=True)


def test_other_strings_are_compared_letter_by_letter():
    assert difference([np.array(["1.50"])], [np.array(["1.5"], object)])
    assert difference([np.array(["1.5", "word"])], [np.array(["1.5", "word"], object)]) == ""


def test_it_is_refused_at_import_with_the_name_of_the_node():
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [3, 4]) for name in ("x", "y")]
    graph = helper.make_graph([_ml("Normalizer")], "ml", values[:1], values[1:])
    imports = [helper.make_opsetid("", 21), helper.make_opsetid("ai.onnx.ml", 5)]
    with pytest.raises(ModelError, match=r"node 'y' \(Normalizer\): for norm='MAX' .*; write it with ReduceMax and Div"):
        load_model(helper.make_model(graph, opset_imports=imports, ir_version=10))


def test_an_optional_value_is_what_it_holds():
    nodes = [helper.make_node("Optional", ["x"], ["o"]), helper.make_node("OptionalGetElement", ["o"], ["y"])]
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(run(make_model(nodes, {"x": x}, ["y"]), {"x": x})["y"], x)


@pytest.mark.parametrize("opset", [11, 12, 13])
@pytest.mark.parametrize("rank", [0, 1, 2])
def test_rows_that_a_loop_in_python_collects(opset, rank):
    """How often it runs is known only while the model runs."""
    info = helper.make_tensor_value_info
    row = np.arange(3.0**rank, dtype=np.float32).reshape((3,) * rank)
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["go"], ["on"]),
            helper.make_node("Exp", ["v"], ["w"]),
            helper.make_node("Neg", ["v"], ["out"]),
        ],
        "body",
        [info("i", TensorProto.INT64, []), info("go", TensorProto.BOOL, []), info("v", TensorProto.FLOAT, row.shape)],
        [info("on", TensorProto.BOOL, []), info("w", TensorProto.FLOAT, row.shape), info("out", TensorProto.FLOAT, row.shape)],
    )
    graph = helper.make_graph(
        [helper.make_node("Loop", ["n", "", "v0"], ["", "rows"], body=body)],
        "loop",
        [info("n", TensorProto.INT64, []), info("v0", TensorProto.FLOAT, row.shape)],
        [info("rows", TensorProto.FLOAT, [None] * (rank + 1))],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=6)
    found = run(model, {"n": np.array(2), "v0": row})["rows"]
    np.testing.assert_allclose(found, np.stack([-row, -np.exp(row)]), rtol=1e-6)
