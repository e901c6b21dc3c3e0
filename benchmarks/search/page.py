"""The page of search quality, from tables and results."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

import numpy as np

from ansorlite.tuner.presets import DEFAULT, PRESETS
from benchmarks.common.tables import DASH, markdown
from benchmarks.common.tables import Table as Grid
from benchmarks.search import metrics, statistics
from benchmarks.search.claims import RANDOM, claims
from benchmarks.search.results import Judged
from benchmarks.search.standing import Found, OnTable
from benchmarks.search.table import Kind, Table
from benchmarks.search.variants import VARIANTS, Variant

_HEAD: Final = """# Search quality

How good each way to search is, by what it finds on recorded tables: programs of a task that were all measured once, so that
thirty seeds cost seconds and every preset answers the same question. Made by `python -m benchmarks.search page`, from tables that
`record` and `import` of that command made, and runs that `run` made. Each goes on where it was stopped.

* A **grid** is a sub-space of one of our tasks, measured whole, on one thread: a few values of each hole of one or two sketches.
  One value in three is one that the draft and the default's own search liked, so grids favour the default; foreign tables do not.
  A **foreign** table was measured by others, on GPUs. It has no features: there a preset means its strategy on the knobs, with
  trees in the place of a cost model that reads features. A **cloud** is programs of a task's whole space, for models; no strategy
  runs on it.
* Presets that share trials among tasks differently, or begin with what others know, do the same on one task: `dynatune` as
  `autotvm`, `transfer-tuning` as the default.
* Nothing is noisy here: a program takes what the table says. No preset begins with the draft's favourite.
* *s(k)* is the speed of the best of k trials, as a share of that of the table's fastest program: the median over seeds.
* *score* is the mean over k ≤ 64 of how much closer to the best than random search a run is: 1 is the best at once, 0 is as
  random search is expected to do (which is exact), below 0 is worse.
* A preset *beats* another on a table if one-sided Mann-Whitney over seeds, by the best of 64 trials, says so with p < 0.01; it
  is *worse* if its median is by more than 2 % slower. *p* is Wilcoxon's over the tables' median scores, two-sided, corrected by
  Holm.
"""

_TERMS: Final = """## Where the foreign tables are from

