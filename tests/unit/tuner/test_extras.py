"""A preset without the extra that it needs says which to install; all others do without."""

import importlib.util
import re
import sys
from typing import Any

import pytest

import ansorlite as al
from ansorlite.cost_model import neural
from ansorlite.errors import ExtraError
from ansorlite.target import host
from ansorlite.tuner.presets import PRESETS
from benchmarks.kernels.operators.matmul import Matmul

#: By preset, the extra that it needs.
NEEDED = {
    **dict.fromkeys(("tenset", "tlp", "mtl-tlp", "tiramisu", "one-shot", "felix", "value"), "learn"),
    **dict.fromkeys(("bayesian", "tuna"), "search"),
}
ABSENT = ("torch", "sklearn", "cmaes")


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where nothing but ansorlite was installed."""
    there = importlib.util.find_spec

    def find(name: str, *given: Any) -> Any:
        return None if name in ABSENT else there(name, *given)

    monkeypatch.setattr(importlib.util, "find_spec", find)
    for module in [each for each in sys.modules if each.startswith("ansorlite.cost_model.neural.")]:
        monkeypatch.delitem(sys.modules, module)
    for each in neural.__all__:
        monkeypatch.delitem(vars(neural), each, raising=False)
    for each in ABSENT:
        monkeypatch.setitem(sys.modules, each, None)


@pytest.mark.usefixtures("bare")
@pytest.mark.parametrize("name", NEEDED)
def test_it_says_which_to_install(name: str) -> None:
    # Of value learning the network comes when something was measured; of Felix's descent the model does.
    task = al.Task(Matmul(9, 7, 5).tensors(), host(1))
    with pytest.raises(ExtraError, match=rf"pip install 'ansorlite\[{NEEDED[name]}\]'") as caught:
        al.tune(task, trials=48, preset=name, progress=False)
    assert "\n" not in str(caught.value)


def test_the_description_of_a_preset_names_its_extra() -> None:
    for name, preset in PRESETS.items():
        assert (re.search(r"\bextra\b", preset.about) is not None) == (name in NEEDED), name
