"""Control flow whose course is data: its bodies are compiled, and Python calls them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx
import pytest

import ansorlite as al
from ansorlite.errors import ModelError
from ansorlite.frontends.onnx import load_model
from ansorlite.graph.hybrid import HostStep, HybridModel
from ansorlite.graph.model import Model
from tests.onnx.support import run

Array = np.ndarray

RNG = np.random.default_rng(0)
X = RNG.random((3, 4), dtype=np.float32)

HALVED = """
    (float[3, 4] x, float limit) => (float[3, 4] last, float[n, 3] sums) {
        most = Constant <value = int64 {100}> ()
        yes = Constant <value = bool {1}> ()
        last, sums = Loop <body = body (int64 turn, bool told, float[3, 4] state) => (bool on, float[3, 4] next, float[3] row) {
            half = Constant <value = float {0.5}> ()
            last_axis = Constant <value = int64[1] {1}> ()
            next = Mul(state, half)
            largest = ReduceMax <keepdims = 0> (next)
            on = Greater(largest, limit)
            row = ReduceSum <keepdims = 0> (next, last_axis)
        }> (most, yes, x)
    }
"""


def parsed(text: str, opset: int = 18) -> onnx.ModelProto:
    return onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]> model {text}')


def hosts(model: onnx.ModelProto) -> tuple[HostStep, ...]:
    loaded = load_model(model)
    assert isinstance(loaded, HybridModel)
    return loaded.fallbacks


def halved(x: Array, limit: float) -> dict[str, Array]:
    rows = []
    while True:
        x = x * np.float32(0.5)
        rows.append(x.sum(1))
        if not x.max() > limit:
            return {"last": x, "sums": np.stack(rows)}


def agree(found: Mapping[str, Array], expected: Mapping[str, Array]) -> None:
    for name, array in expected.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_allclose(found[name], array, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("limit", [0.4, 0.01, 2.0])
def test_a_loop_goes_on_as_long_as_its_data_say(limit: float) -> None:
    model = parsed(HALVED)
    (step,) = hosts(model)
    assert (step.operator, step.reason) == ("Loop", "how it goes on is known only while the model runs")
    assert all(isinstance(body, Model) for body in step.bodies)
    agree(run(model, {"x": X, "limit": np.float32(limit)}), halved(X, limit))


def test_compiled() -> None:
    executable = al.compile(load_model(parsed(HALVED)))
    inputs = {"x": X, "limit": np.asarray(0.1, np.float32)}
    agree(executable(inputs), halved(X, 0.1))
    profile = executable.profile(inputs, runs=1)
    assert [step.facts.name for step in profile.steps] == ["Python: node 'last' (Loop)"]


def test_bodies_have_tasks() -> None:
    model = load_model(parsed(HALVED))
    assert model.tasks
    assert not model.segments


def test_a_loop_that_runs_not_once() -> None:
    text = HALVED.replace("yes = Constant <value = bool {1}> ()", "yes = Greater(limit, limit)")
    found = run(parsed(text), {"x": X, "limit": np.float32(0.1)})
    agree(found, {"last": X, "sums": np.empty((0, 3), np.float32)})
    found["last"][:] = 0
    assert X.any(), "a result is not the caller's input"


REPEATED = """
    (float[1, 8] x, float[8, 8] w) => (float[1, 8] last, float[8, 8] same) {
        most = Constant <value = int64 {TURNS}> ()
        last, same, count = Loop <body = body (int64 turn, bool told, float[1, 8] state, float[8, 8] m, float c)
                                     => (bool on, float[1, 8] next, float[8, 8] n, float d) {
            one = Constant <value = float {1}> ()
            on = Identity(told)
            product = MatMul(state, m)
            next = Tanh(product)
            n = Identity(m)
            d = Add(c, one)
        }> (most, , x, w, zero)
    }
