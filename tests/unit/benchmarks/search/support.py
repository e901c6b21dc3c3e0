"""A small table whose times are known in closed form."""

import numpy as np

from ansorlite.records.measurement import Outcome
from benchmarks.search.table import OUTCOMES, HoleKind, Kind, Meta, Table, TableHole, TableSketch


def hole(name: str, size: int) -> TableHole:
    near = tuple(tuple(other for other in (at - 1, at + 1) if 0 <= other < size) for at in range(size))
    return TableHole(name, HoleKind.ORDINAL, tuple((float(value),) for value in range(size)), near)


def small_table(sizes: tuple[int, ...] = (6, 7, 5), kind: Kind = Kind.GRID, missing: int = 0, failed: int = 0) -> Table:
    """A valley; the last ``missing`` rows are left out, the first ``failed`` ones did not run."""
    rows = np.indices(sizes).reshape(len(sizes), -1).T
    rows = rows[: len(rows) - missing]
    seconds = 1e-3 * (1 + ((rows - np.array(sizes) / 3) ** 2).sum(axis=1))
    seconds[:failed] = np.inf
    n = len(rows)
    ran = np.isfinite(seconds)
    outcome = np.where(ran, OUTCOMES.index(Outcome.OK), OUTCOMES.index(Outcome.CRASH))
    features = np.concatenate([rows, rows**2], axis=1)[:, None, :]
    names = tuple(f"f{number}" for number in range(features.shape[2]))
    sketch = TableSketch("a", "text", tuple(hole(f"h{at}", size) for at, size in enumerate(sizes)), statements=1)
    return Table(
        Meta(kind, "valley", (sketch,), "nowhere", features=names),
        sketch=np.zeros(n, np.uint8),
        row=rows.astype(np.int16),
        key=np.arange(n, dtype=np.uint64),
        seconds=seconds.astype(np.float32),
        outcome=outcome.astype(np.uint8),
        passes=np.stack([seconds, np.where(ran, seconds * 1.02, np.nan)], axis=1).astype(np.float32),
        build=np.full(n, 0.01, np.float32),
        run=np.full(n, 0.02, np.float32),
        knobs=rows.astype(np.float16),
        draft=np.zeros(n, np.float16),
        traces=tuple(f"trace {number}" for number in range(n)),
        features=features.astype(np.float16),
    )
