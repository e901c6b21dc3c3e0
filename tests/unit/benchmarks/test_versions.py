"""Two versions beside each other: which cases, and what is said of them."""

from __future__ import annotations

import pytest

from benchmarks.kernels.suites import SUITES
from benchmarks.versions.__main__ import by_suite, evenly, geometric_mean, summary


def test_cases_are_taken_from_every_suite() -> None:
    found = evenly(60)
    assert len(found) == len(set(found)) == 60
    assert {suite for suite, _ in found} == set(SUITES)
    assert len(evenly(10**6)) == sum(map(len, SUITES.values()))


def test_the_summary_names_the_worst_case() -> None:
    rows = [
        {"suite": "anchors", "case": case, "tuned": tuned, "untuned": 1.0, "trial": 2.0}
        for case, tuned in (("a", 4.0), ("b", 0.25), ("c", 1.0))
    ]
    tuned, untuned, trial = summary(rows)
    assert " ".join(tuned.split()) == "tuned 1.000 in geometric mean of 3 cases, 1 below 0.9; worst 0.250 (anchors b)"
    assert ", 0 below 0.9" in untuned
    assert "2.000" in trial
    assert geometric_mean([2.0, 8.0]) == pytest.approx(4.0)


def test_each_suite_has_a_line() -> None:
    rows = [
        {"suite": suite, "case": str(number), "tuned": tuned, "untuned": 1.0, "trial": 1.0}
        for number, (suite, tuned) in enumerate([("odd", 1.0), ("bert", 0.5), ("odd", 4.0)])
    ]
    odd, bert = by_suite(rows)
    assert " ".join(odd.split()) == "odd tuned 2.000 (1.75 to 3.25), untuned 1.000 (1.00 to 1.00) of 2 cases"
    assert bert.startswith("bert")
    assert "0.500" in bert
