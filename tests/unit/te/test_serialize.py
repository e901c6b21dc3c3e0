import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansorlite import te
from ansorlite.errors import RecordsError
from ansorlite.te.dag import ComputeDAG
from ansorlite.te.evaluate import evaluate
from ansorlite.te.printer import text
from ansorlite.te.serialize import dump, load
from tests import workloads
from tests.strategies import arrays_for, dags


def through_json(dag):
    return load(json.loads(json.dumps(dump(dag), allow_nan=False)))


@settings(deadline=None, max_examples=60)
@given(dags())
def test_round_trip(dag):
    loaded = through_json(dag)
    assert loaded.key == dag.key
    assert text(loaded) == text(dag)
    assert dump(loaded) == dump(dag)
    arrays = arrays_for(dag, np.random.default_rng(0))
    for ours, theirs in zip(evaluate(loaded, arrays), evaluate(dag, arrays), strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -0.0, 0.1, 1e-45, True, 7])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_constants_are_exact(value, dtype):
    a = te.placeholder((2,), dtype, name="A")
    dag = ComputeDAG.of([a, te.compute((2,), lambda i: a[i] * te.cast(value, dtype))])
    assert through_json(dag).key == dag.key


def test_deep_and_shared_expressions():
    a = te.placeholder((2,), name="A")

    def deep(i):
        value = a[i]
        for _ in range(5_000):
            value = value + value
        return value

    dag = ComputeDAG.of([a, te.compute((2,), deep)])
    data = dump(dag)
    assert len(data["tensors"][1]["nodes"]) == 5_002
    assert load(data).key == dag.key


def _places(data):
    """Every (container, key) in nested data."""
    for key in list(data) if isinstance(data, dict) else range(len(data)) if isinstance(data, list) else ():
        yield data, key
        yield from _places(data[key])


junk = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 9), st.just(1 << 70), st.just(0.5), st.text(max_size=4),
    st.sampled_from(["float32", "int64", "bool", "ADD", "LT", "EXP", "SUM", "axis", "read", "cast", "select"]),
    st.just([]), st.just({}),
)  # fmt: skip


@settings(deadline=None, max_examples=120)
@given(dag=dags(), value=junk, data=st.data())
def test_damaged_data_load_or_are_refused(dag, value, data):
    damaged = dump(dag)
    container, key = data.draw(st.sampled_from(list(_places(damaged))))
    container[key] = value
    try:
        loaded = load(damaged)
    except RecordsError:
        return
    assert load(dump(loaded)).key == loaded.key


def _matmul(change):
    data = dump(ComputeDAG.of(workloads.matmul(4, 5, 6)))
    change(data)
    return data


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (None, "not an object"),
        ([], "not an object"),
        ({}, "not written by ansorlite"),
        (_matmul(lambda d: d.update(format=2)), "upgrade ansorlite"),
        (_matmul(lambda d: d.update(inputs=1)), "says it has 1 inputs"),
        (_matmul(lambda d: d.update(outputs=[])), r"at least one te\.compute"),
        (_matmul(lambda d: d.update(outputs=[3])), "an output has number 3"),
        (_matmul(lambda d: d["tensors"][0].update(dtype="f4")), "unknown dtype 'f4'"),
        (_matmul(lambda d: d["tensors"][0].update(shape=[0, 6])), "at least 1"),
        (_matmul(lambda d: d["tensors"][0].update(shape=[3, 6])), "spans 0..3"),
        (_matmul(lambda d: d["tensors"][2]["nodes"].append(["read", 2, [0, 3]])), "a tensor has number 2"),
        (_matmul(lambda d: d["tensors"][2]["nodes"].append(["binary", "ADD", 2, 0])), "do not fit"),
        (_matmul(lambda d: d["tensors"][2]["nodes"].append(["binary", "__class__", 2, 2])), "not an operation"),
        (_matmul(lambda d: d["tensors"][2]["nodes"].append(["unary", "NEG", 99])), "an operand has number 99"),
        (_matmul(lambda d: d["tensors"][2]["nodes"].append(["jump", 3])), "is not a node"),
        (_matmul(lambda d: d["tensors"][2].pop("reduce")), "an axis has number 2"),
    ],
)
def test_the_cause_is_named(data, message):
    with pytest.raises(RecordsError, match=message):
        load(data)


def test_constant_inputs_stay_constant():
    a = te.placeholder((2,), name="A", constant=True)
    dag = ComputeDAG.of([a, te.compute((2,), lambda i: a[i] + 1.0)])
    assert through_json(dag).inputs[0].constant
    assert "A: constant float32[2]" in text(through_json(dag))
    record = dump(dag)
    record["tensors"][0]["constant"] = "yes"
    with pytest.raises(RecordsError, match=r"tensor 0 .* whether it is constant is 'yes'"):
        load(record)
