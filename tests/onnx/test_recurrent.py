"""RNN, GRU and LSTM beside onnxruntime without optimisations: lengths of each sequence's own, and all else that they have."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from onnx import helper

pytest.importorskip("onnxruntime", reason="onnxruntime is not installed: pip install 'ansorlite[peers]'")

import onnxruntime

from ansorlite.best import Programs
from ansorlite.errors import ModelError
from ansorlite.frontends.onnx import control, load_model, recurrence
from ansorlite.frontends.onnx.operators import recurrent
from ansorlite.graph.hybrid import HybridModel, compile_any
from ansorlite.graph.model import Model
from ansorlite.programs.kernels import compile_candidate
from ansorlite.sketch.candidate import NAIVE
from tests.onnx.networks import Network, hidden_shape, network_model, random_network, random_quantized
from tests.onnx.support import run

KINDS = ("RNN", "GRU", "LSTM")


def expected(network: Network) -> list[np.ndarray]:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    # Threads that share a batch would each quantise their own part of it.
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(network.model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return list(session.run(None, network.inputs))


def compare(ours: dict[str, np.ndarray], theirs: Sequence[np.ndarray], atol: float = 1e-5) -> None:
    for (name, found), wanted in zip(ours.items(), theirs, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=atol, err_msg=name)


def with_lengths(kind: str, lengths: Sequence[int] | None, *, steps: int = 5, layout: int = 0, constant: bool = False) -> Network:
    """Both directions, a batch of 3 or what ``lengths`` are for, with initial states."""
    rng = np.random.default_rng(3)
    gates, batch, hidden = {"RNN": 1, "GRU": 3, "LSTM": 4}[kind], 3 if lengths is None else len(lengths), 4
    arrays = {
        "x": rng.standard_normal((steps, batch, 3)),
        "w": rng.standard_normal((2, gates * hidden, 3)),
        "r": rng.standard_normal((2, gates * hidden, hidden)) / 2,
        "b": rng.standard_normal((2, 2 * gates * hidden)),
        "h": rng.standard_normal((2, batch, hidden)),
    }
    if layout:
        arrays["x"], arrays["h"] = arrays["x"].transpose(1, 0, 2), arrays["h"].transpose(1, 0, 2)
    arrays = {name: array.astype(np.float32) for name, array in arrays.items()}
    names = ["x", "w", "r", "b", "" if lengths is None else "lens", "h"]
    if lengths is not None:
        arrays["lens"] = np.array(lengths, np.int32)
    outputs = ["y", "yh", "yc"][: 3 if kind == "LSTM" else 2]
    node = helper.make_node(
        kind, names, outputs, hidden_size=hidden, direction="bidirectional", **({"layout": 1} if layout else {})
    )
    return network_model(node, arrays, ["w", "r", "b", *(["lens"] if constant else [])])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(12))
def test_random_networks_are_native_and_right(kind, seed):
    network = random_network(np.random.default_rng((seed, KINDS.index(kind))), kind)
    assert isinstance(load_model(network.model), Model)
    compare(run(network.model, network.inputs), expected(network))


@pytest.mark.parametrize("seed", range(12))
def test_quantised_networks_are_native_and_right(seed):
    network = random_quantized(np.random.default_rng(seed))
    assert isinstance(load_model(network.model), Model)
    # Which sequences share the range that an output is quantised by differs where they have lengths of their own.
    compare(run(network.model, network.inputs), expected(network), 0.02 if "lens" in network.arrays else 1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_compiled(kind):
    network = with_lengths(kind, [2, 0, 5])
    kernel_for = Programs(None).kernel if kind == "LSTM" else lambda task: compile_candidate(task, NAIVE)
    compare(compile_any(load_model(network.model), kernel_for)(network.inputs), expected(network))


def test_compiled_quantised():
    network = random_quantized(np.random.default_rng(0))
    compare(compile_any(load_model(network.model), Programs(None).kernel)(network.inputs), expected(network), 0.02)


@pytest.mark.parametrize("kind", KINDS)
def test_layout_1_has_the_batch_first(kind):
    """onnxruntime does not know it."""
    network = with_lengths(kind, [2, 3, 5], layout=1)
    first = expected(with_lengths(kind, [2, 3, 5]))
    compare(
        run(network.model, network.inputs), [first[0].transpose(2, 0, 1, 3), *(last.transpose(1, 0, 2) for last in first[1:])]
    )


@pytest.mark.parametrize("kind", KINDS)
def test_data_of_unknown_shape(kind):
    network = hidden_shape(with_lengths(kind, [2, 3, 5]))
    model = load_model(network.model)
    assert isinstance(model, HybridModel)
    assert [step.operator for step in model.fallbacks] == ["Compress", kind]
    compare(run(network.model, network.inputs), expected(network))


@pytest.mark.parametrize("kind", KINDS)
def test_more_steps_than_are_written_out(kind, monkeypatch):
    monkeypatch.setattr(recurrent, "MOST_STEPS", 4)
    network = with_lengths(kind, [2, 3, 5])
    model = load_model(network.model)
    assert isinstance(model, HybridModel)
    assert [step.reason for step in model.fallbacks] == ["more than 4 steps"]
    compare(run(network.model, network.inputs), expected(network))


def long_network(seed: int, kind: str) -> Network:
    """One of the usual forms, of more than two steps."""
    rng = np.random.default_rng((seed, KINDS.index(kind)))
    while True:
        network = random_network(rng, kind)
        parameters = {attribute.name for attribute in network.model.graph.node[0].attribute} & {
            "activation_alpha",
            "activation_beta",
        }
        if "lens" not in network.arrays and len(network.arrays["x"]) > 2 and not parameters:
            return network


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(8))
def test_long_networks_run_piece_by_piece(kind, seed, monkeypatch):
    for module in (recurrent, recurrence):
        monkeypatch.setattr(module, "MOST_STEPS", 2)
    monkeypatch.setattr(recurrence, "_PIECE", 2)
    monkeypatch.setattr(control, "_MOST_NODES", 0)
    network = long_network(seed, kind)
    model = load_model(network.model)
    assert isinstance(model, HybridModel)
    assert {(step.operator, step.turns) for step in model.fallbacks} == {("Scan", len(network.arrays["x"]) // 2)}
    compare(run(network.model, network.inputs), expected(network))


@pytest.mark.parametrize("kind", KINDS)
def test_constant_networks(kind):
    """All that is constant is computed at import, by whatever: lengths count there too."""
    network = with_lengths(kind, [2, 3, 5])
    constant = network_model(network.model.graph.node[0], network.arrays, list(network.arrays))
    compare(run(constant.model, {}), expected(network))


@pytest.mark.parametrize("kind", KINDS)
def test_equal_lengths_cost_nothing(kind):
    plain, equal = (load_model(with_lengths(kind, lengths, constant=lengths is not None).model) for lengths in (None, [5, 5, 5]))
    assert isinstance(plain, Model)
    assert isinstance(equal, Model)
    assert [(task.key, weight) for task, weight in equal.tasks] == [(task.key, weight) for task, weight in plain.tasks]


def test_steps_that_are_none_of_any_sequence_are_not_computed():
    short, long = (load_model(with_lengths("LSTM", [3, 3, 3], steps=steps, constant=True).model) for steps in (3, 9))
    assert isinstance(short, Model)
    assert isinstance(long, Model)
    of_short, of_long = ({task.key: weight for task, weight in model.tasks} for model in (short, long))
    repeated = {key: weight for key, weight in of_short.items() if weight > 2}
    assert repeated.items() <= of_long.items()


@pytest.mark.parametrize(
    ("lengths", "attributes", "message"),
    [
        ([2, 6, 5], {}, r"sequence_lens are \[2, 6, 5\], and each must be between 0 and the 5 steps"),
        ([2, -1, 5], {}, r"sequence_lens are \[2, -1, 5\]"),
        ([2, 1, 5], {"activations": ["Tanh", "Sine"]}, "activation 'Sine' is unknown; known are: Affine, Elu"),
        ([2, 1, 5], {"activations": ["Tanh", "Affine"]}, "activation Affine needs a value in attribute 'activation_alpha'"),
        ([2, 1, 5], {"activations": ["Tanh"] * 3}, "3 activations are given, where 1 for each of 2 directions are due"),
    ],
)
def test_what_makes_no_sense_is_one_clear_sentence(lengths, attributes, message):
    network = with_lengths("RNN", lengths, constant=True)
    node = network.model.graph.node[0]
    node.attribute.extend(helper.make_attribute(name, value) for name, value in attributes.items())
    with pytest.raises(ModelError, match=message):
        load_model(network.model)


def test_an_operator_of_onnxruntimes_own_that_is_not_known():
    network = random_quantized(np.random.default_rng(0))
    network.model.graph.node[0].op_type = "QOrderedAttention"
    with pytest.raises(ModelError, match=r"needs operator com.microsoft.QOrderedAttention, which is not supported"):
        load_model(network.model)
