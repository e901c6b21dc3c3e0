"""What training makes small."""

from __future__ import annotations

import torch
from torch import Tensor


def lambda_rank(scores: Tensor, labels: Tensor) -> Tensor:
    """How wrong the order of one list is; pairs that matter for the top weigh more (Burges et al., NeurIPS 2006; as in TenSet).

    Of each pair of which one is better, ``log2(1 + exp(-(difference of scores)))``, times what swapping the two would change of
    the discounted gain ``(2^label - 1) / log2(1 + place)``, places being those by score.

    Args:
        scores, labels: ``(n,)``; labels in [0, 1].
    """
    order = scores.detach().argsort(descending=True, stable=True)
    scores, labels = scores[order], labels[order]
    discounts = 1.0 / torch.log2(torch.arange(len(labels), dtype=torch.float32) + 2.0)
    gains = torch.exp2(labels) - 1.0
    ideal = (gains.sort(descending=True).values * discounts).sum().clamp(min=1e-9)
    weights = (discounts[:, None] - discounts[None, :]).abs() * (gains[:, None] - gains[None, :]).abs() / ideal
    better = labels[:, None] > labels[None, :]
    wrong = torch.nn.functional.softplus(scores[None, :] - scores[:, None]) / torch.log(torch.tensor(2.0))
    return (wrong * weights)[better].sum()


def ranking(scores: Tensor, labels: Tensor, lists: Tensor) -> Tensor:
    """The mean of :func:`lambda_rank` over lists; ``lists`` (n,) is the number of each program's."""
    found = [lambda_rank(scores[lists == each], labels[lists == each]) for each in lists.unique()]
    return torch.stack(found).mean()


def relative_error(log_predicted: Tensor, log_true: Tensor) -> Tensor:
    """The mean of ``|predicted - true| / true``, but where that is flat or explodes.

    Predictions that are too low count by the logarithm of the factor, of which the relative error is never more than 1 and
    teaches nothing; those too high by more than a factor of 8 grow with the logarithm only.
    """
    off = log_predicted - log_true
    return (torch.expm1(off.clamp(0.0, _FAR)) + (off - _FAR).clamp(min=0.0) + (-off).clamp(min=0.0)).mean()


#: ln 8: the first steps of training may be off by any factor.
_FAR = 2.0794415
