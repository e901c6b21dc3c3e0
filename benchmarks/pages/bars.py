"""What is to be reached on a kind of machine, beside what was; and each suite after few and after all trials."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, TypeAlias

from benchmarks.common.tables import DASH, Table, geometric_mean, times
from benchmarks.kernels.results import UNTUNED, Key, Tuning
from benchmarks.kernels.results import Timing as KernelTiming
from benchmarks.models.results import FEW
from benchmarks.models.results import UNTUNED as UNTUNED_MODEL
from benchmarks.models.results import Timing as ModelTiming
from benchmarks.pages.kinds import Bars

Kernels: TypeAlias = Mapping[Key, KernelTiming]
Models: TypeAlias = Mapping[str, ModelTiming]
#: (bar, wanted, found, of how many)
_Rows: TypeAlias = Iterator[tuple[str, str, str, str]]

#: No case of these suites is to be slow.
NEVER_SLOW: Final = ("ansor10", "subgraph", "odd", "memory")
LARGE: Final = ("anchors", "W2 matmul 1024^3")
NETWORKS: Final = ("light_resnet50", "light_squeezenet")
#: The others that models are held against, where they take part.
RIVALS: Final = ("onnxruntime", "openvino")
#: Seconds of tuning a case with few trials, at most.
_SECONDS: Final = 10.0


def bars(wanted: Bars, early: Kernels, early_tunings: Mapping[Key, Tuning], late: Kernels, models: Models) -> Table:
    """One row a bar that there are results for. Where nothing was tuned with all trials, the cases are those of few.

    Args:
        early, early_tunings: of few trials.
        late: of all trials.
    """
    slow = _slow(late or early, wanted.least)
    limit = "" if wanted.least is None else f"below {wanted.least:g} of PyTorch ({', '.join(NEVER_SLOW)}): "
    rows = [*_kernels(wanted, early, early_tunings, late), *_models(wanted, models)]
    notes = [limit + ("none." if not slow else "; ".join(f"{case} {times(ratio)}" for case, ratio in slow.items()) + ".")]
    return Table("bars", ("bar", "wanted", "found", "cases"), tuple(rows), tuple(notes if limit and (late or early) else ()))


def by_suite(early: Kernels, late: Kernels, least: float | None) -> Table:
    """Geometric means beside PyTorch: of each suite, after few trials and after all."""
    suites = list(dict.fromkeys(suite for suite, _ in (*late, *early)))
    rows = []
    for name, chosen in [*((suite, (suite,)) for suite in suites), ("all", tuple(suites))]:
        groups = [_beside_torch({key: t for key, t in timings.items() if key[0] in chosen}) for timings in (early, late)]
        last = groups[1] if late else groups[0]
        worst = min(last, key=lambda case: last[case], default=None)
        below = DASH if least is None or not last else str(sum(ratio < least for ratio in last.values()))
        rows.append(
            (
                name,
                str(max(map(len, groups))),
                *(_mean(group.values()) for group in groups),
                below,
                DASH if worst is None else f"{worst[1]}: {times(last[worst])}",
            )
        )
    few, many = (max((timing.trials for timing in timings.values()), default=0) for timings in (early, late))
    limit = "–" if least is None else f"{least:g}"
    header = ("suite", "cases", f"÷ torch at {few} trials", f"÷ torch at {many} trials", f"below {limit}", "slowest")
    return Table("suites", header, tuple(rows))


def better_rival(timing: ModelTiming) -> float | None:
    """How many times as fast as the better of the other systems ours is; ``None`` where none took part."""
    return min((timing.ratios[who].median for who in RIVALS if who in timing.ratios), default=None)


def untuned_beside_rival(timing: ModelTiming) -> float | None:
    """The same of the programs without any trial."""
    rival = better_rival(timing)
    return rival / timing.ratios[UNTUNED_MODEL].median if rival is not None and UNTUNED_MODEL in timing.ratios else None


def _kernels(wanted: Bars, early: Kernels, early_tunings: Mapping[Key, Tuning], late: Kernels) -> _Rows:
    for bar, timings in ((wanted.mean, late), (wanted.early_mean, early)):
        trials = max((timing.trials for timing in timings.values()), default=0)
        yield from _row(f"all suites ÷ PyTorch, geometric mean at {trials} trials", bar, _beside_torch(timings).values())
    longest = [tuning.seconds for key, tuning in early_tunings.items() if key in early]
    if longest:
        title = f"seconds of tuning a case with {max(timing.trials for timing in early.values())} trials, at most"
        yield title, f"≤ {_SECONDS:g}", f"{max(longest):.1f}", str(len(longest))
    last = late or early
    never_slow = _beside_torch({key: timing for key, timing in last.items() if key[0] in NEVER_SLOW})
    yield from _least(f"the slowest of {', '.join(NEVER_SLOW)} ÷ PyTorch", wanted.least, never_slow)
    if LARGE in last:
        share = last[LARGE].of_peak
        title = "1024^3, share of what multiply-adds alone reach on all cores in the same rounds"
        yield from _row(title, wanted.large_share, [share.median] if share else [])
        yield from _row("1024^3 ÷ PyTorch", wanted.large, _beside_torch({LARGE: last[LARGE]}).values())
    untuned = [1 / timing.bare[UNTUNED].median for timing in last.values() if UNTUNED in timing.bare and timing.trials]
    yield from _row("kernels without any trial ÷ tuned, geometric mean", wanted.untuned, untuned)


def _models(wanted: Bars, models: Models) -> _Rows:
    beside = {name: ratio for name, timing in models.items() if (ratio := better_rival(timing)) is not None}
    rivals = " and ".join(who for who in RIVALS if any(who in timing.ratios for timing in models.values()))
    better = f"the better of {rivals}" if " and " in rivals else rivals
    for name in NETWORKS:
        yield from _row(f"{name} ÷ {better}", wanted.networks, [beside[name]] if name in beside else [])
    untuned = [ratio for timing in models.values() if (ratio := untuned_beside_rival(timing)) is not None]
    yield from _row(f"models ÷ {better}, geometric mean", wanted.models, beside.values())
    yield from _row(f"models without any trial ÷ {better}, geometric mean", None, untuned)
    for trials in sorted({timing.few for timing in models.values() if FEW in timing.ratios}):
        shares = [1 / timing.ratios[FEW].median for timing in models.values() if timing.few == trials]
        yield from _row(f"models after {trials} trials a task ÷ after all, geometric mean", wanted.few, shares)
    yield from _least(f"the slowest model ÷ {better}", wanted.least_model, {("", name): ratio for name, ratio in beside.items()})


def _row(bar: str, wanted: float | None, values: Iterable[float]) -> _Rows:
    found = list(values)
    if found:
        yield bar, _at_least(wanted), times(geometric_mean(found)), str(len(found))


def _least(bar: str, wanted: float | None, ratios: Mapping[Key, float]) -> _Rows:
    if ratios:
        worst = min(ratios, key=lambda key: ratios[key])
        yield f"{bar}: {worst[1]}", _at_least(wanted), times(ratios[worst]), str(len(ratios))


def _at_least(wanted: float | None) -> str:
    return DASH if wanted is None else f"≥ {wanted:g}"


def _beside_torch(timings: Kernels) -> dict[Key, float]:
    return {key: timing.called["torch"].median for key, timing in timings.items() if "torch" in timing.called}


def _slow(timings: Kernels, least: float | None) -> dict[str, float]:
    """Cases below ``least``, the slowest first."""
    found = _beside_torch({key: timing for key, timing in timings.items() if key[0] in NEVER_SLOW})
    below = {key[1]: ratio for key, ratio in found.items() if least is not None and ratio < least}
    return dict(sorted(below.items(), key=lambda item: item[1]))


def _mean(values: Iterable[float]) -> str:
    return times(geometric_mean(values))
