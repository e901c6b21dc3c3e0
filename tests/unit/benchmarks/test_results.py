"""The benchmark's rows survive their file, and its tables say what the rows say."""

import math
from dataclasses import replace
from pathlib import Path

import pytest

from ansorlite.runtime.peaks import MemoryLevel, Peaks
from benchmarks.common.machine import Machine
from benchmarks.common.spread import Spread
from benchmarks.kernels import tables
from benchmarks.kernels.goals import goals
from benchmarks.kernels.page import page
from benchmarks.kernels.results import BARE, CALLED, UNTUNED, Point, Results, Run, Timing, Tuning, Variance
from benchmarks.kernels.suites import ANCHORS, SUITES

PEAKS = Peaks(2, 2e11, (MemoryLevel("L1", 1000, 4e11, 3e11), MemoryLevel("memory", 10**9, 1e10, 2e10)))
RUN = Run(threads=2, trials=64, seed=0)
MACHINE = Machine("some cpu", "llvm x", 2, 1 << 34, {"torch": "2"}, PEAKS, PEAKS, 0.0)


def timing(suite: str, case: str, ratio: float, **changes: object) -> Timing:
    spread = Spread(ratio / 2, ratio, ratio * 2)
    row = Timing(
        suite,
        case,
        2,
        64,
        0,
        2 * 10**6,
        4000,
        "float32",
        {CALLED: 4e-5, BARE: 2e-5, UNTUNED: 4e-5, "torch": 4e-5 * ratio},
        {UNTUNED: Spread(9.0, 9.0, 9.0), "torch": spread},
        {"torch": replace(spread, median=2 * ratio), UNTUNED: Spread(2.0, 2.0, 2.0)},
        Spread(0.5, 0.75, 1.0),
        0.5,
        True,
        {},
        0.0,
        1.0,
    )
    return replace(row, **changes)  # type: ignore[arg-type]


def tuning(case: str, trials: int, restored: int, curve: tuple[Point, ...], **changes: object) -> Tuning:
    phases = {"search": 1.0, "measure": 3.0}
    return replace(Tuning("anchors", case, 2, trials, 0, restored, 1, 4.0, phases, curve, 2.0), **changes)  # type: ignore[arg-type]


def test_rows_come_back_from_their_file(tmp_path: Path) -> None:
    rows = (
        MACHINE,
        tuning("a", 8, 0, (Point(0.5, 3, 1e-3),)),
        timing("odd", "a", 1.5),
        Variance("odd", "a", 2, 64, (1e-3, 2e-3), 0.5, 0.9, 0.0),
    )
    path = tmp_path / "rows.jsonl"
    for row in rows:
        Results(path).add(row)
    assert tuple(Results(path).rows) == rows


@pytest.mark.parametrize("line", ["{", '{"kind": "Timing", "suite": "odd"}', '{"kind": "Other"}', "{}"])
def test_rows_of_another_version_are_refused(tmp_path: Path, line: str) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(line + "\n")
    with pytest.raises(ValueError, match="move it away"):
        Results(path)


def test_the_latest_timing_of_the_trials_and_seed_counts() -> None:
    results = Results(None)
    for row in (timing("odd", "a", 1.0), timing("odd", "a", 3.0), timing("odd", "a", 9.0, seed=1), timing("int8", "a", 9.0)):
        results.add(row)
    assert results.timings(["odd"], RUN) == {("odd", "a"): timing("odd", "a", 3.0)}


def test_a_machine_has_the_best_peaks_of_all_its_runs() -> None:
    results = Results(None)
    slow = Peaks(2, 1e11, (MemoryLevel("L1", 1000, 5e11, 1e11), MemoryLevel("memory", 10**9, 5e9, 4e10)))
    for peaks in (PEAKS, slow):
        results.add(replace(MACHINE, all=peaks))
    results.add(replace(MACHINE, threads=1, all=replace(PEAKS, flops=9e99)))
    best = Peaks(2, 2e11, (MemoryLevel("L1", 1000, 5e11, 3e11), MemoryLevel("memory", 10**9, 1e10, 4e10)))
    assert results.machine(threads=2) == replace(MACHINE, all=best)


def test_runs_of_tuning_are_joined_and_gaps_left_out() -> None:
    results = Results(None)
    results.add(tuning("a", 8, 0, (Point(0.5, 1, 4e-3), Point(1.0, 5, 2e-3))))
    results.add(tuning("a", 16, 8, (Point(0.125, 9, 3e-3), Point(0.25, 11, 1e-3))))
    results.add(tuning("gap", 16, 8, ()))
    (joined,) = results.tunings(["anchors"], RUN).values()
    assert (joined.trials, joined.restored, joined.seconds, joined.errors) == (16, 0, 8.0, 1)
    assert joined.curve == ((0.5, 1, 4e-3), (1.0, 5, 2e-3), (4.25, 11, 1e-3))
    assert [joined.slowdown(trials) for trials in (0, 4, 8, 16)] == [None, 4.0, 2.0, 1.0]
    assert joined.phases == {"search": 2.0, "measure": 6.0}


def test_a_run_of_more_trials_is_not_one_of_few_where_time_was_up() -> None:
    results = Results(None)
    results.add(tuning("a", 3, 0, (), asked=RUN.trials))
    results.add(tuning("a", 5, 3, (), asked=RUN.trials + 1))
    (few,) = results.tunings(["anchors"], RUN).values()
    (many,) = results.tunings(["anchors"], replace(RUN, trials=RUN.trials + 1)).values()
    assert (few.trials, many.trials) == (3, 5)


