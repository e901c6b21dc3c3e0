"""How many candidates a second go from rows to scores on one core: ``python -m benchmarks.search_speed [--json]``.

For each workload and sketch a population of 2048 rows is taken through the stages of one generation: canonical keys (which
say what is new), features, and the trained model's prediction. Rows to scores is features and prediction together. Times are
medians of CPU time, on one thread.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from statistics import median

import click
import numpy as np
from rich.console import Console
from rich.table import Table

from ansorlite import te
from ansorlite.cost_model import GBDT, BlendedModel, Group
from ansorlite.cost_model.draft import Draft
from ansorlite.features import extract
from ansorlite.sketch.derivation import derive
from ansorlite.sketch.tile_space import TileSpace
from ansorlite.task import Task
from ansorlite.topi.conv import conv

POPULATION = 2048
TRAINED_ON = 256


def matmul_relu() -> list[te.Tensor]:
    a, b = te.placeholder((512, 512), name="A"), te.placeholder((512, 512), name="B")
    k = te.reduce_axis(512, name="k")
    c = te.compute((512, 512), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    return [a, b, te.compute((512, 512), lambda i, j: te.maximum(c[i, j], 0.0), name="D")]


def conv_bias_relu() -> list[te.Tensor]:
    x, w, b = te.placeholder((1, 64, 56, 56), name="X"), te.placeholder((64, 64, 3, 3), name="W"), te.placeholder(64, name="B")
    y = conv(x, w, strides=(1, 1), before=(1, 1), after=(1, 1))
    out = te.compute(y.shape, lambda n, c, i, j: te.maximum(y[n, c, i, j] + b[c], 0.0), name="out")
    return [x, w, b, out]


WORKLOADS: dict[str, Callable[[], list[te.Tensor]]] = {
    "matmul 512 + relu": matmul_relu,
    "conv 64x56x56 3x3, padded, + bias + relu": conv_bias_relu,
}


def cpu_seconds(run: Callable[[], object], repeats: int = 9) -> float:
    """Median CPU seconds of one call."""
    run()
    taken = []
    for _ in range(repeats):
        start = time.process_time()
        run()
        taken.append(time.process_time() - start)
    return median(taken)


def measure() -> list[dict[str, object]]:
    rows_out: list[dict[str, object]] = []
    for name, make in WORKLOADS.items():
        task = Task(make())
        for number, sketch in enumerate(derive(task)):
            rng = np.random.default_rng(0)
            space, model = TileSpace(sketch), BlendedModel(Draft(task.target), GBDT())
            known = extract(sketch, space.sample(TRAINED_ON, rng))
            # Any latencies do for timing: the draft's, perturbed, make trees of a real size.
            latencies = Draft(task.target).seconds(known) * rng.lognormal(0, 0.5, TRAINED_ON)
            model.fit([Group(known, latencies)])
            rows = space.sample(POPULATION, rng)
            features = extract(sketch, rows)
            stages = {
                "keys": cpu_seconds(lambda space=space, rows=rows: space.canonical(rows)),
                "features": cpu_seconds(lambda sketch=sketch, rows=rows: extract(sketch, rows)),
                "model": cpu_seconds(lambda model=model, features=features: model.predict(features)),
            }
            rate = POPULATION / (stages["features"] + stages["model"])
            rows_out.append({"workload": name, "sketch": number, **stages, "candidates_per_second": rate})
    return rows_out


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of a table.")
def main(as_json: bool) -> None:
    """Time the search's inner loop."""
    found = measure()
    if as_json:
        click.echo(json.dumps({"population": POPULATION, "rows": found}))
        return
    columns = ("workload", "sketch", "keys ms", "features ms", "model ms", "candidates / s")
    table = Table(*columns, title=f"population {POPULATION}, one core")
    for row in found:
        stages = [f"{1e3 * float(str(row[stage])):.1f}" for stage in ("keys", "features", "model")]
        table.add_row(str(row["workload"]), str(row["sketch"]), *stages, f"{float(str(row['candidates_per_second'])):,.0f}")
    Console().print(table)


if __name__ == "__main__":
    main()
