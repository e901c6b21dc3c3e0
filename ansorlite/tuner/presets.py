"""The presets by name: systems of the field, put together from the parts of tuning. A new one is a line here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Preset:
    """What to tune with; each part by its name in the table of its kind.

    Attributes:
        about: one line for people.
        source: where it is described; empty for what is ours.
        strategy: of ``ansorlite.search.STRATEGIES``.
        cost_model: of ``ansorlite.tuner.cost_models.COST_MODELS``.
        scheduler: of ``ansorlite.task_scheduler.SCHEDULERS``.
        round: the most programs of one round: between rounds the strategy learns.
        draft: whether what the closed-form draft likes best is measured first.
    """

    about: str
    source: str = ""
    strategy: str = "evolutionary"
    cost_model: str = "own"
    scheduler: str = "gradient"
    round: int = 16
    draft: bool = True


_TLP: Final = "Zhai et al., ASPLOS 2023; zhaiyi000/tlp"
_AUTOTVM: Final = "Chen et al., NeurIPS 2018; apache/tvm v0.14, autotvm"

#: The name of the preset that is taken where none is named.
DEFAULT: Final = "default"

PRESETS: Final[Mapping[str, Preset]] = {
    DEFAULT: Preset("evolution under the draft and trees that learn what it gets wrong"),
    "random": Preset("programs at random", strategy="random", cost_model="random", draft=False),
    "ansor": Preset(
        "Ansor as it was: one forest for all tasks, 64 programs a round, random until 100 are measured",
        "Zheng et al., OSDI 2020; apache/tvm v0.14, auto_scheduler",
        strategy="ansor",
        cost_model="shared",
        round=64,
        draft=False,
    ),
    "autotvm": Preset(
        "AutoTVM's simulated annealing under trees", _AUTOTVM, strategy="autotvm", cost_model="gbdt", round=64, draft=False
    ),
    "autotvm-ga": Preset("AutoTVM's genetic algorithm", _AUTOTVM, strategy="genetic", cost_model="random", round=64, draft=False),
    "autotvm-grid": Preset("AutoTVM's grid: programs in order", _AUTOTVM, strategy="grid", cost_model="random", draft=False),
    "droplet": Preset(
        "coordinate descent from the draft's favourite",
        "DPAnsor's descent, apache/tvm PR 17104",
        strategy="descent",
        cost_model="random",
    ),
    "annealing": Preset(
        "simulated annealing on measured times",
        "Kirkpatrick et al., Science 1983",
        strategy="annealing",
        cost_model="random",
        draft=False,
    ),
    "tenset": Preset(
        "Ansor's search under TenSet's multi-layer perceptron, one for all tasks; needs the extra learn",
        "Zheng et al., NeurIPS Datasets and Benchmarks 2021; tlc-pack/tenset",
        strategy="ansor",
        cost_model="tenset-mlp",
        round=64,
        draft=False,
    ),
    "tlp": Preset(
        "Ansor's search under a transformer that reads traces; needs the extra learn",
        _TLP,
        strategy="ansor",
        cost_model="tlp",
        round=64,
        draft=False,
    ),
    "mtl-tlp": Preset(
        "TLP with a head for each device that was measured on; needs the extra learn",
        _TLP,
        strategy="ansor",
        cost_model="mtl-tlp",
        round=64,
        draft=False,
    ),
    "tiramisu": Preset(
        "Ansor's search under Tiramisu's network over the tree of loops; needs the extra learn",
        "Baghdadi et al., MLSys 2021; Tiramisu-Compiler/cost_model",
        strategy="ansor",
        cost_model="tree-lstm",
        round=64,
        draft=False,
    ),
    "one-shot": Preset(
        "annealing under a transformer that learns shares of the best speed; needs the extra learn",
        "Ryu et al., CC 2022; ryujaehun/one-shot-tuner",
        strategy="autotvm",
        cost_model="one-shot",
        round=64,
        draft=False,
    ),
    "felix": Preset(
        "gradient descent over a differentiable model; needs the extra learn",
        "Zhao et al., ASPLOS 2024",
        strategy="gradient",
        cost_model="tenset-mlp",
        round=32,
        draft=False,
    ),
    "value": Preset(
        "beam search under the learnt value of first choices; needs the extra learn",
        "Steiner et al., MLSys 2021",
        strategy="value",
        cost_model="random",
        round=32,
        draft=False,
    ),
    "local": Preset("random steps from the few best programs", strategy="local", cost_model="random", draft=False),
}