"""


def repeated(turns: int) -> onnx.ModelProto:
    text = REPEATED.replace("TURNS", str(turns)).replace("most =", "zero = Constant <value = float {0}> ()\n most =", 1)
    return parsed(text)


def test_a_long_loop_is_not_written_out() -> None:
    x, w = RNG.random((1, 8), dtype=np.float32), RNG.random((8, 8), dtype=np.float32) - np.float32(0.5)
    (step,) = hosts(repeated(1000))
    assert step.reason == "it runs too often to be written out"
    assert step.turns == 1000
    # What stays as it is, and what nothing reads, is not carried.
    assert [name for name, _ in step.outputs] == ["last"]
    last = x
    for _ in range(1000):
        last = np.tanh(last @ w)
    agree(run(repeated(1000), {"x": x, "w": w}), {"last": last, "same": w})
    assert isinstance(load_model(repeated(5)), Model)


def test_turns_are_tasks_uses() -> None:
    model = load_model(repeated(1000))
    assert {uses for _, uses in model.tasks} == {1000}


COUNTED = """
    (float[4] x) => (float[4] y) {
        from = Constant <value = int64 {3}> ()
        yes = Constant <value = bool {1}> ()
        y, last = Loop <body = body (int64 turn, bool told, float[4] state, int64 i) => (bool on, float[4] next, int64 j) {
            one = Constant <value = int64 {1}> ()
            end = Constant <value = int64 {END}> ()
            next = Sin(state)
            j = Add(i, one)
            on = Less(j, end)
        }> ( , yes, x, from)
    }
"""


@pytest.mark.parametrize("end", [8, 3000])
def test_turns_are_counted_by_what_the_condition_depends_on(end: int) -> None:
    x = RNG.random(4, dtype=np.float32)
    model = parsed(COUNTED.replace("END", str(end)))
    loaded = load_model(model)
    assert isinstance(loaded, Model) == (end == 8)
    if end > 8:
        assert [step.turns for step in loaded.fallbacks] == [2997]
    expected = x
    for _ in range(3, end):
        expected = np.sin(expected)
    agree(run(model, {"x": x}), {"y": expected})


def test_an_end_that_is_never_reached_is_not_waited_for() -> None:
    text = COUNTED.replace("Less(j, end)", "Greater(j, one)").replace("END", "1")
    (step,) = hosts(parsed(text))
    assert step.reason == "it runs too often to count its turns"


def test_shapes_that_change_in_the_first_turn_only() -> None:
    text = """
        (float[4, 3] x, float limit) => (float[n, m] y) {
            yes = Constant <value = bool {1}> ()
            first = Constant <value = float[1, 1] {1.0}> ()
            y = Loop <body = body (int64 turn, bool told, float[a, b] state) => (bool on, float[a, b] next) {
                next = Add(state, x)
                least = ReduceMin <keepdims = 0> (next)
                on = Less(least, limit)
            }> ( , yes, first)
        }
    """
    x = RNG.random((4, 3), dtype=np.float32)
    (step,) = hosts(parsed(text))
    assert len(step.bodies) == 2
    for limit in (0.5, 3.0):
        expected = 1 + x
        while expected.min() < limit:
            expected = expected + x
        agree(run(parsed(text), {"x": x, "limit": np.float32(limit)}), {"y": expected.astype(np.float32)})


def test_shapes_that_grow_are_left_to_the_reference() -> None:
    text = """
        (float[1, 3] x, float limit) => (float[n, 3] y) {
            yes = Constant <value = bool {1}> ()
            y = Loop <body = body (int64 turn, bool told, float[a, 3] state) => (bool on, float[b, 3] next) {
                next = Concat <axis = 0> (state, x)
                sum = ReduceSum <keepdims = 0> (next)
                on = Less(sum, limit)
            }> ( , yes, x)
        }
    """
    x = np.ones((1, 3), np.float32)
    (step,) = hosts(parsed(text))
    assert "changes its shape" in step.reason
    assert not step.bodies
    agree(run(parsed(text), {"x": x, "limit": np.float32(8)}), {"y": np.ones((3, 3), np.float32)})


SCANNED = """
    (float[3] first, float[ROWS, 3] x) => (float[3] last, float[3, ROWS] y) {
        last, y = Scan <num_scan_inputs = 1, scan_input_directions = [1], scan_output_axes = [1], scan_output_directions = [BACK],
                        body = body (float[3] state, float[3] row) => (float[3] next, float[3] out) {
            sum = Add(state, row)
            next = Tanh(sum)
            out = Mul(next, row)
        }> (first, x)
    }
