"""Models that tell fast programs from slow ones without running them."""

from ansorlite.cost_model.blend import BlendedModel, Prior
from ansorlite.cost_model.gbdt import GBDT
from ansorlite.cost_model.metrics import pairwise_accuracy, peak_score, rank_correlation
from ansorlite.cost_model.protocol import CostModel, Group, relative_throughput
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
