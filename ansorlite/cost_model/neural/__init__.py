"""Cost models that are neural networks. They need PyTorch, which the extra ``learn`` installs."""

from typing import TYPE_CHECKING, Final

from ansorlite import lazy

if TYPE_CHECKING:
    from ansorlite.cost_model.neural.mlp import TensetMlp
    from ansorlite.cost_model.neural.one_shot import OneShot
    from ansorlite.cost_model.neural.prefix_value import PrefixValue
    from ansorlite.cost_model.neural.surrogate import Surrogate
    from ansorlite.cost_model.neural.tlp import MultiTlp, Tlp
    from ansorlite.cost_model.neural.tree_lstm import TreeLstm

__all__ = ["MultiTlp", "OneShot", "PrefixValue", "Surrogate", "TensetMlp", "Tlp", "TreeLstm"]

_HOMES: Final = {
    "MultiTlp": "ansorlite.cost_model.neural.tlp",
    "OneShot": "ansorlite.cost_model.neural.one_shot",
    "PrefixValue": "ansorlite.cost_model.neural.prefix_value",
    "Surrogate": "ansorlite.cost_model.neural.surrogate",
    "TensetMlp": "ansorlite.cost_model.neural.mlp",
    "Tlp": "ansorlite.cost_model.neural.tlp",
    "TreeLstm": "ansorlite.cost_model.neural.tree_lstm",
}

__getattr__, __dir__ = lazy.attributes(__name__, _HOMES, extra="learn")
