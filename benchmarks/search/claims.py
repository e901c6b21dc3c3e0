"""What each system is to show on the tables (``search.md``'s cards, under *Show*), and whether it does."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, TypeAlias

import numpy as np

from ansorlite.tuner.presets import DEFAULT, PRESETS
from benchmarks.common.tables import DASH
from benchmarks.common.tables import Table as Grid
from benchmarks.search import statistics
from benchmarks.search.results import is_neural
from benchmarks.search.standing import Found, OnTable
from benchmarks.search.table import Kind, Table
from benchmarks.search.variants import BEFORE, NO_BELIEF, RANDOM_WALK

RANDOM: Final = "random"
#: Seeds below which nothing is said to be met or missed: a difference that there is does not show.
ENOUGH: Final = 10
#: The same of presets with neural networks, which take long, and on how many tables they are run.
NEURAL_ENOUGH: Final = 5
NEURAL_TABLES: Final = 6

#: Why some systems cannot show much: for the page.
_CONSTANTS: Final = (
    "Constants are those of the systems, and some may leave little to be learnt from so few trials: AutoTVM's genetic algorithm "
    "draws its first 100 programs at random, and its grid goes through values in order. Ansor's forest says nothing before 100. "
    "FlexTensor's walk begins wherever it is not much slower than at the best point, and goes in a random direction two times in "
    "three, after 64 trials two times in five. Woodpecker-DL's policy moves by a tenth of an advantage a program, and 128 trials "
    "are four generations of its genetic algorithm. Bayesian optimisation leaves out what failed, on grids up to two thirds."
)

#: Of the best seconds of each seed, ours and theirs: whether something holds on a table.
Comparison: TypeAlias = Callable[[Sequence[float], Sequence[float]], bool]


def reaches(ours: Sequence[float], theirs: Sequence[float]) -> bool:
    """Whether ours is no slower in the median."""
    return float(np.median(ours)) <= float(np.median(theirs)) * (1 + 1e-6)


def slower(by: float, ours: Sequence[float], theirs: Sequence[float]) -> bool:
    """Whether ours is slower by more than a share in the median."""
    return float(np.median(ours)) > (1 + by) * float(np.median(theirs))


def _nothing(_: Sequence[float], __: Sequence[float]) -> bool:
    return False


@dataclass(frozen=True)
class Side:
    """The best of the first ``at`` of runs of so many ``trials``."""

    preset: str
    at: int = 64
    trials: int = 64


@dataclass(frozen=True)
class Claim:
    """What holds on how many tables, and what on none.

    Attributes:
        wanted: the share of the tables of ``kinds`` on which ``holds`` must hold.
        never: must hold on no table; by default that ours is slower by more than 2 % in the median.
    """

    text: str
    ours: Side
    theirs: Side
    wanted: float
    kinds: tuple[Kind, ...] = (Kind.GRID, Kind.FOREIGN)
    holds: Comparison = statistics.beats
    never: Comparison = statistics.worse


_GRIDS: Final = (Kind.GRID,)
_FOREIGN: Final = (Kind.FOREIGN,)
_NEVER_MUCH: Final = partial(slower, 0.03)

CLAIMS: Final = (
    Claim(
        "the default reaches in 32 what it reached in 64 before on 10 of 12 grids",
        Side(DEFAULT, 32),
        Side(BEFORE),
        10 / 12,
        _GRIDS,
        reaches,
        _nothing,
    ),
    Claim(
        "the default reaches in 32 what it reached in 64 before on 6 of 8 foreign tables",
        Side(DEFAULT, 32),
        Side(BEFORE),
        6 / 8,
        _FOREIGN,
        reaches,
        _nothing,
    ),
    Claim("the default beats Ansor as it was on 10 of 12 grids", Side(DEFAULT), Side("ansor"), 10 / 12, _GRIDS),
    Claim("AutoTVM's annealing beats random search on 10 of 12 grids", Side("autotvm"), Side(RANDOM), 10 / 12, _GRIDS),
    Claim("AutoTVM's annealing beats random search on 6 of 8 foreign tables", Side("autotvm"), Side(RANDOM), 6 / 8, _FOREIGN),
    Claim(
        "AutoTVM's genetic algorithm beats random search at 128 on 12 of 20 tables",
        Side("autotvm-ga", 128, 128),
        Side(RANDOM, 128, 128),
        12 / 20,
    ),
    Claim(
        "AutoTVM's grid beats random search at 128 on 12 of 20 tables",
        Side("autotvm-grid", 128, 128),
        Side(RANDOM, 128, 128),
        12 / 20,
    ),
    Claim("FlexTensor's walk beats random search on 14 of 20 tables", Side("flextensor"), Side(RANDOM), 14 / 20),
    Claim(
        "FlexTensor's walk beats its own in random directions on 12 of 20 tables", Side("flextensor"), Side(RANDOM_WALK), 12 / 20
    ),
    Claim("Ansor beats random search at 256 on 10 of 12 grids", Side("ansor", 256, 256), Side(RANDOM, 256, 256), 10 / 12, _GRIDS),
    Claim(
        "Woodpecker-DL's genetic algorithm beats random search at 128 on 14 of 20 tables",
        Side("woodpecker-ga", 128, 128),
        Side(RANDOM, 128, 128),
        14 / 20,
    ),
    Claim(
        "Woodpecker-DL's policy gradient beats random search at 128 on 14 of 20 tables",
        Side("woodpecker-rl", 128, 128),
        Side(RANDOM, 128, 128),
        14 / 20,
    ),
    Claim("AdaTune's forest and expected improvement beat random search on 14 of 20 tables", Side("adatune"), Side(RANDOM), 0.7),
    Claim(
        "ProTuner's tree search is nowhere slower by 3 % than MetaSchedule's evolution under the same model",
        Side("protuner"),
        Side("metaschedule"),
        0.0,
        never=_NEVER_MUCH,
    ),
    Claim(
        "Chameleon's sampling reaches in 64 what AutoTVM reaches in 128 on 10 of 20 tables, and 0.97 of it on all",
        Side("chameleon-sampling"),
        Side("autotvm", 128, 128),
        10 / 20,
        holds=reaches,
        never=_NEVER_MUCH,
    ),
    Claim(
        "Heron's constrained children beat a genetic algorithm that rejects on 8 of 12 grids",
        Side("heron"),
        Side("autotvm-ga"),
        8 / 12,
        _GRIDS,
    ),
    Claim("Bayesian optimisation beats random search on 14 of 20 tables", Side("bayesian"), Side(RANDOM), 14 / 20),
    Claim("Bayesian optimisation beats annealing at 50 on 10 of 20 tables", Side("bayesian", 50), Side("annealing", 50), 10 / 20),
    Claim(
        "Bayesian optimisation's batches by belief beat those of what is worth most on 10 of 20 tables",
        Side("bayesian"),
        Side(NO_BELIEF),
        10 / 20,
    ),
)


def claims(tables: Mapping[str, Table], found: Mapping[int, Found]) -> Grid:
    """Whether each claim is met by what was ``found``, by the trials of runs."""
    rows = []
    for claim in CLAIMS:
        both = list(_both(claim, tables, found))
        if both:
            pairs = [(ours.after(claim.ours.at), theirs.after(claim.theirs.at)) for ours, theirs in both]
            holds = sum(claim.holds(*pair) for pair in pairs)
            never = sum(claim.never(*pair) for pair in pairs)
            met = holds >= claim.wanted * len(both) and not never
            every = sum(table.meta.kind in claim.kinds for table in tables.values())
            rows.append((claim.text, f"{holds} of {len(both)}", str(never), _verdict(met, both, every, ENOUGH)))
        else:
            rows.append((claim.text, DASH, DASH, "open: no runs"))
    for preset in PRESETS:
        rival = Claim(f"{preset} beats the default on no more than 4 of 20 tables", Side(preset), Side(DEFAULT), 4 / 20)
        both = list(_both(rival, tables, found))
        if preset != DEFAULT and both and not PRESETS[preset].space:
            beaten = sum(statistics.beats(ours.finals, theirs.finals) for ours, theirs in both)
            least, enough = (NEURAL_TABLES, NEURAL_ENOUGH) if is_neural(PRESETS[preset]) else (1, ENOUGH)
            met = beaten <= rival.wanted * len(both)
            rows.append((rival.text, f"{beaten} of {len(both)}", "", _verdict(met, both, least, enough)))
    notes = (
        "By the best of 64 trials, where nothing else is said. *worse on*: tables on which it is slower by more than 2 % in the "
        "median, or by what the claim says; a claim is met if that is none.",
        *(_in_hindsight(claim, tables, found) for claim in CLAIMS if claim.theirs.preset == BEFORE),
        _CONSTANTS,
    )
    return Grid("claims", ("claim", "found", "worse on", ""), tuple(rows), notes)


def _both(claim: Claim, tables: Mapping[str, Table], found: Mapping[int, Found]) -> Iterator[tuple[OnTable, OnTable]]:
    ours, theirs = found.get(claim.ours.trials, {}), found.get(claim.theirs.trials, {})
    for name, table in tables.items():
        keys = (claim.ours.preset, name), (claim.theirs.preset, name)
        if table.meta.kind in claim.kinds and keys[0] in ours and keys[1] in theirs:
            yield ours[keys[0]], theirs[keys[1]]


def _in_hindsight(claim: Claim, tables: Mapping[str, Table], found: Mapping[int, Found]) -> str:
    """On how many tables a claim holds for one preset at least: how much there is to be had by choosing another one."""
    rivals = [list(_both(replace(claim, ours=replace(claim.ours, preset=preset)), tables, found)) for preset in PRESETS]
    held, every = set[str](), set[str]()
    for ours, theirs in itertools.chain(*rivals):
        table = theirs.runs[0].table
        every.add(table)
        if claim.holds(ours.after(claim.ours.at), theirs.after(claim.theirs.at)):
            held.add(table)
    kinds = " and ".join(f"{kind.value} tables" for kind in claim.kinds)
    return (
        f"With the best of all presets for each table, chosen afterwards, {claim.ours.at} trials reach what the default reached "
        f"in {claim.theirs.at} before on {len(held)} of {len(every)} {kinds}."
    )


def _verdict(met: bool, both: Sequence[tuple[OnTable, OnTable]], tables: int, enough: int) -> str:
    """Open where there are fewer than so many ``tables``, or seeds ``enough`` on one of them."""
    if len(both) < tables:
        return f"open: {len(both)} of {tables} tables"
    if min(len(each.runs) for pair in both for each in pair) < enough:
        return f"open: fewer than {enough} seeds"
    return "met" if met else "missed"
