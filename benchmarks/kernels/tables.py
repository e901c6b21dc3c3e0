"""Rows of results -> tables: one for each suite, their geometric means, the anchors, where the seconds went, the seeds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from ansorlite.report.text import duration
from ansorlite.runtime.peaks import Peaks
from benchmarks.common.tables import DASH, Table, against, geometric_mean, spread, times
from benchmarks.kernels.results import BARE, CALLED, UNTUNED, Key, Timing, Tuning, Variance
from benchmarks.kernels.suites import ANCHORS, Anchor, Recorded

#: The number of trials at which a longer run is looked at, too.
EARLY: Final = 64
#: Seconds of a kernel that measuring takes little time of.
SHORT: Final = 5e-3


def cases(suite: str, peaks: Peaks, timings: Mapping[Key, Timing], tunings: Mapping[Key, Tuning]) -> Table:
    """One row a case: our time and what it comes to, and how many times as fast as each of the others that is."""
    mine = [timing for timing in timings.values() if timing.suite == suite]
    peers = _peers(mine)
    header = (
        "case",
        "call",
        "kernel",
        "GFLOP/s",
        "of roofline",
        "of peak",
        *(against(peer) for peer in peers),
        "untuned",
        "ready in",
        "trials",
    )
    rows = [
        (
            timing.case + _remarks(timing),
            duration(timing.seconds[CALLED]),
            duration(timing.seconds[BARE]),
            f"{timing.flops / timing.seconds[BARE] / 1e9:.3g}",
            f"{peaks.seconds(timing.flops, timing.nbytes) / timing.seconds[BARE]:.0%}" if timing.dtype == "float32" else DASH,
            f"{timing.of_peak.median:.0%}" if timing.of_peak and timing.dtype == "float32" else DASH,
            *(spread(timing.called.get(peer)) for peer in peers),
            times(1 / timing.bare[UNTUNED].median) if UNTUNED in timing.bare else DASH,
            duration(timing.compile_seconds),
            str(tunings[key].trials) if (key := (suite, timing.case)) in tunings else DASH,
        )
        for timing in mine
    ]
    wrong = [f"{t.case}: the output of {name} differs: {what}" for t in mine for name, what in t.wrong.items()]
    return Table(suite, header, tuple(rows), tuple(wrong))


def means(timings: Mapping[Key, Timing], tunings: Mapping[Key, Tuning]) -> Table:
    """Geometric means by suite and over all, and the worst case of each against the first peer."""
    sooner = {key: found for key, timing in timings.items() if (found := early(timing, tunings.get(key))) is not None}
    peers = _peers(timings.values())
    suites = list(dict.fromkeys(timing.suite for timing in timings.values()))
    groups = [(suite, [t for t in timings.values() if t.suite == suite]) for suite in suites]
    rows = [
        (
            name,
            str(len(group)),
            *(_mean(t.called[peer].median for t in group if peer in t.called) for peer in peers),
            *(_mean(sooner[key] for t in group if (key := (t.suite, t.case)) in sooner) for _ in peers[:1] if sooner),
            *(text for peer in peers[:1] for text in _standing(group, peer)),
            _mean(1 / t.bare[UNTUNED].median for t in group if UNTUNED in t.bare),
            duration(max((t.compile_seconds for t in group if t.compile_seconds is not None), default=None)),
        )
        for name, group in [*groups, ("all", list(timings.values()))]
    ]
    first = [
        (*([f"{against(peer)} at {EARLY} trials"] if sooner else []), "kernel, " + against(peer), f"below {peer}", "worst case")
        for peer in peers[:1]
    ]
    header = (
        "suite",
        "cases",
        *map(against, peers),
        *(name for names in first for name in names),
        "untuned",
        "ready in, at most",
    )
    return Table("geometric means", header, tuple(rows))


def anchors(timings: Mapping[Key, Timing], tunings: Mapping[Key, Tuning]) -> Table:
    """Ours beside what is on record of Ansor and MetaSchedule, as ratios to PyTorch."""
    rows = []
    for anchor in ANCHORS:
        key = ("anchors", anchor.case.name)
        timing = timings.get(key)
        if timing is None or "torch" not in timing.bare:
            continue
        ratio = timing.bare["torch"].median
        tuning = tunings.get(key) if timing.recorded else None
        until = until_ansor(anchor, ratio, tuning)
        theirs = anchor.ansor.seconds if anchor.ansor else None
        rows.append(
            (
                anchor.case.name + _remarks(timing),
                times(timing.called["torch"].median),
                times(ratio),
                _recorded(anchor.ansor),
                _recorded(anchor.metaschedule),
                times(ratio / anchor.ansor.best) if anchor.ansor else DASH,
                times(ratio / anchor.metaschedule.best) if anchor.metaschedule else DASH,
                duration(until) if until is not None else ("not reached" if tuning and anchor.ansor else DASH),
                duration(theirs),
                f"{until / theirs:.1%}" if until is not None and theirs else DASH,
            )
        )
    header = (
        "workload",
        "call ÷ torch",
        "kernel ÷ torch",
        "Ansor",
        "MetaSchedule",
        "ours ÷ Ansor",
        "ours ÷ MetaSchedule",
        "until Ansor's best",
        "Ansor took",
        "share",
    )
    threads = {timing.threads for (suite, _), timing in timings.items() if suite == "anchors"}
    note = "What is on record was measured on two threads, as ratios to PyTorch on two threads; ours here are on {}."
    notes = [note.format("one" if count == 1 else count) for count in threads - {2}]
    return Table("anchors: times as fast as PyTorch, by trials", header, tuple(rows), tuple(notes))


def phases(timings: Mapping[Key, Timing], tunings: Mapping[Key, Tuning]) -> Table:
    """Where the seconds of tuning went, by suite."""
    rows = []
    suites = list(dict.fromkeys(tuning.suite for tuning in tunings.values()))
    groups = [(suite, [t for t in tunings.values() if t.suite == suite]) for suite in suites]
    names = list(dict.fromkeys(phase for tuning in tunings.values() for phase in tuning.phases))
    groups.append(("all", list(tunings.values())))
    if short := [tuning for key, tuning in tunings.items() if key in timings and is_short(timings[key])]:
        groups.append((f"kernels under {duration(SHORT)}", short))
    for name, group in groups:
        seconds, trials = sum(t.seconds for t in group), sum(t.trials - t.restored for t in group)
        spent = (sum(t.phases.get(phase, 0.0) for t in group) for phase in names)
        errors = sum(t.errors for t in group)
        rows.append(
            (
                name,
                str(trials),
                str(errors),
                f"{seconds:.0f} s",
                f"{seconds / max(trials, 1):.3f} s",
                *(f"{part / max(seconds, 1e-9):.0%}" for part in spent),
            )
        )
    return Table("tuning", ("suite", "trials", "errors", "seconds", "a trial", *names), tuple(rows))


def variances(rows: Mapping[Key, Variance]) -> Table:
    """How far apart the seeds are."""
    found = list(rows.values())
    body = [
        (row.suite, row.case, times(row.worst), times(row.floor), ", ".join(duration(seconds) for seconds in row.seconds))
        for row in found
    ]
    total = ("all", "geometric mean", _mean(row.worst for row in found), _mean(row.floor for row in found), "")
    header = ("suite", "case", "worst", "noise floor", "by seed")
    return Table("seeds: the worst one's share of the best one's speed", header, (*body, total))


def is_short(timing: Timing) -> bool:
    """Whether its kernel takes less than :data:`SHORT`."""
    return timing.seconds[BARE] < SHORT


def early(timing: Timing, tuning: Tuning | None) -> float | None:
    """How many times as fast as the first peer a call was with the best of :data:`EARLY` trials, if there were more.

    What follows from the last program's, as the latencies of one tuning run are in one unit.
    """
    peer = next((spread for name, spread in timing.called.items() if name != UNTUNED), None)
    slowdown = None if tuning is None or timing.trials <= EARLY or not timing.recorded else tuning.slowdown(EARLY)
    return None if peer is None or slowdown is None else peer.median / slowdown


def _remarks(timing: Timing) -> str:
    default = " (default program)" if timing.trials and not timing.recorded else ""
    return default + (" **wrong**" if CALLED in timing.wrong else "")


def _standing(group: Sequence[Timing], peer: str) -> tuple[str, str, str]:
    """(mean of the bare kernels, how many cases are below the peer's speed, which one most)"""
    compared = [timing for timing in group if peer in timing.called]
    worst = min(compared, key=lambda t: t.called[peer].median, default=None)
    return (
        _mean(timing.bare[peer].median for timing in compared),
        f"{sum(timing.called[peer].median < 1 for timing in compared)} of {len(compared)}",
        DASH if worst is None else f"{worst.case}: {times(worst.called[peer].median)}",
    )


def until_ansor(anchor: Anchor, ratio: float, tuning: Tuning | None) -> float | None:
    """Seconds of tuning until a program was known that is as fast as Ansor's best.

    The comparison says what the last program's latency comes to as a ratio to PyTorch; the others follow from theirs.
    """
    if tuning is None or anchor.ansor is None or not tuning.curve:
        return None
    latency = min(point.latency for point in tuning.curve)
    return next((point.at for point in tuning.curve if ratio * latency / point.latency >= anchor.ansor.best), None)


def _peers(timings: Iterable[Timing]) -> list[str]:
    return list(dict.fromkeys(peer for timing in timings for peer in timing.called if peer != UNTUNED))


def _recorded(recorded: Recorded | None) -> str:
    return ", ".join(f"{ratio:.2f} @{trials}" for trials, ratio in recorded.ratios.items()) if recorded else DASH


def _mean(values: Iterable[float]) -> str:
    return times(geometric_mean(values))


def everything(
    peaks: Peaks,
    timings: Mapping[Key, Timing],
    tunings: Mapping[Key, Tuning],
    seeds: Mapping[Key, Variance],
    order: Sequence[str],
) -> list[Table]:
    """All tables that there are rows for."""
    tables = []
    if timings:
        tables.append(means(timings, tunings))
    if "anchors" in order and any(suite == "anchors" for suite, _ in timings):
        tables.append(anchors(timings, tunings))
    tables += [cases(suite, peaks, timings, tunings) for suite in order if any(key[0] == suite for key in timings)]
    if tunings:
        tables.append(phases(timings, tunings))
    if seeds:
        tables.append(variances(seeds))
    return tables
