"""Every neural model keeps the same promises."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ansorlite.cost_model import Group, neural, pairwise_accuracy
from ansorlite.cost_model.views import View
from ansorlite.errors import ExtraError
from ansorlite.features.loop_tree import TREE, Kind
from ansorlite.tuner.cost_models import COST_MODELS

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'ansorlite[learn]'")

Maker = Callable[..., Any]
MODELS: dict[str, Maker] = {
    "tenset-mlp": neural.TensetMlp,
    "tlp": neural.Tlp,
    "mtl-tlp": lambda rng, epochs: neural.MultiTlp(rng, "", epochs),
    "tree-lstm": neural.TreeLstm,
    "one-shot": neural.OneShot,
}
#: Epochs that are enough for the small things that are to be learnt here.
ENOUGH = {"tenset-mlp": 15, "tlp": 15, "mtl-tlp": 15, "tree-lstm": 15, "one-shot": 8}


def made(name: str, epochs: int = 2) -> Any:
    return MODELS[name](np.random.default_rng(0), epochs=epochs)


def group(name: str, n: int, items: int, seed: int, task: str = "a", device: str = "") -> Group:
    """Programs whose speed is the mean of the first number of their items."""
    numbers = np.random.default_rng(seed).normal(size=(n, items, 4))
    latencies = 1e-3 * np.exp(-numbers[:, :, 0].mean(axis=1))
    return Group(shown(name, numbers), latencies, task, device)


def shown(name: str, numbers: np.ndarray) -> np.ndarray:
    """As the model's view has it: a tree's items are loops in one another, with a statement innermost."""
    if MODELS[name] is not neural.TreeLstm:
        return numbers
    n, items, count = numbers.shape
    tree = np.zeros((n, items, len(TREE)))
    tree[:, :, 0] = np.arange(items) - 1
    tree[:, :-1, TREE.index(Kind.LOOP.name.lower())] = 1
    tree[:, -1, TREE.index(Kind.ANCHOR.name.lower())] = 1
    tree[:, :, 1 + len(Kind) : 1 + len(Kind) + count] = numbers
    return tree


@pytest.mark.parametrize("name", MODELS)
def test_what_it_has_learnt_holds_for_others(name: str) -> None:
    model = made(name, ENOUGH[name])
    model.fit([group(name, 64, 3, 0), group(name, 48, 2, 1, "b")])
    for items, task in ((3, "a"), (2, "b")):
        test = group(name, 60, items, 2, task)
        assert pairwise_accuracy(model.predict(test.features), test.latencies) > 0.75


@pytest.mark.parametrize("name", MODELS)
def test_without_data_all_are_the_same(name: str) -> None:
    model, given = made(name), group(name, 4, 2, 0)
    for groups in ([], [Group(given.features[:0], np.zeros(0))], [Group(given.features, np.full(4, np.inf))]):
        model.fit(groups)
        np.testing.assert_array_equal(model.predict(given.features), np.zeros(4))
    model.fit([given])
    assert model.predict(given.features[:0]).shape == (0,)


@pytest.mark.parametrize("name", MODELS)
def test_the_same_again_and_nothing_of_before(name: str) -> None:
    data = group(name, 20, 3, 0)
    one, two = made(name), made(name)
    one.fit([data])
    two.fit([group(name, 12, 2, 1)])
    two.fit([data])
    np.testing.assert_array_equal(one.predict(data.features), two.predict(data.features))
    assert np.ptp(one.predict(data.features)) > 0
    assert one.predict(data.features).dtype == np.float64


@pytest.mark.parametrize("name", MODELS)
def test_a_score_does_not_depend_on_who_else_is_scored(name: str) -> None:
    data = group(name, 20, 3, 0)
    model = made(name)
    model.fit([data])
    together = model.predict(data.features)
    apart = np.concatenate([model.predict(data.features[at : at + 1]) for at in range(20)])
    np.testing.assert_allclose(together, apart, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", MODELS)
def test_the_process_is_left_as_it_was(name: str) -> None:
    threads, state = torch.get_num_threads(), torch.random.get_rng_state()
    model, data = made(name, 1), group(name, 8, 2, 0)
    model.fit([data])
    model.predict(data.features)
    assert torch.get_num_threads() == threads
    assert torch.equal(torch.random.get_rng_state(), state)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("n", [1, 2])
def test_a_few_programs_and_failures_do_no_harm(name: str, n: int) -> None:
    data = group(name, n + 1, 2, 0)
    model = made(name)
    model.fit([Group(data.features, np.append(data.latencies[:n], np.inf), "a"), group(name, 1, 3, 1, "b")])
    assert np.isfinite(model.predict(data.features)).all()


@pytest.mark.parametrize("name", MODELS)
def test_what_is_not_finite_is_refused(name: str) -> None:
    data = group(name, 3, 2, 0)
    features = data.features.copy()
    features[1, 1, -1] = np.nan
    with pytest.raises(ValueError, match="finite"):
        made(name).fit([Group(features, data.latencies)])


def test_failures_are_learnt_from() -> None:
    data = group("tenset-mlp", 80, 2, 3)
    fails = data.features[:, 0, 2] > 0.3
    model = made("tenset-mlp", 15)
    model.fit([Group(data.features, np.where(fails, np.inf, 1e-3))])
    scores = model.predict(data.features)
    assert scores[fails].mean() < scores[~fails].mean() - scores.std()


def test_on_one_device_two_heads_are_one() -> None:
    data = group("tlp", 24, 3, 0)
    one, many = made("tlp"), made("mtl-tlp")
    one.fit([data])
    many.fit([data])
    np.testing.assert_array_equal(one.predict(data.features), many.predict(data.features))


def test_each_device_has_a_head_of_its_own() -> None:
    """What is fast on one is slow on the other."""
    here, there = group("tlp", 64, 2, 0, device="here"), group("tlp", 64, 2, 1, device="there")
    there = Group(there.features, 1e-6 / there.latencies, "a", "there")
    test = group("tlp", 40, 2, 2)
    for device, latencies in (("here", test.latencies), ("there", 1e-6 / test.latencies)):
        model = neural.MultiTlp(np.random.default_rng(0), device, epochs=15)
        model.fit([here, there])
        assert pairwise_accuracy(model.predict(test.features), latencies) > 0.8
    nowhere = neural.MultiTlp(np.random.default_rng(0), "nowhere", epochs=1)
    nowhere.fit([here, there])
    assert not nowhere.predict(test.features).any()


def test_a_tree_model_tells_seconds() -> None:
    data = group("tree-lstm", 96, 2, 0)
    model = made("tree-lstm", 30)
    model.fit([data])
    error = np.abs(np.exp(-model.predict(data.features)) / data.latencies - 1).mean()
    constant = np.abs(np.median(data.latencies) / data.latencies - 1).mean()
    assert error < constant / 2


@pytest.mark.parametrize("name", ["tenset-mlp", "tlp", "mtl-tlp", "tree-lstm", "one-shot"])
def test_without_the_extra_it_is_one_sentence(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in [each for each in sys.modules if each.startswith("ansorlite.cost_model.neural.")]:
        monkeypatch.delitem(sys.modules, module)
    for each in neural.__all__:
        monkeypatch.delitem(vars(neural), each, raising=False)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(
        ExtraError, match=r"^torch is not installed, and \w+ needs it; install it with: pip install 'ansorlite\[learn\]'$"
    ):
        COST_MODELS[name]([], np.random.default_rng(0))


def test_views_are_told() -> None:
    assert {name: made(name).view for name in MODELS} == {
        "tenset-mlp": View.FEATURES,
        "tlp": View.TOKENS,
        "mtl-tlp": View.TOKENS,
        "tree-lstm": View.LOOPS,
        "one-shot": View.TOKENS,
    }
