"""A kernel for a GPU: written, tuned, checked, and called with arrays on the GPU.

python examples/gpu.py                    # on this machine's GPU, through CuPy: pip install 'ansorlite[cuda12]'
python examples/gpu.py emulated 8         # without one: this machine's CPU in the place of a small GPU, 8 trials
"""

from __future__ import annotations

import importlib
import sys

import numpy as np

import ansorlite as al
from ansorlite import te


def product(m: int, n: int, k: int) -> list[te.Tensor]:
    """``max(A @ B + bias, 0)``."""
    a, b, bias = te.placeholder((m, k), name="A"), te.placeholder((k, n), name="B"), te.placeholder((n,), name="bias")
    r = te.reduce_axis(k, name="r")
    c = te.compute((m, n), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")
    return [a, b, bias, te.compute((m, n), lambda i, j: te.maximum(c[i, j] + bias[j], 0.0), name="D")]


def main(target: str = "cuda", trials: int = 64) -> None:
    size = 1024 if target.startswith("cuda") else 64
    task = al.Task(product(size, size, size), target)
    assert task.target.gpu is not None, f"{target} is no GPU"
    print(task.target.gpu.limits)

    found = al.tune(task, trials=trials, database="example.db", progress=False)
    print(f"{found.trials} programs measured; the best takes {1e6 * found.best_latency:.1f} us")

    kernel = al.compile(task, database="example.db")
    rng = np.random.default_rng(0)
    a, b, bias = (rng.standard_normal(tensor.shape, np.float32) for tensor in task.dag.inputs)
    if target.startswith("cuda"):
        # What is on the GPU is used where it is. CuPy's arrays come back at once; to print one waits for it.
        cupy = importlib.import_module("cupy")
        result = kernel(*map(cupy.asarray, (a, b, bias))).get()
    else:
        result = kernel(a, b, bias)
    np.testing.assert_allclose(result, np.maximum(a @ b + bias, 0), rtol=1e-3, atol=1e-3)
    print("it is right")


if __name__ == "__main__":
    main(*sys.argv[1:2], *map(int, sys.argv[2:]))
