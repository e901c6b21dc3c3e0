import numpy as np
import pytest

from ansorlite.cost_model import pairwise_accuracy, peak_score, rank_correlation
from ansorlite.cost_model.metrics import mean_peak, recall, root_mean_square_error

LATENCIES = np.asarray([4.0, 1.0, np.inf, 2.0])


def test_a_perfect_and_a_reversed_ranking() -> None:
    scores = np.asarray([2.0, 4.0, 1.0, 3.0])
    assert rank_correlation(scores, LATENCIES) == pytest.approx(1)
    assert rank_correlation(-scores, LATENCIES) == pytest.approx(-1)
    assert pairwise_accuracy(scores, LATENCIES) == 1
    assert pairwise_accuracy(-scores, LATENCIES) == 0


def test_flat_scores_know_nothing() -> None:
    assert np.isnan(rank_correlation(np.zeros(4), LATENCIES))
    assert pairwise_accuracy(np.zeros(4), LATENCIES) == 0.5


def test_flat_latencies_tell_nothing() -> None:
    assert np.isnan(rank_correlation(np.arange(3.0), np.full(3, np.inf)))
    assert np.isnan(pairwise_accuracy(np.arange(3.0), np.ones(3)))
    assert np.isnan(rank_correlation(np.ones(1), np.ones(1)))


def test_peak_score_is_what_the_first_k_reach() -> None:
    scores = np.asarray([5.0, 1.0, 4.0, 3.0])
    assert [peak_score(scores, LATENCIES, k) for k in (1, 2, 3, 4)] == [0.25, 0.25, 0.5, 1.0]
    assert peak_score(np.asarray([0.0, 0.0, 1.0, 0.0]), LATENCIES, 1) == 0.0


def test_more_metrics_by_hand() -> None:
    scores, latencies = np.array([4.0, 3.0, 2.0, 1.0]), np.array([2.0, 4.0, 1.0, np.inf])
    assert mean_peak(scores, latencies, 3) == pytest.approx((0.5 + 0.5 + 1) / 3)
    assert mean_peak(-scores, latencies, 2) == pytest.approx((0 + 1) / 2)
    assert recall(scores, latencies, 2) == 0.5
    assert recall(scores, latencies, 4) == 1
    assert root_mean_square_error(np.array([10.0, 5.0, 20.0, 0.0]), latencies) == pytest.approx(0)
    shares = np.array([0.5, 0.25, 1.0, 0.0])
    assert root_mean_square_error(np.zeros(4), latencies) == pytest.approx(shares.std())
