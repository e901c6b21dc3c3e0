"""What the kernels are to reach, and where they stand: one row for each goal that there are rows for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, TypeAlias

from ansorlite.report.text import duration
from benchmarks.common.tables import Table, geometric_mean, times
from benchmarks.kernels.results import UNTUNED, Key, Timing, Tuning, Variance
from benchmarks.kernels.suites import ANCHORS, Recorded
from benchmarks.kernels.tables import EARLY, early, is_short, until_ansor

#: The suites whose geometric mean has a goal.
_MEANT: Final = ("ansor10", "subgraph", "odd", "memory")
_LARGE: Final = ("anchors", "W2 matmul 1024^3")


def goals(timings: Mapping[Key, Timing], tunings: Mapping[Key, Tuning], seeds: Mapping[Key, Variance]) -> Table:
    """One row a goal: what it is, how much is wanted, how much was found, of how many cases."""
    rows = [
        *_beside_torch(timings, tunings),
        *_beside_tuners(timings, tunings),
        *_seconds_a_trial(timings, tunings),
        *_untuned(timings),
        *_row(
            "five seeds: the worst one's speed ÷ the best one's, geometric mean", "≥ 0.95", [row.worst for row in seeds.values()]
        ),
        *_row("one program five times: the same, which is noise", "–", [row.floor for row in seeds.values()]),
    ]
    return Table("goals", ("goal", "wanted", "found", "cases"), tuple(rows))


#: (goal, wanted, found, number of cases)
_Rows: TypeAlias = Iterator[tuple[str, str, str, str]]


def _row(goal: str, wanted: str, values: Iterable[float]) -> _Rows:
    found = list(values)
    if found:
        yield goal, wanted, times(geometric_mean(found)), str(len(found))


def _beside_torch(timings: Mapping[Key, Timing], tunings: Mapping[Key, Tuning]) -> _Rows:
    meant = {key: timing for key, timing in timings.items() if timing.suite in _MEANT and "torch" in timing.called}
    suites = ", ".join(_MEANT)
    if trials := max((timing.trials for timing in meant.values()), default=0):
        wanted = "≥ 1.2" if trials <= EARLY else "≥ 1.4"
        called = {key: timing.called["torch"].median for key, timing in meant.items()}
        yield from _row(f"calls ÷ PyTorch, {suites}: geometric mean at {trials} trials", wanted, called.values())
        sooner = [found for key, timing in meant.items() if (found := early(timing, tunings.get(key))) is not None]
        yield from _row(f"the same at {EARLY} trials", "≥ 1.2", sooner)
        worst = min(called, key=lambda key: called[key])
        yield f"of these the slowest: {worst[1]}", "≥ 0.85", times(called[worst]), str(len(called))
    if _LARGE in timings and "torch" in timings[_LARGE].called:
        yield "product of 1024 x 1024 matrices ÷ PyTorch", "≥ 1.0", times(timings[_LARGE].called["torch"].median), "1"
    constant = [t for t in timings.values() if t.suite == "constant" and " k3 " in t.case]
    peers = [t.called["onnxruntime constant"].median for t in constant if "onnxruntime constant" in t.called]
    yield from _row("3x3 convolutions ÷ onnxruntime, constant weights", "≥ 1.0", peers)


def _beside_tuners(timings: Mapping[Key, Timing], tunings: Mapping[Key, Tuning]) -> _Rows:
    ratios: dict[str, list[float]] = {"Ansor": [], "MetaSchedule": []}
    shares = []
    for anchor in ANCHORS:
        key = ("anchors", anchor.case.name)
        timing, tuning = timings.get(key), tunings.get(key)
        if timing is None or tuning is None or "torch" not in timing.bare:
            continue
        for name, recorded in (("Ansor", anchor.ansor), ("MetaSchedule", anchor.metaschedule)):
            ratios[name] += _at_equal_trials(timing.bare["torch"].median, tuning, recorded)
        if anchor.ansor is not None and anchor.ansor.seconds is not None:
            until = until_ansor(anchor, timing.bare["torch"].median, tuning)
            shares.append(float("inf") if until is None else until / anchor.ansor.seconds)
    for name, found in ratios.items():
        if found:
            goal = f"kernel ÷ PyTorch, over what {name} is on record with after as many trials: the least"
            yield goal, "> 1", times(min(found)), str(len(found))
    if shares:
        yield "seconds until Ansor's best, as a share of its seconds: the most", "≤ 10%", f"{max(shares):.1%}", str(len(shares))


def _at_equal_trials(ratio: float, tuning: Tuning, recorded: Recorded | None) -> Iterator[float]:
    """For each number of trials on record that ours had: how many times as fast ours was after as many."""
    for trials, theirs in recorded.ratios.items() if recorded else ():
        slowdown = tuning.slowdown(trials)
        if slowdown is not None:
            yield ratio / slowdown / theirs


def _seconds_a_trial(timings: Mapping[Key, Timing], tunings: Mapping[Key, Tuning]) -> _Rows:
    short = [tuning for key, tuning in tunings.items() if key in timings and is_short(timings[key])]
    trials = sum(tuning.trials - tuning.restored for tuning in short)
    if trials:
        seconds = sum(tuning.seconds for tuning in short) / trials
        yield "seconds a trial, kernels under 5 ms, all of tuning included", "≤ 0.06 s", f"{seconds:.3f} s", str(len(short))


def _untuned(timings: Mapping[Key, Timing]) -> _Rows:
    untuned = [timing for timing in timings.values() if UNTUNED in timing.bare and timing.trials]
    yield from _row("speed without any trial ÷ tuned, geometric mean", "≥ 0.95", [1 / t.bare[UNTUNED].median for t in untuned])
    ready = {t.case: t.compile_seconds for t in untuned if t.compile_seconds is not None}
    if ready:
        slowest = max(ready, key=lambda case: ready[case])
        late = sum(seconds > 1.0 for seconds in ready.values())
        found = f"{duration(ready[slowest])}{f' ({late} over 1 s)' if late else ''}"
        yield f"ready without any trial, at most: {slowest}", "≤ 1 s", found, str(len(ready))
