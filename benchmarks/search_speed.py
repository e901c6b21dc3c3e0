"""How many candidates a second go from rows to scores on one core.

    python -m benchmarks.search_speed [--json] [--against REVISION] [--workload NAME]

For each workload, its sketch of the most holes takes a population of 2048 rows through the stages of one generation: children
(selection, crossover, mutation), canonical keys (which say what is new), features, and the trained model's prediction. One more
row is of a schedule function that a person wrote. Rows to scores is features and prediction together. Beside them stand what is
paid once a sketch, writing down what computes conditions, keys and features, and once a round, training. Times are medians of CPU
time, on one thread.

Against a revision both versions take short turns, each in a process of its own: how many times as many candidates a second this
one scores, and how many times as long it takes to write a sketch down. Both are medians of the ratios of turns.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any, Final

import click
import numpy as np
from rich.console import Console
from rich.table import Table

from ansorlite import te
from ansorlite.cost_model import GBDT, BlendedModel, Group
from ansorlite.cost_model.draft import Draft
from ansorlite.evolution import EvolutionSettings, offspring
from ansorlite.features import extract
from ansorlite.schedule.schedule import Schedule
from ansorlite.sketch.sketch import Sketch
from ansorlite.sketch.tile_space import TileSpace
from ansorlite.spaces.builders import Functions
from ansorlite.spaces.derivation import derive
from ansorlite.task import Task
from ansorlite.topi.blocked import blocked_conv
from ansorlite.topi.conv import conv
from ansorlite.topi.softmax import softmax
from benchmarks.versions.__main__ import ROOT, Version, check_out

POPULATION: Final = 2048
TRAINED_ON: Final = 256
#: Turns of each version beside another one, and what is said of them.
TURNS: Final = 15
AGAINST: Final = ("speed", "features", "model", "recording")


def matmul_relu() -> list[te.Tensor]:
    a, b = te.placeholder((512, 512), name="A"), te.placeholder((512, 512), name="B")
    k = te.reduce_axis(512, name="k")
    c = te.compute((512, 512), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    return [a, b, te.compute((512, 512), lambda i, j: te.maximum(c[i, j], 0.0), name="D")]


def int8_matmul() -> list[te.Tensor]:
    a, b = te.placeholder((512, 512), dtype="uint8", name="A"), te.placeholder((512, 512), dtype="int8", name="B")
    k = te.reduce_axis(512, name="k")

    def products(i: te.Expr, j: te.Expr) -> te.Expr:
        return te.sum(te.cast(a[i, k], "int32") * te.cast(b[k, j], "int32"), axis=k)

    return [a, b, te.compute((512, 512), products, name="C")]


def conv_bias_relu(channels: int, size: int, groups: int = 1) -> list[te.Tensor]:
    x, w = te.placeholder((1, channels, size, size), name="X"), te.placeholder((channels, channels // groups, 3, 3), name="W")
    b = te.placeholder(channels, name="B")
    y = conv(x, w, strides=(1, 1), before=(1, 1), after=(1, 1), groups=groups)
    out = te.compute(y.shape, lambda n, c, i, j: te.maximum(y[n, c, i, j] + b[c], 0.0), name="out")
    return [x, w, b, out]


def blocked_conv_relu(channels: int, size: int, block: int = 16) -> list[te.Tensor]:
    x = te.placeholder((1, channels // block, size, size, block), name="X")
    w = te.placeholder((channels, channels, 3, 3), name="W", constant=True)
    y = blocked_conv(x, w, block=block, before=(1, 1), after=(1, 1))
    return [x, w, te.compute(y.shape, lambda *i: te.maximum(y[i], 0.0), name="out")]


def softmax_rows() -> list[te.Tensor]:
    x = te.placeholder((1024, 512), name="X")
    return [x, softmax(x)]


WORKLOADS: Final[dict[str, Callable[[], list[te.Tensor]]]] = {
    "matmul 512 + relu": matmul_relu,
    "matmul 512 uint8 x int8": int8_matmul,
    "softmax 1024 x 512": softmax_rows,
    "conv 64x56x56 3x3, padded, + bias + relu": lambda: conv_bias_relu(64, 56),
    "depthwise 128x28x28 3x3, padded, + bias + relu": lambda: conv_bias_relu(128, 28, groups=128),
    "Winograd 64x56x56 3x3 in blocks of 16, padded, + relu": lambda: blocked_conv_relu(64, 56),
}


def by_hand(s: Schedule) -> None:
    """A schedule function of a person's, for the matrix product with its ReLU."""
    c, d = s.stage("C"), s.stage("D")
    i, j, k = c.loops
    i0, i1, i2, i3 = s.split(i, s.sample_tile(i, parts=4))
    j0, j1, j2, j3 = s.split(j, s.sample_tile(j, parts=4, innermost=(8, 16, 32)))
    k0, k1 = s.split(k, s.sample_tile(k, parts=2, perfect=True))
    s.reorder(i0, j0, i1, j1, k0, i2, j2, k1, i3, j3)
    s.reverse_compute_at(d, s.sample((j0, j1)))
    s.cache_read(c, "B", at=k0, layout="packed")
    s.parallel((i0, j0), depth=s.sample((1, 2)))
    s.vectorize(j3)
    s.unroll((k1, i3, j3), max_steps=s.sample((0, 16, 64), weights=(1, 2, 1)))


STAGES: Final = ("recording", "training", "children", "keys", "features", "model")


def cpu_seconds(run: Callable[[], object], repeats: int = 9) -> float:
    """Median CPU seconds of one call."""
    run()
    taken = []
    for _ in range(repeats):
        start = time.process_time()
        run()
        taken.append(time.process_time() - start)
    return median(taken)