"""


@pytest.mark.parametrize("backwards", [0, 1])
def test_a_long_scan(backwards: int) -> None:
    first, x = RNG.random(3, dtype=np.float32), RNG.random((1000, 3), dtype=np.float32)
    model = parsed(SCANNED.replace("ROWS", "1000").replace("BACK", str(backwards)))
    (step,) = hosts(model)
    assert step.turns == 1000
    state, rows = first, []
    for row in x[::-1]:
        state = np.tanh(state + row)
        rows.append(state * row)
    agree(run(model, {"first": first, "x": x}), {"last": state, "y": np.stack(rows[::-1] if backwards else rows, 1)})


CHOSEN = """
    (float[3, 4] x, float limit) => (float[a, b] y) {
        sum = ReduceSum <keepdims = 0> (x)
        more = Greater(sum, limit)
        y = If <then_branch = then () => (float[3, 4] t) { t = Exp(x) },
                else_branch = other () => (float[A, B] e) { e = ELSE }> (more)
    }
"""


@pytest.mark.parametrize("otherwise", ["Neg(x)", "Transpose(x)", "Identity(x)"])
def test_a_branch_is_taken_as_the_data_say(otherwise: str) -> None:
    model = parsed(CHOSEN.replace("ELSE", otherwise))
    (step,) = hosts(model)
    (named,) = step.outputs
    assert (named[1] is None) == (otherwise == "Transpose(x)"), "a shape that is the same in both branches is known"
    other = {"Neg(x)": -X, "Transpose(x)": X.T, "Identity(x)": X}[otherwise]
    for limit, expected in ((0.0, np.exp(X)), (100.0, other)):
        agree(run(model, {"x": X, "limit": np.float32(limit)}), {"y": expected})


def test_branches_without_inputs() -> None:
    constants = "then_branch = then () => (float[2] t) { t = Constant <value = float[2] {1.0, 2.0}> () }"
    text = CHOSEN.replace("then_branch = then () => (float[3, 4] t) { t = Exp(x) }", constants)
    model = parsed(text.replace("ELSE", "Constant <value = float[2] {3.0, 4.0}> ()"))
    for limit, expected in ((0.0, [1, 2]), (100.0, [3, 4])):
        agree(run(model, {"x": X, "limit": np.float32(limit)}), {"y": np.array(expected, np.float32)})


def test_a_branch_within_a_loop() -> None:
    text = HALVED.replace(
        "next = Mul(state, half)",
        """small = ReduceMean <keepdims = 0> (state)
           odd = Less(small, half)
           next = If <then_branch = then () => (float[3, 4] t) { t = Mul(state, half) },
                      else_branch = other () => (float[3, 4] e) { e = Sub(state, half) }> (odd)""",
    )
    x, limit = X * 3, np.float32(0.2)
    expected = x
    while True:
        expected = expected * np.float32(0.5) if expected.mean() < 0.5 else expected - np.float32(0.5)
        if not expected.max() > limit:
            break
    (step,) = hosts(parsed(text))
    (body,) = step.bodies
    assert isinstance(body, HybridModel)
    assert [inner.operator for inner in body.fallbacks] == ["If"]
    agree(run(parsed(text), {"x": x, "limit": limit}), {"last": expected})


def test_a_condition_is_one_value() -> None:
    text = HALVED.replace("(float[3, 4] x, float limit)", "(float[3, 4] x, float[2] limit)")
    with pytest.raises(ModelError, match=r"'on', which decides how the model goes on, must be one value; its shape is \(2,\)"):
        run(parsed(text), {"x": X, "limit": np.zeros(2, np.float32)})


def test_steps_that_nothing_reads_are_not_run() -> None:
    """The condition's own course is looked at to count the turns: what that needed of Python is not needed afterwards."""
    text = """
        (float[4] x) => (float[4] y) {
            yes = Constant <value = bool {1}> ()
            y = Loop <body = body (int64 turn, bool told, float[4] state) => (bool on, float[4] next) {
                next = Sin(state)
                places = NonZero(next)
                found = Size(places)
                four = Constant <value = int64 {4}> ()
                on = Less(found, four)
            }> ( , yes, x)
        }
    """
    x = RNG.random(4, dtype=np.float32)
    (step,) = hosts(parsed(text))
    assert step.operator == "Loop"
    agree(run(parsed(text), {"x": x}), {"y": np.sin(x)})