def test_means_are_geometric_and_name_the_worst() -> None:
    rows = [timing("odd", "fast", 4.0), timing("odd", "slow", 0.5), timing("memory", "other", 0.25)]
    table = tables.means({(row.suite, row.case): row for row in rows}, {})
    column = table.header.index("÷ torch")
    assert [row[column] for row in table.rows] == [f"{math.sqrt(2):.2f}", "0.25", f"{0.5 ** (1 / 3):.2f}"]
    assert [row[table.header.index("worst case")] for row in table.rows] == ["slow: 0.50", "other: 0.25", "other: 0.25"]
    assert [row[table.header.index("below torch")] for row in table.rows] == ["1 of 2", "1 of 1", "2 of 3"]
    assert {row[-2:] for row in table.rows} == {("0.50", "500 ms")}


def test_a_long_run_also_says_what_it_had_early() -> None:
    row, key = timing("odd", "a", 3.0, trials=200), ("odd", "a")
    run = tuning("a", 200, 0, (Point(1.0, 1, 4e-3), Point(2.0, 64, 2e-3), Point(3.0, 65, 1e-3)))
    table = tables.means({key: row}, {key: run})
    assert table.rows[0][table.header.index("÷ torch at 64 trials")] == "1.50"
    assert "÷ torch at 64 trials" not in tables.means({key: replace(row, trials=64)}, {key: run}).header


def test_tuning_of_short_kernels_has_a_line_of_its_own() -> None:
    rows = {("odd", "short"): timing("odd", "short", 1.0), ("odd", "long"): timing("odd", "long", 1.0, seconds={BARE: 0.1})}
    runs = {("odd", "short"): tuning("short", 8, 0, ()), ("odd", "long"): tuning("long", 2, 0, ())}
    table = tables.phases(rows, runs)
    assert [row[table.header.index("a trial")] for row in table.rows] == ["0.800 s", "0.800 s", "0.500 s"]


def test_goals_stand_beside_what_was_found() -> None:
    fast, slow = timing("odd", "fast", 2.0), timing("memory", "slow", 0.5, compile_seconds=1.5)
    rows = {(row.suite, row.case): row for row in (fast, slow)}
    runs = {("odd", "fast"): tuning("fast", 40, 0, ())}
    seeds = {("odd", "fast"): Variance("odd", "fast", 2, 64, (1e-3, 2e-3), 0.5, 0.9, 0.0)}
    found = {row[0].split(":")[0].split(",")[0]: row[1:] for row in goals(rows, runs, seeds).rows}
    assert found == {
        "calls ÷ PyTorch": ("≥ 1.2", "1.00", "2"),
        "of these the slowest": ("≥ 0.85", "0.50", "2"),
        "seconds a trial": ("≤ 0.06 s", "0.100 s", "1"),
        "speed without any trial ÷ tuned": ("≥ 0.95", "0.50", "2"),
        "ready without any trial": ("≤ 1 s", "1.50 s (1 over 1 s)", "2"),
        "five seeds": ("≥ 0.95", "0.50", "1"),
        "one program five times": ("–", "0.90", "1"),
    }


def test_other_tuners_are_compared_at_equal_trials() -> None:
    anchor = next(
        a for a in ANCHORS if a.ansor is not None and a.ansor.seconds == 240 and a.ansor.ratios == {64: 0.52, 192: 0.61}
    )
    key = ("anchors", anchor.case.name)
    run = tuning(anchor.case.name, 200, 0, (Point(10.0, 1, 4e-3), Point(20.0, 65, 1e-3)))
    found = {row[0]: row[2] for row in goals({key: timing("anchors", anchor.case.name, 1.04, trials=200)}, {key: run}, {}).rows}
    assert found["kernel ÷ PyTorch, over what Ansor is on record with after as many trials: the least"] == "1.00"
    assert found["seconds until Ansor's best, as a share of its seconds: the most"] == "8.3%"


def test_seconds_until_the_best_ratio_of_ansor() -> None:
    anchor = next(a for a in ANCHORS if a.ansor is not None and a.ansor.seconds is not None)
    assert anchor.ansor is not None
    ratio = anchor.ansor.best * 2
    row = timing("anchors", anchor.case.name, ratio / 2)  # its bare ratio is twice the called one
    curve = (Point(1.0, 1, 4e-3), Point(2.0, 2, 2.1e-3), Point(3.0, 3, 1.9e-3), Point(4.0, 4, 1e-3))
    run = tuning(anchor.case.name, 64, 0, curve)
    key = ("anchors", anchor.case.name)
    table = tables.anchors({key: row}, {key: run})
    (line,) = table.rows
    assert line[table.header.index("until Ansor's best")] == "3.00 s"
    assert line[table.header.index("ours ÷ Ansor")] == "2.00"


def test_the_page_shows_every_table_and_what_is_wrong() -> None:
    rows = {("odd", "a"): timing("odd", "a", 1.5, busy=0.5, recorded=False, wrong={CALLED: "off by one"})}
    found = tables.everything(PEAKS, rows, {("anchors", "a"): tuning("a", 8, 0, ())}, {}, list(SUITES))
    text = page(MACHINE, "the command", list(rows.values()), found)
    assert all(
        word in text
        for word in ("the command", "some cpu", "busy machine", "a (default program) **wrong**", "off by one", "## Tuning")
    )


def test_the_roofline_takes_the_slower_of_work_and_traffic() -> None:
    assert PEAKS.seconds(2 * 10**11, 8) == pytest.approx(1.0)
    assert PEAKS.seconds(8, 500) == pytest.approx(500 / 4e11)
    assert PEAKS.seconds(8, 2 * 10**9) == pytest.approx(0.1)


def test_names_of_cases_are_unique() -> None:
    for cases in SUITES.values():
        names = [case.name for case in cases]
        assert len(set(names)) == len(names)
