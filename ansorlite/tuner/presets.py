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
        transfer: whether the best programs of similar tasks in the database are measured next.
        timing: how programs are timed, of ``ansorlite.measure.timing.TIMINGS``.
        space: where what makes the sketches is, ``"package.module:NAME"``; empty for the derivation rules of the target.
    """

    about: str
    source: str = ""
    strategy: str = "evolutionary"
    cost_model: str = "own"
    scheduler: str = "gradient"
    round: int = 16
    draft: bool = True
    transfer: bool = False
    timing: str = "pairs"
    space: str = ""


_WOODPECKER: Final = "Liu et al., arXiv 2008.04567"
_TLP: Final = "Zhai et al., ASPLOS 2023; zhaiyi000/tlp"
_CHAMELEON: Final = "Ahn et al., ICLR 2020; anony-sub/chameleon"
_AUTOTVM: Final = "Chen et al., NeurIPS 2018; apache/tvm v0.14, autotvm"

#: The name of the preset that is taken where none is named.
DEFAULT: Final = "default"

PRESETS: Final[Mapping[str, Preset]] = {
    DEFAULT: Preset("evolution under the draft and trees that learn what it gets wrong", round=8),
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
    "autotvm-rank": Preset(
        "the same under trees that learn an order", _AUTOTVM, strategy="autotvm", cost_model="ranked", round=64, draft=False
    ),
    "autotvm-templates": Preset(
        "AutoTVM's annealing over its template of products and convolutions, for tasks that sum once",
        _AUTOTVM,
        strategy="autotvm",
        cost_model="gbdt",
        round=64,
        draft=False,
        space="ansorlite.spaces.autotvm:x86",
    ),
    "autotvm-ga": Preset("AutoTVM's genetic algorithm", _AUTOTVM, strategy="genetic", cost_model="random", round=64, draft=False),
    "autotvm-grid": Preset("AutoTVM's grid: programs in order", _AUTOTVM, strategy="grid", cost_model="random", draft=False),
    "flextensor": Preset(
        "a walk in the directions that a network, learnt from earlier steps, thinks are worth most",
        "Zheng et al., ASPLOS 2020; KnowingNothing/FlexTensor",
        strategy="flextensor",
        cost_model="random",
        draft=False,
    ),
    "familyseer": Preset(
        "a forest for each family of tasks, whose siblings get trials along",
        "Zhang et al., arXiv 2201.00194; buaa-hipo/familyseer_AE",
        strategy="ansor",
        cost_model="family",
        scheduler="family",
        round=64,
        draft=False,
    ),
    "woodpecker-ga": Preset(
        "Woodpecker-DL's genetic algorithm on measured times", _WOODPECKER, strategy="genes", cost_model="random", draft=False
    ),
    "woodpecker-rl": Preset(
        "Woodpecker-DL's policy gradient on measured times", _WOODPECKER, strategy="reinforce", cost_model="random", draft=False
    ),
    "adatune": Preset(
        "annealing for the expected improvement under a random forest, timing no longer than needed",
        "Li et al., NeurIPS 2020; limenghao/AdaTune",
        strategy="adatune",
        cost_model="forest",
        timing="cv",
        round=64,
        draft=False,
    ),
    "protuner": Preset(
        "Monte Carlo tree search under Ansor's model",
        "Haj-Ali et al., arXiv 2005.13685",
        strategy="protuner",
        cost_model="gbdt",
        draft=False,
    ),
    "chameleon": Preset(
        "a learnt policy walks under the model, and of what it likes one program a cluster is measured",
        _CHAMELEON,
        strategy="chameleon",
        cost_model="gbdt",
        round=64,
        draft=False,
    ),
    "chameleon-sampling": Preset(
        "AutoTVM's annealing, of which one program a cluster is measured",
        _CHAMELEON,
        strategy="chameleon_sampling",
        cost_model="gbdt",
        round=64,
        draft=False,
    ),
    "chameleon-synthesis": Preset(
        "Chameleon's walk, and programs put together of what each cluster agrees on",
        _CHAMELEON,
        strategy="chameleon_synthesis",
        cost_model="gbdt",
        round=64,
        draft=False,
    ),
    "dynatune": Preset(
        "a bandit over tasks that extrapolates their curves; each is searched as AutoTVM does",
        "Zhang et al., ICLR 2021",
        strategy="autotvm",
        cost_model="gbdt",
        scheduler="bandit",
        round=64,
        draft=False,
    ),
    "metaschedule": Preset(
        "MetaSchedule's evolution of 512 rows under a forest",
        "Shao et al., NeurIPS 2022; apache/tvm v0.14, meta_schedule",
        strategy="metaschedule",
        cost_model="gbdt",
        round=64,
        draft=False,
    ),
    "heron": Preset(
        "a genetic algorithm whose children keep the constraints",
        "Bi et al., ASPLOS 2023; IPRC-ICT/Heron",
        strategy="heron",
        cost_model="gbdt",
        round=32,
        draft=False,
    ),
    "tuna": Preset(
        "an evolution strategy under the draft alone; `ansorlite calibrate` fits that to the machine (extra: search)",
        "Wang et al., arXiv 2104.14641",
        strategy="tuna",
        cost_model="draft",
    ),
    "bayesian": Preset(
        "a Gaussian process of the knobs, batches by believing what it expects (extra: search)",
        "Willemsen et al., PMBS 2021; KernelTuner/kernel_tuner bayes_opt",
        strategy="bayesian",
        cost_model="random",
        round=8,
        draft=False,
    ),
    "pruner": Preset(
        "the draft looks through many programs, an uncertain model through the few that are left",
        "Qiao et al., ASPLOS 2025",
        strategy="pruner",
        cost_model="bagged",
    ),
    "transfer-tuning": Preset(
        "as the default, but begins with what was best for similar tasks in the database",
        "Gibson and Cano, PACT 2022",
        round=8,
        transfer=True,
    ),
    "lfbo": Preset(
        "a forest tells the fastest tenth from the rest, batches are diverse by its leaves",
        "Song et al., ICML 2022; pytorch/helion",
        strategy="lfbo",
        cost_model="random",
        draft=False,
    ),
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
