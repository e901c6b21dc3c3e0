"""Tables that others have measured: those of AutoTuningAssociation/benchmark_hub, as they are or cut to what replay needs.

What others brute-forced on their machines is no task of ours: such a table has neither traces nor features, and strategies work
on its knobs alone.
"""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ansorlite.records.measurement import Outcome
from benchmarks.search.table import OUTCOMES, HoleKind, Kind, Meta, Table, TableError, TableHole, TableSketch

HUB: Final = "AutoTuningAssociation/benchmark_hub, Zenodo DOI 10.5281/zenodo.15364124"
#: What the licence of those tables asks to go with every copy.
LICENCE: Final = (
    "MIT. Copyright (c) 2025 AutoTuningAssociation. Permission is hereby granted, free of charge, to any person obtaining a copy "
    "of this software and associated documentation files, to deal in it without restriction, provided that this notice and the "
    'permission notice are included in all copies or substantial portions. It is provided "as is", without warranty of any kind.'
)


def imported(path: Path) -> Table:
    """The table in a file of benchmark_hub: ``.json`` or ``.json.gz``, or one of these cut to arrays, ``.npz``.

    Raises:
        TableError: there is no such file, or it is none of these.
    """
    if not path.is_file():
        raise TableError(f"there is no file {path}; give a table of benchmark_hub")
    try:
        return _arrays(path) if path.suffix == ".npz" else _json(path)
    except TableError:
        raise
    except (OSError, EOFError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        said = " ".join(str(error).split())
        raise TableError(
            f"{path} is no table of benchmark_hub ({type(error).__name__}: {said}); give KERNEL/GPU.json.gz or a cut .npz"
        ) from None


def _arrays(path: Path) -> Table:
    with np.load(path, allow_pickle=False) as stored:
        facts = json.loads(str(stored["meta"]))
        rows, seconds = stored["row"], stored["seconds"]
        passes = stored["times"] if "times" in stored.files else seconds[:, None]
    name = f"{facts['kernel']} {facts['device'] or path.stem.rpartition('_')[2]}"
    return _table(name, [(hole["name"], hole["values"]) for hole in facts["holes"]], rows, seconds, passes)


def _json(path: Path) -> Table:
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt") as file:
        facts: dict[str, Any] = json.load(file)
    names = list(facts["tune_params"])
    # A parameter of one value decides nothing.
    open_names = [name for name in names if len(facts["tune_params"][name]) > 1]
    values = {name: facts["tune_params"][name] for name in open_names}
    entries = list(facts["cache"].values())
    rows = np.array([[values[name].index(entry[name]) for name in open_names] for entry in entries])
    seconds = np.array([_seconds(entry["time"]) for entry in entries])
    # The shortest row says how many repeats all have.
    repeats = [[_seconds(each) for each in entry.get("times") or [entry["time"]]] for entry in entries]
    ran = [len(each) for each, took in zip(repeats, seconds, strict=True) if math.isfinite(took)]
    count = min(ran, default=1)
    passes = np.array(
        [each[:count] if math.isfinite(took) else [math.nan] * count for each, took in zip(repeats, seconds, strict=True)]
    )
    name = f"{facts['kernel_name']} {facts.get('device_name') or path.name.partition('.')[0]}"
    return _table(name, list(values.items()), rows, seconds, passes)


def _seconds(milliseconds: object) -> float:
    """A time of theirs; what did not run has a word in its place, or a time that cannot be."""
    if not isinstance(milliseconds, int | float) or not 0 < milliseconds < 1e10:
        return math.inf
    return milliseconds * 1e-3


def _table(
    name: str, holes: Sequence[tuple[str, Sequence[object]]], rows: NDArray[Any], seconds: NDArray[Any], passes: NDArray[Any]
) -> Table:
    n = len(seconds)
    found = tuple(_hole(label, values) for label, values in holes)
    sketch = TableSketch("foreign", "", found)
    ran = np.isfinite(seconds)
    outcome = np.where(ran, OUTCOMES.index(Outcome.OK), OUTCOMES.index(Outcome.COMPILE_ERROR))
    knobs = np.concatenate([hole.coordinates[rows[:, column]] for column, hole in enumerate(found)], axis=1)
    return Table(
        Meta(
            Kind.FOREIGN,
            name,
            (sketch,),
            machine=name,
            protocol="mean of the repeats, in seconds; not measured by ansorlite",
            source=HUB,
            licence=LICENCE,
        ),
        sketch=np.zeros(n, np.uint8),
        row=rows.astype(np.int16),
        key=np.arange(n, dtype=np.uint64),
        seconds=seconds.astype(np.float32),
        outcome=outcome.astype(np.uint8),
        passes=np.where(np.isfinite(passes), passes, np.nan).astype(np.float32),
        build=np.zeros(n, np.float32),
        run=np.zeros(n, np.float32),
        knobs=knobs.astype(np.float16),
        draft=np.full(n, np.nan, np.float16),
    )


def _hole(name: str, values: Sequence[object]) -> TableHole:
    """Numbers are steps of a ladder; of names, each is near all others."""
    if all(isinstance(value, int | float) and math.isfinite(value) for value in values):
        near = tuple(tuple(other for other in (at - 1, at + 1) if 0 <= other < len(values)) for at in range(len(values)))
        return TableHole(name, HoleKind.ORDINAL, tuple((float(value),) for value in values), near)  # type: ignore[arg-type]
    near = tuple(tuple(other for other in range(len(values)) if other != at) for at in range(len(values)))
    return TableHole(name, HoleKind.CATEGORY, tuple((float(at),) for at in range(len(values))), near)
