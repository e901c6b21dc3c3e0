import math

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'ansorlite[learn]'")
losses = pytest.importorskip("ansorlite.cost_model.neural.losses")


def slow_lambda_rank(scores: list[float], labels: list[float]) -> float:
    place = {at: number for number, at in enumerate(sorted(range(len(scores)), key=lambda at: -scores[at]))}
    discount = [1 / math.log2(place[at] + 2) for at in range(len(scores))]
    gain = [2**label - 1 for label in labels]
    ideal = sum(g / math.log2(at + 2) for at, g in enumerate(sorted(gain, reverse=True)))
    return sum(
        math.log2(1 + math.exp(scores[b] - scores[a])) * abs(discount[a] - discount[b]) * abs(gain[a] - gain[b]) / ideal
        for a in range(len(scores))
        for b in range(len(scores))
        if labels[a] > labels[b]
    )


def test_lambda_rank_is_its_formula() -> None:
    rng = np.random.default_rng(0)
    scores, labels = rng.normal(size=9), rng.random(9)
    labels[3] = labels[4]
    found = float(losses.lambda_rank(torch.tensor(scores), torch.tensor(labels)))
    assert found == pytest.approx(slow_lambda_rank(scores.tolist(), labels.tolist()), rel=1e-5)


def test_the_right_order_costs_less_than_the_wrong_one() -> None:
    labels = torch.tensor([1.0, 0.5, 0.25, 0.0])
    assert losses.lambda_rank(10 * labels, labels) < 0.2 * losses.lambda_rank(-10 * labels, labels)
    assert float(losses.lambda_rank(labels, torch.ones(4))) == 0


def test_lists_are_not_compared_with_one_another() -> None:
    scores, labels = torch.tensor([1.0, 2.0, 5.0, 4.0]), torch.tensor([0.5, 1.0, 0.1, 0.2])
    lists = torch.tensor([0, 0, 1, 1])
    alone = (losses.lambda_rank(scores[:2], labels[:2]) + losses.lambda_rank(scores[2:], labels[2:])) / 2
    assert float(losses.ranking(scores, labels, lists)) == pytest.approx(float(alone))


def test_relative_error_is_of_seconds_and_does_not_explode() -> None:
    true = torch.log(torch.tensor([1.0, 2.0]))
    assert float(losses.relative_error(torch.log(torch.tensor([1.5, 1.0])), true)) == pytest.approx((0.5 + math.log(2)) / 2)
    assert float(losses.relative_error(true + 20, true)) < 30
    low = (true - 5).requires_grad_(True)
    losses.relative_error(low, true).backward()
    assert low.grad is not None
    assert (low.grad < -0.1).all(), "what is far too low is still told to rise"
