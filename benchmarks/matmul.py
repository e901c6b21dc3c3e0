"""A tuned matrix product beside numpy's BLAS: ``python -m benchmarks.matmul [--size 512] [--trials 64] [--seed 0] [--json]``.

Both run on the same number of threads in the same process, in turns; medians and their ratio are printed.
"""

from __future__ import annotations

import json

import click
import numpy as np
from threadpoolctl import threadpool_limits

import ansorlite as al
from ansorlite import te
from ansorlite.report.compare import compare


def matmul(size: int) -> al.Task:
    a, b = te.placeholder((size, size), name="A"), te.placeholder((size, size), name="B")
    k = te.reduce_axis(size, name="k")
    return al.Task([a, b, te.compute((size, size), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")])


@click.command()
@click.option("--size", default=512, show_default=True)
@click.option("--trials", default=64, show_default=True)
@click.option("--seed", default=0, show_default=True)
@click.option("--seconds", default=3.0, show_default=True, help="How long the comparison lasts.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def main(size: int, trials: int, seed: int, seconds: float, as_json: bool) -> None:
    """Tune a square float32 matrix product and compare it with numpy's."""
    task = matmul(size)
    with al.Database(":memory:") as database:
        result = al.tune(task, trials=trials, database=database, seed=seed)
        kernel = al.compile(task, database=database)
    rng = np.random.default_rng(seed)
    a, b = (rng.uniform(-1, 1, (size, size)).astype(np.float32) for _ in range(2))
    ours, theirs = np.empty((size, size), np.float32), np.empty((size, size), np.float32)
    np.testing.assert_allclose(kernel(a, b), a @ b, rtol=1e-3, atol=1e-3)
    with threadpool_limits(task.target.threads):
        times = compare(lambda: kernel(a, b, out=ours), lambda: np.matmul(a, b, out=theirs), seconds)
    assert times.against is not None
    found = {
        "size": size,
        "threads": task.target.threads,
        "trials": result.trials,
        "tuning_seconds": result.seconds,
        "ours": times.ours,
        "numpy": times.against,
        "ratio": times.against / times.ours,
        "gflops": task.dag.flops / times.ours / 1e9,
    }
    if as_json:
        click.echo(json.dumps(found))
    else:
        click.echo(
            f"{size}^3 float32, {task.target.threads} threads, {result.trials} trials in {result.seconds:.0f} s: "
            f"{times.ours * 1e3:.3f} ms ({task.dag.flops / times.ours / 1e9:.0f} GFLOP/s), numpy {times.against * 1e3:.3f} ms: "
            f"{times.against / times.ours:.2f} of numpy's speed"
        )


if __name__ == "__main__":
    main()