def once(run: Callable[[], object]) -> float:
    """CPU seconds of the first call."""
    start = time.process_time()
    run()
    return time.process_time() - start


def measure() -> Iterator[dict[str, object]]:
    """A row for each workload."""
    (sketch, *_) = derive(Task(matmul_relu()))
    extract(sketch, TileSpace(sketch).sample(1, np.random.default_rng(0)))  # what is compiled once a process is there
    for name, make in WORKLOADS.items():
        task = Task(make())
        yield row_of(name, max(derive(task), key=lambda sketch: len(sketch.holes)))
    (own,) = Functions((by_hand,)).spaces(Task(matmul_relu()))
    yield row_of("matmul 512 + relu, by a schedule function", own)


def row_of(name: str, sketch: Sketch) -> dict[str, object]:
    """The figures of one sketch."""
    stages = measure_stages(sketch)
    rate = POPULATION / (stages["features"] + stages["model"])
    return {"workload": name, "holes": len(sketch.holes), **stages, "candidates_per_second": rate}


def measure_stages(sketch: Sketch) -> dict[str, float]:
    """CPU seconds of each of ``STAGES``."""
    rng, draft = np.random.default_rng(0), Draft(sketch.target)
    space, model = TileSpace(sketch), BlendedModel(draft, GBDT())
    recording = once(lambda: _first(space, sketch))
    rows = space.sample(POPULATION, rng)
    features = extract(sketch, rows)
    known = features[:TRAINED_ON]
    # Any latencies do for timing: the draft's, perturbed, make trees of a real size.
    groups = [Group(known, draft.seconds(known) * rng.lognormal(0, 0.5, TRAINED_ON))]
    return {
        "recording": recording,
        "training": cpu_seconds(lambda: model.fit(groups), repeats=3),
        "children": children(space, rows),
        "keys": cpu_seconds(lambda: space.canonical(rows)),
        "features": cpu_seconds(lambda: extract(sketch, rows)),
        "model": cpu_seconds(lambda: model.predict(features)),
    }


def _first(space: TileSpace, sketch: Sketch) -> None:
    """A row, its key and its features: what computes all this is written down."""
    row = space.sample(1, np.random.default_rng(0))
    space.canonical(row)
    extract(sketch, row)


def children(space: TileSpace, rows: np.ndarray) -> float:
    """CPU seconds of making a generation of children."""
    settings = EvolutionSettings(population=len(rows))
    scores = np.random.default_rng(0).random(len(rows))
    return cpu_seconds(lambda: offspring(space, rows, scores, len(rows), settings, np.random.default_rng(0)))


def beside(revision: str, workloads: Sequence[str]) -> Iterator[dict[str, object]]:
    """A row for each workload, of ``AGAINST``."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        other = check_out(revision, folder / "there")
        with Version("here", ROOT, folder) as here, Version("there", other, folder) as there:
            for version in (here, there):
                version.ask("record", workload=next(iter(WORKLOADS)))  # what is compiled once a process is there
            for workload in workloads:
                holes = [version.ask("prepare", workload=workload)["holes"] for version in (here, there)]
                ratios = [_turn((here, there), workload, first=turn % 2) for turn in range(TURNS)]
                yield {
                    "workload": workload,
                    "holes": holes,
                    **{column: median(each[column] for each in ratios) for column in AGAINST},
                }


def _turn(versions: tuple[Version, Version], workload: str, first: int) -> dict[str, float]:
    """How many times as many rows the first version scores, and how many times as long the parts of it and recording take."""
    taken = {}
    for version in (versions[first], versions[1 - first]):
        taken[version] = {**version.ask("score"), "recording": version.ask("record", workload=workload)["seconds"]}
    here, there = (taken[version] for version in versions)
    speed = (there["features"] + there["model"]) / (here["features"] + here["model"])
    return {"speed": speed, **{part: here[part] / there[part] for part in AGAINST[1:]}}


def show_beside(rows: Sequence[Mapping[str, Any]], revision: str) -> None:
    table = Table("workload", "holes", *AGAINST, title=f"beside {revision}: speed above 1 is faster, the others below 1")
    for row in rows:
        table.add_row(row["workload"], " / ".join(map(str, row["holes"])), *(f"{row[column]:.2f}" for column in AGAINST))
    means = (f"{geometric_mean([row[column] for row in rows]):.2f}" for column in AGAINST)
    table.add_row("geometric mean", "", *means)
    Console(width=max(140, Console().width)).print(table)


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of a table.")
@click.option("--against", metavar="REVISION", help="Beside another version, by turns.")
@click.option(
    "--workload", "workloads", multiple=True, type=click.Choice(list(WORKLOADS)), help="With --against: of these alone."
)
def main(as_json: bool, against: str | None, workloads: tuple[str, ...]) -> None:
    """Time the search's inner loop."""
    if against is not None:
        rows = list(beside(against, workloads or tuple(WORKLOADS)))
        if as_json:
            click.echo(json.dumps({"against": against, "rows": rows}))
        else:
            show_beside(rows, against)
        return
    found = list(measure())
    if as_json:
        click.echo(json.dumps({"population": POPULATION, "rows": found}))
        return
    heads = ("workload", "holes", *(f"{stage} ms" for stage in STAGES), "candidates / s")
    table = Table(*heads, title=f"{POPULATION} rows, one core")
    for row in found:
        stages = [f"{1e3 * float(str(row[stage])):.1f}" for stage in STAGES]
        table.add_row(str(row["workload"]), str(row["holes"]), *stages, f"{float(str(row['candidates_per_second'])):,.0f}")
    Console(width=max(140, Console().width)).print(table)


if __name__ == "__main__":
    main()
