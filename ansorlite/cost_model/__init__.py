"""Models that tell fast programs from slow ones without running them."""

from typing import TYPE_CHECKING, Final

from ansorlite import lazy

if TYPE_CHECKING:
    from ansorlite.cost_model.blend import BlendedModel
    from ansorlite.cost_model.gbdt import GBDT
    from ansorlite.cost_model.metrics import pairwise_accuracy, peak_score, rank_correlation
    from ansorlite.cost_model.protocol import CostModel, Group, Prior, relative_throughput
    from ansorlite.cost_model.random import RandomModel

__all__ = [
    "GBDT",
    "BlendedModel",
    "CostModel",
    "Group",
    "Prior",
    "RandomModel",
    "pairwise_accuracy",
    "peak_score",
    "rank_correlation",
    "relative_throughput",
]

_HOMES: Final = {
    "GBDT": "ansorlite.cost_model.gbdt",
    "BlendedModel": "ansorlite.cost_model.blend",
    "CostModel": "ansorlite.cost_model.protocol",
    "Group": "ansorlite.cost_model.protocol",
    "Prior": "ansorlite.cost_model.protocol",
    "RandomModel": "ansorlite.cost_model.random",
    "pairwise_accuracy": "ansorlite.cost_model.metrics",
    "peak_score": "ansorlite.cost_model.metrics",
    "rank_correlation": "ansorlite.cost_model.metrics",
    "relative_throughput": "ansorlite.cost_model.protocol",
}

__getattr__, __dir__ = lazy.attributes(__name__, _HOMES)
