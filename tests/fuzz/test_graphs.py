"""Random ONNX graphs give what onnxruntime without optimisations does, node by node.

``python -m tests.fuzz.graphs --count 10000`` tries more of them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import helper

pytest.importorskip("onnxruntime", reason="onnxruntime is not installed: pip install 'ansorlite[bench]'")

from tests.fuzz.graphs import conditioning, generator
from tests.fuzz.graphs.__main__ import SECONDS, is_good, report
from tests.fuzz.graphs.check import KERNELS, Outcome, Run, check, wrong_in
from tests.fuzz.graphs.conditioning import NOISY, Worlds, evaluate
from tests.fuzz.graphs.generator import random_graph
from tests.fuzz.graphs.operators.table import MAKERS
from tests.fuzz.graphs.oracle import Witness, evaluator
from tests.fuzz.graphs.values import Array
from tests.fuzz.processes import outcomes

#: (first graph, how many, what runs them). Compiled default programs are what users get; the numpy meaning is quicker.
PARTS = [(0, 30, "default"), (30, 30, "default"), (60, 120, "meaning"), (180, 120, "meaning")]


@pytest.mark.parametrize(("first", "count", "kernels"), PARTS)
def test_each_random_graph_gives_what_the_oracle_does(first: int, count: int, kernels: str) -> None:
    found = list(outcomes("tests.fuzz.graphs.worker", first, count, kernels, seconds=SECONDS))
    assert len(found) == count
    wrong = [entry for entry in found if not is_good(entry)]
    assert not wrong, "\n".join(map(report, wrong[:20]))
    outcomes_seen = [entry["outcome"] for entry in found]
    assert outcomes_seen.count("right") > 0.9 * count


@pytest.mark.parametrize("spoil", [lambda a: a[..., :0], lambda a: a + np.ones((), a.dtype), lambda a: a.astype(np.complex64)])
def test_a_wrong_result_is_noticed(spoil: Callable[[Array], Array]) -> None:
    spoilt = 0
    for seed in range(8):
        graph = random_graph(seed)
        right = {name: own.array for name, own in graph.calls[0].expected.items()}
        assert not wrong_in(right, graph.calls[0].expected)
        for name, array in right.items():
            if array.ndim and array.size and array.dtype.kind in "iuf" and np.isfinite(array).all():
                assert name in wrong_in({**right, name: spoil(array)}, graph.calls[0].expected)
                spoilt += 1
    assert spoilt >= 4


@pytest.mark.parametrize(("i", "j"), [(0, 1), (0, 2), (2, 3), (3, 4), (1, 6), (0, 8)])
def test_a_maximum_of_equal_neighbours_may_be_either(i: int, j: int) -> None:
    """In bfloat16 a tie decides, of what was rounded before."""
    x = np.zeros((3, 9), np.float32)
    x[1, i] = x[1, j] = 2.0
    node = helper.make_node("ArgMax", ["e"], ["y"], axis=1)
    for seed in range(5):
        rng = np.random.default_rng(seed)
        worlds: dict[str, Worlds] = {"x": (x,) * (NOISY + 1)}
        for step in (helper.make_node("Exp", ["x"], ["e"]), node):
            given = {name: worlds[name][0] for name in step.input}
            (worlds[step.output[0]],) = evaluate(
                evaluator(Witness.ONNXRUNTIME, step, 22, given, {}),
                step.op_type,
                {name: worlds[name] for name in step.input},
                (),
                rng,
            )
        assert {i, j} <= {int(world[1, 0]) for world in worlds["y"]}


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.float16])
def test_narrow_floats_are_rounded_once(dtype: type) -> None:
    """The reference would take mean and deviation in the data's own dtype, where squares of 300 are infinite or steps of 512."""
    x = np.array([[[296, 300, 304, 900]]], dtype)
    node = helper.make_node("InstanceNormalization", ["x", "s", "b"], ["y"])
    inputs = {"x": x, "s": np.ones(1, dtype), "b": np.zeros(1, dtype)}
    (found,) = evaluator(Witness.REFERENCE, node, 22, inputs, {})(inputs)
    wide = x.astype(np.float64)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, ((wide - wide.mean()) / wide.std()).astype(dtype))


def _noisy_worlds(operator: str, x: Array) -> Worlds:
    """A node of one input, whose noise is that of the first seed."""
    node, given = helper.make_node(operator, ["x"], ["y"]), {"x": x}
    run = evaluator(Witness.ONNXRUNTIME, node, 22, given, {})
    (worlds,) = evaluate(run, operator, {"x": (x,) * (NOISY + 1)}, (), np.random.default_rng(0))
    return worlds


def test_noise_of_a_result_does_not_cancel_that_of_its_inputs() -> None:
    x = np.linspace(1, 2, 60).astype(ml_dtypes.bfloat16)
    worlds = [world.astype(np.float64) for world in _noisy_worlds("Sqrt", x)]
    ulp = 2.0**-7
    assert (np.abs(worlds[1] - worlds[0]) >= ulp).all()
    assert (np.abs(worlds[2] - worlds[0]) >= ulp / 2).all()


def test_what_is_smaller_than_its_noise_may_be_nothing() -> None:
    """What is divided by it may be infinite."""
    worlds = _noisy_worlds("Elu", np.float32([-1e-9, -0.5, 1e-9, 3.0]))
    np.testing.assert_array_equal(worlds[-1] == 0, [True, False, True, False])


def test_what_is_drawn_does_not_depend_on_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = random_graph(5)
    monkeypatch.setattr(generator, "NOISY", NOISY - 2)
    monkeypatch.setattr(conditioning, "NOISY", NOISY - 2)
    assert random_graph(5).model == graph.model


def test_a_warning_is_a_failure() -> None:
    graph = random_graph(0)

    def ready(model: onnx.ModelProto) -> Run:
        logging.getLogger("ansorlite.best").warning("the next best one is taken")
        return KERNELS["meaning"](model)

    verdict = check(graph, ready)
    assert (verdict.outcome, verdict.what) == (Outcome.WARNING, "the next best one is taken")


def test_a_graph_is_that_of_its_number() -> None:
    first, again = random_graph(7), random_graph(7)
    assert first.model == again.model
    assert first.model != random_graph(8).model


def test_many_operators_are_drawn() -> None:
    assert len(MAKERS) >= 110