{source}. {licence}
"""


def page(
    tables: Mapping[str, Table],
    found: Mapping[int, Mapping[tuple[str, str], Sequence[Judged]]],
    trials: int,
    clouds: Mapping[str, Table],
    models: Sequence[tuple[str, Grid]] = (),
) -> str:
    """The whole page.

    Args:
        tables: grids and foreign ones, by name.
        found: runs by their trials, and by preset and table.
        trials: of the runs that are shown; claims are of others, too.
        models: what is said of cost models, with titles.
    """
    every: dict[int, Found] = {
        count: {key: OnTable(tables[key[1]], tuple(runs), count) for key, runs in of_them.items() if runs}
        for count, of_them in found.items()
    }
    on = every.get(trials, {})
    # A table is a space of its own: what differs in its space alone cannot be judged here.
    presets = [name for name in PRESETS if not PRESETS[name].space and any(key[0] == name for key in on)]
    parts = [_HEAD]
    for title, table in (
        ("Presets", _summary(presets, tables, on)),
        ("What was to be shown", claims(tables, every)),
        ("The default, and what was tried for it", _variants(tables, on)),
        (f"Share of the best speed after {trials} trials", _matrix(presets, tables, on, lambda each: f"{each.shares[-1]:.3f}")),
        ("Share of the best speed after 32 trials", _matrix(presets, tables, on, lambda each: f"{each.shares[31]:.3f}")),
        ("Score", _matrix(presets, tables, on, lambda each: f"{each.score:.2f}")),
        ("Trials to 95 % of the best speed", _matrix(presets, tables, on, lambda each: _count(each.median_to(0.95), trials))),
        *models,
        ("Tables", _tables(tables)),
        ("Clouds", _clouds(clouds)),
    ):
        if table.rows:
            parts += [f"## {title}\n", markdown(table) + "\n"]
    foreign = next((table.meta for table in tables.values() if table.meta.kind is Kind.FOREIGN), None)
    if foreign is not None:
        parts.append(_TERMS.format(source=foreign.source, licence=foreign.licence))
    return "\n".join(parts)


def _count(value: float, trials: int) -> str:
    return f"{value:.0f}" if math.isfinite(value) else f"> {trials}"


def _both(preset: str, other: str, tables: Mapping[str, Table], on: Found) -> Iterator[tuple[str, OnTable, OnTable]]:
    for name in tables:
        if (preset, name) in on and (other, name) in on:
            yield name, on[preset, name], on[other, name]


def _against(preset: str, other: str, tables: Mapping[str, Table], on: Found) -> str:
    """On how many tables the preset beats the other, and is worse."""
    both = list(_both(preset, other, tables, on))
    if not both or preset == other:
        return DASH
    beaten = sum(statistics.beats(ours.finals, theirs.finals) for _, ours, theirs in both)
    worse = sum(statistics.worse(ours.finals, theirs.finals) for _, ours, theirs in both)
    return f"{beaten} / {worse} of {len(both)}"


def _summary(presets: Sequence[str], tables: Mapping[str, Table], on: Found) -> Grid:
    chances = {}
    for preset in presets:
        both = list(_both(preset, DEFAULT, tables, on))
        if preset != DEFAULT and len(both) > 1:
            chances[preset] = statistics.over_tables([ours.score for _, ours, _ in both], [theirs.score for _, _, theirs in both])
    adjusted = statistics.holm(chances)
    rows = []
    for preset in presets:
        groups = [
            [on[preset, name] for name, table in tables.items() if table.meta.kind is kind and (preset, name) in on]
            for kind in (Kind.GRID, Kind.FOREIGN)
        ]
        seeds = [len(each.runs) for group in groups for each in group]
        rows.append(
            (
                preset,
                *(f"{np.median([each.score for each in group]):.2f}" if group else DASH for group in groups),
                *(f"{np.median([each.shares[-1] for each in group]):.3f}" if group else DASH for group in groups),
                _against(preset, RANDOM, tables, on),
                _against(preset, DEFAULT, tables, on),
                f"{adjusted[preset]:.3f}" if preset in adjusted else DASH,
                f"{np.median([run.seconds for group in groups for each in group for run in each.runs]):.2f}",
                f"{min(seeds)}" if min(seeds) == max(seeds) else f"{min(seeds)}–{max(seeds)}",
            )
        )
    header = (
        "preset",
        "score, grids",
        "score, foreign",
        "s, grids",
        "s, foreign",
        "beats / worse than random",
        "beats / worse than default",
    )
    return Grid("presets", (*header, "p beside default", "seconds a run", "seeds"), tuple(rows))


def _variants(tables: Mapping[str, Table], on: Found) -> Grid:
    """Geometric means over tables and seeds, and how much better than the default, on the seeds that both have."""
    rows = []
    for name in (DEFAULT, *(name for name, variant in VARIANTS.items() if isinstance(variant, Variant))):
        cells = []
        for kind in (Kind.GRID, Kind.FOREIGN):
            both = [pair for table, *pair in _both(name, DEFAULT, tables, on) if tables[table].meta.kind is kind]
            cells += _beside(both) if both else [DASH] * 4
        if set(cells) != {DASH}:
            rows.append((name, *cells))
    header = ("", *(f"{what}, {kind}" for kind in ("grids", "foreign") for what in ("s(32)", "s(64)", "s(64) beside", "runs")))
    notes = (
        "Geometric means over tables and seeds. *beside*: the logarithm of the ratio to the default's, on the same seeds, "
        "with its standard error. Each row differs from the default in what it says.",
    )
    return Grid("variants", header, tuple(rows) if len(rows) > 1 else (), notes)


def _beside(both: Sequence[Sequence[OnTable]]) -> list[str]:
    """s(32), s(64), that beside the second of each pair, and runs."""
    means, gains, errors, count = [], [], [], 0
    for ours, theirs in both:
        shared = sorted({run.seed for run in ours.runs} & {run.seed for run in theirs.runs})
        own, other = (
            np.log(each.table.best / each.best_so_far[[[run.seed for run in each.runs].index(seed) for seed in shared]])
            for each in (ours, theirs)
        )
        means.append(own[:, [31, -1]].mean(axis=0))
        gain = own[:, -1] - other[:, -1]
        gains.append(gain.mean())
        errors.append(gain.std() / math.sqrt(len(gain)))
        count += len(shared)
    early, late = np.exp(np.mean(means, axis=0))
    error = math.sqrt(sum(each**2 for each in errors)) / len(errors)
    return [f"{early:.3f}", f"{late:.3f}", f"{np.mean(gains):+.3f} ± {error:.3f}", str(count)]


def _matrix(presets: Sequence[str], tables: Mapping[str, Table], on: Found, show: Callable[[OnTable], str]) -> Grid:
    rows = [(name, *(show(on[preset, name]) if (preset, name) in on else DASH for preset in presets)) for name in tables]
    return Grid("", ("table", *presets), tuple(row for row in rows if set(row[1:]) != {DASH}))


def _tables(tables: Mapping[str, Table]) -> Grid:
    rows = []
    for name, table in tables.items():
        seconds = metrics.programs(table)
        random = metrics.expected_best(seconds, metrics.AT[-1])
        rows.append(
            (
                name,
                table.meta.kind.value,
                str(len(table)),
                str(len(seconds)),
                f"{1 - table.ran[np.unique(table.key, return_index=True)[1]].mean():.1%}",
                DASH if math.isnan(table.noise) else f"{table.noise:.1%}",
                *(f"{seconds[0] / random[k - 1]:.3f}" for k in metrics.AT),
                f"{np.mean(seconds <= seconds[0] / 0.9):.2%}",
                "yes" if metrics.hard_enough(table) else "no",
                table.meta.machine,
            )
        )
    shown = (f"random, s({k})" for k in metrics.AT)
    header = ("table", "kind", "rows", "programs", "failed or stopped", "noise", *shown, "within 10 %", "hard enough", "machine")
    notes = (
        "*noise* is the median of |ln pass 1 / pass 2| over the better programs; *random* is exact. A table is hard enough where "
        "random search is expected to reach at most 0.93 after 64 trials, and 0.02 to 2 % of them are within 10 % of it.",
    )
    return Grid("tables", header, tuple(rows), notes)


def _clouds(clouds: Mapping[str, Table]) -> Grid:
    rows = [(name, str(len(table)), f"{1 - table.ran.mean():.1%}", table.meta.machine) for name, table in clouds.items()]
    return Grid("clouds", ("table", "programs", "failed or stopped", "machine"), tuple(rows))
