"""Value learning across tasks: a value of beginnings, learnt from other grids, picks one program of a grid without a measurement
(Steiner et al., MLSys 2021)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ansorlite.cost_model import neural
from ansorlite.search.value import beam, best_below
from benchmarks.common.tables import Table as Grid
from benchmarks.search.space import TableSpace
from benchmarks.search.table import HoleKind, Table

Floats: TypeAlias = NDArray[np.float64]
Rows: TypeAlias = NDArray[np.int64]

#: Programs of a grid that are learnt from, and beginnings that are kept.
LEARNT: Final = 256
WIDTH: Final = 16
#: Numbers of a step: the kind of its hole, how many holes and values there are, and so many coordinates of the value at most.
_COORDINATES: Final = 6
_NUMBERS: Final = len(HoleKind) + 2 + _COORDINATES
#: The authors train for hours.
EPOCHS: Final = 20


def steps(space: TableSpace, rows: Rows) -> Floats:
    """``(n, k, numbers)``: of the first ``k`` choices of rows, in words that are the same for all tasks."""
    holes = space.sketch.holes
    found = np.zeros((*rows.shape, _NUMBERS))
    kinds = list(HoleKind)
    for at in range(rows.shape[1]):
        hole = holes[at]
        found[:, at, kinds.index(hole.kind)] = 1.0
        found[:, at, len(kinds) : len(kinds) + 2] = len(holes), np.log2(len(hole.values))
        coordinates = hole.coordinates[rows[:, at]][:, :_COORDINATES]
        found[:, at, len(kinds) + 2 : len(kinds) + 2 + coordinates.shape[1]] = coordinates
    return found


def examples(table: Table, rng: np.random.Generator) -> tuple[Floats, Floats, TableSpace]:
    """Steps and values of programs of the sketch that has most, and its space."""
    position = int(np.bincount(table.sketch).argmax())
    space = TableSpace(table, position)
    rows = space.sample(LEARNT, rng)
    places = space.positions(rows)
    latencies = np.where(table.ran[places], table.seconds[places].astype(np.float64), np.inf)
    return steps(space, rows), best_below(rows, latencies), space


def _joined(known: list[tuple[Floats, Floats]]) -> tuple[Floats, Floats]:
    """All of one length: a row that is at its end stays as good as it is."""
    longest = max(each.shape[1] for each, _ in known)
    longer = [np.pad(each, ((0, 0), (0, longest - each.shape[1]), (0, 0))) for each, _ in known]
    values = [np.pad(each, ((0, 0), (0, longest - each.shape[1])), mode="edge") for _, each in known]
    return np.concatenate(longer), np.concatenate(values)


def experiment(grids: Mapping[str, Table], seed: int, epochs: int) -> Grid:
    """Of each grid, the share of the best speed that one program has which was picked without a measurement of it."""
    rng = np.random.default_rng(seed)
    known = {name: examples(table, rng) for name, table in grids.items()}
    rows, found = [], []
    for name, table in grids.items():
        space = known[name][2]
        net = neural.PrefixValue(np.random.default_rng([seed, len(rows)]), epochs)
        net.fit(*_joined([(each, values) for other, (each, values, _) in known.items() if other != name]))

        def value(first: Rows, space: TableSpace = space, net: neural.PrefixValue = net) -> Floats:
            return net.predict(steps(space, first))

        ended = beam(space.sizes, value, WIDTH, 64, rng)
        legal = ended[space.valid(ended)]
        picked = int(space.positions(legal[:1])[0]) if len(legal) else None
        own = np.flatnonzero(table.sketch == np.bincount(table.sketch).argmax())
        drafted = int(own[np.argmax(table.draft[own])])
        shares = [_share(table, place) for place in (picked, drafted)]
        found.append(shares)
        rows.append((name, *(f"{share:.3f}" for share in shares)))
    ours, theirs = np.exp(np.log(np.maximum(found, 1e-3)).mean(axis=0))
    rows.append(("geometric mean", f"{ours:.3f}", f"{theirs:.3f}"))
    notes = (
        f"An LSTM learnt the best speed below each beginning of {LEARNT} programs of each other grid, for {epochs} epochs; a "
        f"beam of {WIDTH} goes by it. *draft*: what the analytical model likes best of the same programs. What does not run "
        "counts as 0.001.",
        f"To be shown: above the draft's own pick in the geometric mean: {'met' if ours > theirs else 'missed'}.",
    )
    return Grid("values", ("grid", "value learning", "draft"), tuple(rows), notes)


def _share(table: Table, place: int | None) -> float:
    return float(table.best / table.seconds[place]) if place is not None and table.ran[place] else 0.0
