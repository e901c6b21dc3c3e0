"""How long a model takes from nothing to its first output, each time in a new process: the first time, from records; and later.

    python -m benchmarks.loading [--turns 5]

Twice: with random weights (102 MB are read), and as the onnx package has it (each tensor one value repeated: as many weights to
prepare, next to nothing to read). The records are of a few programs of each task,
measured before the clock runs.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import click
import numpy as np
import onnx
from rich.console import Console
from rich.table import Table

import ansorlite as al
from ansorlite.cache.disk import CACHE_VARIABLE
from benchmarks.models.light import light

_LIGHT: Final = Path(onnx.__path__[0]) / "backend" / "test" / "data" / "light" / "light_resnet50.onnx"

#: What a new process does, and prints: seconds of the wall and of processors (of its own processes, too) after each phase.
_CODE: Final = """
import json, os, sys, time

def clock():
    times = os.times()
    return [time.time(), times.user + times.system + times.children_user + times.children_system]

marks = []
import numpy as np
marks.append(clock())
import ansorlite as al
al.from_onnx, al.compile
marks.append(clock())
model = al.from_onnx(sys.argv[1])
marks.append(clock())
run = al.compile(model, sys.argv[2])
marks.append(clock())
x = np.ones(next(iter(run.inputs.values())).shape, np.float32)
run(x)
marks.append(clock())
print(json.dumps(marks))
"""

_PHASES: Final = ("Python and numpy", "imports", "from_onnx", "compile", "first inference")

#: So many for each task leave none without a record.
_TRIALS: Final = 4

#: Seconds by the wall, and of processors.
Times = tuple[float, float]


def phases(model: Path, database: Path, cache: Path) -> list[Times]:
    """The phases of one process, and their sum.

    Raises:
        RuntimeError: it failed.
    """
    environment = {**os.environ, CACHE_VARIABLE: str(cache)}
    begin = np.array([(time.time(), 0.0)])
    done = subprocess.run(
        [sys.executable, "-c", _CODE, str(model), str(database)], capture_output=True, text=True, check=False, env=environment
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
    marks = np.concatenate([begin, json.loads(done.stdout.splitlines()[-1])])
    return [*map(tuple, np.diff(marks, axis=0)), tuple(marks[-1] - marks[0])]


def table(title: str, columns: Mapping[str, Sequence[Times]]) -> Table:
    """Seconds by the wall (of processors in brackets), a row for each phase."""
    result = Table(title=title, box=None, pad_edge=False, header_style="dim")
    result.add_column("seconds by the wall (of processors)")
    for name in columns:
        result.add_column(name, justify="right")
    for position, phase in enumerate((*_PHASES, "all of it")):
        result.add_row(phase, *(f"{wall:.2f} ({cpu:.2f})" for wall, cpu in (times[position] for times in columns.values())))
    return result


@click.command()
@click.option("--turns", default=5, show_default=True, type=click.IntRange(min=1), help="Later loads; medians count.")
def main(turns: int) -> None:
    """Time first and later loads of ResNet-50."""
    console = Console()
    with tempfile.TemporaryDirectory(prefix="ansorlite-loading-") as name:
        folder = Path(name)
        large = folder / "resnet50.onnx"
        large.write_bytes(light("resnet50")(np.random.default_rng(0)).data)
        database = folder / "tuning.db"
        for model in (large, _LIGHT):
            tasks = al.from_onnx(model)
            al.tune(tasks, trials=_TRIALS * len(tasks.tasks), database=database, progress=False)
        for model in (large, _LIGHT):
            cache = folder / f"cache of {model.name}"
            first = phases(model, database, cache)
            later = np.median([phases(model, database, cache) for _ in range(turns)], axis=0)
            size = model.stat().st_size / 1e6
            console.print(table(f"{model.name}, {size:.1f} MB", {"first, from records": first, "later": list(map(tuple, later))}))


if __name__ == "__main__":
    main()
