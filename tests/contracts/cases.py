"""What the contracts are tried on: named computations that trip schedulers up, random ones, and rows of their sketches.

``ANSORLITE_FUZZ=10`` in the environment makes ten times as many examples of everything random, ``0.5`` half as many.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Final

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from ansorlite import te
from ansorlite.sketch.sketch import Sketch
from ansorlite.sketch.tile_space import TileSpace
from ansorlite.spaces.derivation import derive
from ansorlite.target import Target
from ansorlite.task import Task
from ansorlite.te.dag import ComputeDAG
from ansorlite.te.printer import text
from ansorlite.te.rewriting import with_constants
from ansorlite.te.serialize import dump
from tests import workloads
from tests.strategies import dags
from tests.targets import NARROW, WIDE

Rows = NDArray[np.int64]

_FUZZ: Final = float(os.environ.get("ANSORLITE_FUZZ", "1"))

#: So many sketches of one computation are tried.
MOST_SKETCHES: Final = 6


def attention(m: int, n: int, d: int) -> list[te.Tensor]:
    """Two products around a softmax: reductions that feed reductions."""
    q, k, v = te.placeholder((m, d), name="Q"), te.placeholder((n, d), name="K"), te.placeholder((n, d), name="V")
    r, s, t, u = (te.reduce_axis(x, name=name) for x, name in ((d, "r"), (n, "s"), (n, "t"), (n, "u")))
    scores = te.compute((m, n), lambda i, j: te.sum(q[i, r] * k[j, r], axis=r), name="scores")
    largest = te.compute((m,), lambda i: te.max(scores[i, s], axis=s), name="largest")
    exp = te.compute((m, n), lambda i, j: te.exp(scores[i, j] - largest[i]), name="exp")
    total = te.compute((m,), lambda i: te.sum(exp[i, t], axis=t), name="total")
    weights = te.compute((m, n), lambda i, j: exp[i, j] / total[i], name="weights")
    return [q, k, v, te.compute((m, d), lambda i, j: te.sum(weights[i, u] * v[u, j], axis=u), name="mixed")]


def constant_weights(tensors: list[te.Tensor], *names: str) -> list[te.Tensor]:
    """The computation with the inputs ``names`` constant."""
    dag = ComputeDAG.of(tensors)
    changed = with_constants(dag, [tensor.name in names for tensor in dag.inputs])
    return [*changed.inputs, *changed.outputs]


def derived_weights(m: int, n: int, k: int) -> list[te.Tensor]:
    """A product with the sum of two constants, one transposed, which is normalised first: stages that are prepared."""
    a = te.placeholder((m, k), name="A")
    b, c = te.placeholder((n, k), name="B", constant=True), te.placeholder((n, k), name="C", constant=True)
    r, s = te.reduce_axis(k, name="r"), te.reduce_axis(k, name="s")
    total = te.compute((n,), lambda j: te.sum(te.abs(b[j, s]) + 1.0, axis=s), name="total")
    weight = te.compute((n, k), lambda j, z: b[j, z] / total[j] + c[j, z], name="weight")
    product = te.compute((m, n), lambda i, j: te.sum(a[i, r] * weight[j, r], axis=r), name="product")
    return [a, b, c, te.compute((m, n), lambda i, j: product[i, j] * weight[j, i % k], name="D")]


#: Small, so that an interpreter in Python runs them; primes, ones, and what is no multiple of anything.
NAMED: Final[Mapping[str, Callable[[], list[te.Tensor]]]] = {
    "matmul of primes": lambda: workloads.matmul(13, 17, 11),
    "matmul of powers": lambda: workloads.matmul(16, 32, 8),
    "matmul of one row": lambda: workloads.matmul(1, 19, 23),
    "matmul of ones": lambda: workloads.matmul(1, 1, 1),
    "matmul float64": lambda: workloads.matmul(6, 20, 7, "float64"),
    "matmul int8": lambda: workloads.int8_matmul(9, 16, 8),
    "matmul bias relu": lambda: workloads.matmul_bias_relu(14, 18, 9),
    "batch matmul": lambda: workloads.batch_matmul(2, 7, 9, 5),
    "convolution": lambda: workloads.conv2d_bias_relu(1, 4, 7, 9, 6, 3, 1, 1, 1, 1),
    "convolution 1x1": lambda: workloads.conv2d_bias_relu(1, 8, 7, 7, 16, 1, 1, 0, 1, 1),
    "convolution strided, grouped": lambda: workloads.conv2d_bias_relu(2, 4, 8, 8, 6, 3, 2, 1, 1, 2),
    "convolution dilated": lambda: workloads.conv2d_bias_relu(1, 3, 9, 9, 4, 3, 1, 2, 2, 1),
    "depthwise": lambda: workloads.depthwise(1, 6, 7, 7),
    "transposed convolution": lambda: workloads.conv2d_transposed(1, 3, 4, 4, 2, 4, 2, 1),
    "transposed convolution, odd": lambda: workloads.conv2d_transposed(1, 2, 4, 3, 2, 3, 2, 1),
    "max pool": lambda: workloads.max_pool(1, 3, 9, 9),
    "softmax": lambda: workloads.softmax(7, 37),
    "layer norm": lambda: workloads.layer_norm(5, 48),
    "attention": lambda: attention(7, 9, 5),
    "sum of squares": lambda: workloads.sum_of_squares(509),
    "sum of columns": lambda: workloads.sum_of_columns(23, 19),
    "transpose add": lambda: workloads.transpose_add(13, 9),
    "two outputs": lambda: workloads.two_outputs(8, 7, 8),
    "diamond": lambda: workloads.diamond(8, 8, 8),
    "matmul, constant": lambda: constant_weights(workloads.matmul(13, 17, 11), "B"),
    "matmul of one row, constant": lambda: constant_weights(workloads.matmul(1, 19, 23), "B"),
    "matmul bias relu, constant": lambda: constant_weights(workloads.matmul_bias_relu(14, 18, 9), "B", "bias"),
    "matmul, all constant": lambda: constant_weights(workloads.matmul(6, 17, 11), "A", "B"),
    "convolution, constant": lambda: constant_weights(workloads.conv2d_bias_relu(1, 4, 7, 9, 6, 3, 1, 1, 1, 1), "W", "bias"),
    "transposed convolution, constant": lambda: constant_weights(workloads.conv2d_transposed(1, 2, 4, 3, 2, 3, 2, 1), "W"),
    "derived weights": lambda: derived_weights(7, 19, 8),
}

#: Sums that on GPUs are worth more blocks than their outputs, and a second launch.
LONG: Final[Mapping[str, Callable[[], list[te.Tensor]]]] = {
    "product": lambda: workloads.matmul_bias_relu(5, 6, 131),
    "row by matrix": lambda: workloads.matmul(1, 9, 256),
    "sum of all": lambda: workloads.sum_of_squares(4099),
    "sums of columns": lambda: workloads.sum_of_columns(2048, 2),
}

named = pytest.mark.parametrize("name", NAMED)
targets = st.sampled_from((WIDE, NARROW))
seeds = st.integers(0, 1 << 30)


class Drawn:
    """A random computation, printed as a person would write it."""

    def __init__(self, dag: ComputeDAG) -> None:
        self.dag = dag

    def __repr__(self) -> str:
        return f"<<\n{text(self.dag)}\n>>"


@st.composite
def _computations(draw: st.DrawFn) -> Drawn:
    return Drawn(draw(dags()))


computations = _computations()


def times(count: int) -> int:
    """``count`` of something random, times what ``ANSORLITE_FUZZ`` says."""
    return max(1, round(count * _FUZZ))


def budget(examples: int) -> settings:
    """So many random examples, the same ones every time."""
    return settings(
        max_examples=times(examples),
        derandomize=True,
        database=None,
        deadline=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )


@cache
def named_dag(name: str) -> ComputeDAG:
    return ComputeDAG.of(NAMED[name]())


def sketches_of(dag: ComputeDAG, target: Target, rng: np.random.Generator) -> list[Sketch]:
    """The sketches of a computation; some of them where there are many."""
    found = derive(Task(dag, target))
    assert found
    some = rng.permutation(len(found))[: times(MOST_SKETCHES)]
    return [found[i] for i in sorted(some)]


def extremes(sketch: Sketch) -> Rows:
    """The first and the last value of every hole, and of every other hole."""
    last = TileSpace(sketch).sizes - 1
    odd = np.arange(len(last)) % 2
    return np.stack([last * 0, last, last * odd, last * (1 - odd)])


def some_rows(sketch: Sketch, count: int, rng: np.random.Generator) -> Rows:
    """Extremes, and ``count`` random rows."""
    return np.concatenate([extremes(sketch), TileSpace(sketch).sample(count, rng)])


@contextmanager
def reproducer(dag: ComputeDAG, sketch: Sketch, *rows: NDArray[np.int64]) -> Iterator[None]:
    """Adds to an error what it takes to see it again: the computation, the sketch, and the rows."""
    try:
        yield
    except Exception as error:
        task = f"Task(load(json.loads({json.dumps(dump(dag))!r})), {sketch.target!r})"
        lowered = "\n".join(f"print(text(sketch.lower({tuple(int(v) for v in row)})))" for row in rows)
        error.add_note(
            f"The computation:\n{text(dag)}\n\nThe sketch:\n{sketch.text}\n\nTo see it again:\n"
            "import json\nfrom ansorlite.loops.printer import text\nfrom ansorlite.spaces.derivation import derive\n"
            "from ansorlite.target import Target\nfrom ansorlite.task import Task\nfrom ansorlite.te.serialize import load\n"
            f'sketch = next(s for s in derive({task}) if s.signature == "{sketch.signature}")\n{lowered}'
        )
        raise
