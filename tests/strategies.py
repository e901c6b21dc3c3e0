"""Hypothesis strategies: small random computations for property tests, inputs for them, and how close is close enough.

Every computation has fewer than ``MOST_POINTS`` points in all, so that an interpreter written in Python can run it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

from ansorlite import te
from ansorlite.te import dtypes
from ansorlite.te.dag import ComputeDAG
from ansorlite.te.rewriting import with_constants
from tests import workloads

Array = np.ndarray[Any, Any]
Draw = Callable[[st.SearchStrategy[Any]], Any]

MOST_POINTS = 20_000

#: Extents that trip schedulers up: one, primes, powers of two, and what lies around them.
EXTENTS = (1, 2, 3, 4, 5, 7, 8, 11, 12, 13, 16, 17)
extents = st.sampled_from(EXTENTS)

# All continuous: a rounding error must stay one.
_ELEMENTWISE: tuple[Callable[[te.Expr], te.Expr], ...] = (
    lambda x: te.maximum(x, 0.0),
    lambda x: x * 0.5 + 1.0,
    lambda x: te.abs(x) - 2.0,
    lambda x: te.tanh(x),
    lambda x: te.sigmoid(x),
    lambda x: te.exp(te.minimum(x, 2.0)),
    lambda x: te.sqrt(te.abs(x) + 1.0),
    lambda x: te.if_then_else(x > 0.0, x, 0.1 * x),
    lambda x: x / (te.abs(x) + 1.0),
    lambda x: te.minimum(te.maximum(x, -1.0), 1.0),
)
elementwise = st.sampled_from(_ELEMENTWISE)


def points(dag: ComputeDAG) -> int:
    """How many times a body is executed, in all."""
    return sum(t.iterations for t in dag.computes)


@st.composite
def chains(draw: Draw, tensor: te.Tensor, longest: int = 2) -> te.Tensor:
    """``tensor`` followed by up to ``longest`` element-wise computes, some of which broadcast."""
    for number in range(draw(st.integers(0, longest))):
        function, source = draw(elementwise), tensor
        tensor = te.compute(source.shape, lambda *i, f=function, s=source: f(s[i]), name=f"E{number}")
    return tensor


@st.composite
def matmuls(draw: Draw) -> ComputeDAG:
    """A product of two matrices, float32, float64 or quantised, with what may follow it."""
    m, n, k = draw(extents), draw(extents), draw(extents)
    kind = draw(st.sampled_from(("float32", "float64", "bias", "quantised", "batch", "transposed")))
    if kind == "quantised":
        return ComputeDAG.of(workloads.int8_matmul(m, n, k))
    if kind == "bias":
        return ComputeDAG.of(workloads.matmul_bias_relu(m, n, k))
    if kind == "batch":
        return ComputeDAG.of(workloads.batch_matmul(draw(st.integers(1, 3)), m, n, k))
    if kind == "transposed":
        a, b = te.placeholder((k, m), name="A"), te.placeholder((n, k), name="B")
        r = te.reduce_axis(k, name="r")
        c = te.compute((m, n), lambda i, j: te.sum(a[r, i] * b[j, r], axis=r), name="C")
    else:
        a, b, c = workloads.matmul(m, n, k, kind)
    return ComputeDAG.of([a, b, draw(chains(c))])


@st.composite
def convolutions(draw: Draw) -> ComputeDAG:
    """Convolutions with any padding, stride, dilation and groups; depthwise and transposed ones; pooling."""
    kernel, stride, pad = draw(st.integers(1, 3)), draw(st.integers(1, 3)), draw(st.integers(0, 2))
    dilation, groups = draw(st.integers(1, 2)), draw(st.integers(1, 3))
    per_group, out_per_group = draw(st.integers(1, 3)), draw(st.integers(1, 4))
    h, w = draw(st.integers(1, 9)), draw(st.integers(1, 9))
    kind = draw(st.sampled_from(("direct", "fused", "depthwise", "transposed", "pool", "strided")))
    if kind == "transposed":
        pad = min(pad, kernel - 1)
        assume(all((extent - 1) * stride + kernel - 2 * pad >= 1 for extent in (h, w)))
        return ComputeDAG.of(workloads.conv2d_transposed(1, per_group, h, w, out_per_group, kernel, stride, pad))
    if kind == "depthwise":
        assume(min(h, w) + 2 * pad >= kernel)
        return ComputeDAG.of(workloads.depthwise(1, per_group, h, w, kernel, stride, pad))
    if kind == "strided":
        return _strided(h, w)
    if kind == "pool":
        assume(min(h, w) + 2 * pad >= kernel > pad)
        return ComputeDAG.of(workloads.max_pool(1, per_group, h, w, kernel, stride, pad))
    assume(min(h, w) + 2 * pad >= dilation * (kernel - 1) + 1)
    make = workloads.conv2d_bias_relu if kind == "fused" else workloads.conv2d
    return ComputeDAG.of(make(1, per_group * groups, h, w, out_per_group * groups, kernel, stride, pad, dilation, groups))


def _strided(h: int, w: int) -> ComputeDAG:
    """A reduction over windows of one dimension that keeps every other element of the other."""
    x = te.placeholder((2 * h, w + 2), name="X")
    r = te.reduce_axis(3, name="r")
    return ComputeDAG.of([x, te.compute((h, w), lambda i, j: te.sum(x[i * 2, j + r], axis=r), name="Y")])


@st.composite
def reductions(draw: Draw) -> ComputeDAG:
    """Sum, max, min or prod over one or several axes, in any position, to any rank, of a value with something in it."""
    rank = draw(st.integers(1, 3))
    shape = [draw(extents) for _ in range(rank)]
    folded = draw(st.lists(st.booleans(), min_size=rank, max_size=rank).filter(any))
    dtype = draw(st.sampled_from(("float32", "float64", "int32")))
    fold = draw(st.sampled_from((te.sum, te.max, te.min, te.prod)))
    x = te.placeholder(shape, dtype, name="X")
    axes = [te.reduce_axis(extent, name=f"r{d}") for d, extent in enumerate(shape) if folded[d]]
    kept = [extent for d, extent in enumerate(shape) if not folded[d]]
    before = draw(elementwise) if dtype != "int32" and fold is not te.prod else lambda value: value

    def element(*space: te.Expr) -> te.Expr:
        own, reduce = iter(space), iter(axes)
        return fold(before(x[tuple(next(reduce) if f else next(own) for f in folded)]), axis=axes)

    y = te.compute(kept, element, name="Y")
    return ComputeDAG.of([x, y if dtype == "int32" else draw(chains(y))])


@st.composite
def pointwise(draw: Draw) -> ComputeDAG:
    """Chains and diamonds of element-wise computes with transposes, broadcasts, shifts, casts; one or more outputs."""
    m, n = draw(extents), draw(extents)
    dtype = draw(st.sampled_from(("float32", "float32", "float64")))
    a = te.placeholder((m, n), dtype, name="A")
    tensors: list[te.Tensor] = [draw(chains(a))]
    inputs = [a]
    for number in range(draw(st.integers(1, 3))):
        x, y = draw(st.sampled_from(tensors)), draw(st.sampled_from(tensors))
        kind = draw(st.sampled_from(("combine", "row", "transposed", "shifted", "reversed", "integer")))
        b = te.placeholder((n,) if kind == "row" else (n, m), dtype, name=f"B{number}")
        if kind in ("row", "transposed"):
            inputs.append(b)
        bodies: dict[str, Callable[[te.Expr, te.Expr], te.Expr]] = {
            "combine": lambda i, j, x=x, y=y: x[i, j] - y[i, j] * 0.5,
            "row": lambda i, j, x=x, b=b: x[i, j] + b[j],
            "transposed": lambda i, j, x=x, b=b: x[i, j] * b[j, i],
            "shifted": lambda i, j, x=x, y=y: te.if_then_else(j >= 1, x[i, j - 1], 0.0) + y[i, j],
            "reversed": lambda i, j, x=x: x[m - 1 - i, (j + 1) % n],
            # Of the input itself, which has no rounding error that the conversion could make a whole step.
            "integer": lambda i, j: te.cast(te.cast(a[i, j] * 8.0, "int32") // 3, dtype) + te.cast(i % 3, dtype),
        }
        tensors.append(te.compute((m, n), bodies[kind], name=f"T{number}"))
    outputs = [tensors[-1]]
    if draw(st.booleans()):
        outputs.extend(t for t in tensors[:-1] if t.body is not None and t not in outputs)
    return ComputeDAG.of([*inputs, *outputs])


@st.composite
def composites(draw: Draw) -> ComputeDAG:
    """Several reductions in one computation, and reductions that are read twice."""
    m, n, k = draw(extents), draw(extents), draw(extents)
    kind = draw(st.sampled_from(("softmax", "layer_norm", "two_outputs", "diamond", "two_matmuls", "sum_of_squares")))
    if kind == "sum_of_squares":
        return ComputeDAG.of(workloads.sum_of_squares(m * n * k))
    if kind == "softmax":
        return ComputeDAG.of(workloads.softmax(m, n))
    if kind == "layer_norm":
        return ComputeDAG.of(workloads.layer_norm(m, n))
    if kind == "two_outputs":
        return ComputeDAG.of(workloads.two_outputs(m, n, k))
    if kind == "diamond":
        return ComputeDAG.of(workloads.diamond(m, n, k))
    a, b, c = workloads.matmul(m, n, k)
    d = te.placeholder((n, 5), name="D")
    r = te.reduce_axis(n, name="r")
    return ComputeDAG.of([a, b, d, te.compute((m, 5), lambda i, j: te.sum(c[i, r] * d[r, j], axis=r), name="E")])


@st.composite
def _with_some_constant(draw: Draw, every: st.SearchStrategy[ComputeDAG]) -> ComputeDAG:
    dag = draw(every)
    return with_constants(dag, draw(st.lists(st.booleans(), min_size=len(dag.inputs), max_size=len(dag.inputs))))


def dags() -> st.SearchStrategy[ComputeDAG]:
    """Any small computation; of its inputs some, all or none are constant."""
    every = st.one_of(matmuls(), convolutions(), reductions(), pointwise(), composites())
    return _with_some_constant(every.filter(lambda dag: points(dag) < MOST_POINTS))


def arrays_for(dag: ComputeDAG, rng: np.random.Generator) -> list[Array]:
    """Inputs for which the computation is well-conditioned: floats of size about 1, small integers."""
    return [_array(t.shape, t.dtype, rng) for t in dag.inputs]


def _array(shape: Sequence[int], dtype: str, rng: np.random.Generator) -> Array:
    kind = dtypes.NUMPY[dtype]
    if dtypes.is_float(dtype):
        return np.asarray(rng.uniform(-1.5, 1.5, shape)).astype(kind)
    if dtype == "bool":
        return np.asarray(rng.integers(0, 2, shape)).astype(kind)
    low = -7 if dtypes.is_signed(dtype) else 0
    return np.asarray(rng.integers(low, 8, shape)).astype(kind)


#: Relative and absolute tolerance for values of about 1, after tens of operations in another order.
_TOLERANCE = {
    "float16": (1e-2, 1e-2),
    "bfloat16": (6e-2, 6e-2),
    "float32": (2e-4, 2e-5),
    "float64": (1e-10, 1e-11),
}


def _terms(dag: ComputeDAG) -> int:
    """The most values that one element of a reduction folds."""
    return max(math.prod(axis.extent for axis in tensor.reduce_axes) for tensor in dag.computes)


def assert_close(dag: ComputeDAG, got: Sequence[Array], want: Sequence[Array]) -> None:
    """Assert that outputs agree: exactly if integer, within rounding of their dtype if float; NaN equals NaN.

    The absolute tolerance grows with the longest reduction, as the partial sums of terms of either sign do.
    """
    assert len(got) == len(want) == len(dag.outputs)
    for tensor, ours, theirs in zip(dag.outputs, got, want, strict=True):
        assert ours.shape == theirs.shape == tensor.shape, tensor
        assert ours.dtype == theirs.dtype == dtypes.NUMPY[tensor.dtype], tensor
        if not dtypes.is_float(tensor.dtype):
            wrong = np.asarray(ours != theirs)
        else:
            relative, absolute = _TOLERANCE[tensor.dtype]
            absolute *= math.sqrt(_terms(dag))
            near = np.isclose(ours.astype(np.float64), theirs.astype(np.float64), relative, absolute, equal_nan=True)
            wrong = ~near
        if wrong.any():
            place = tuple(int(x) for x in np.argwhere(wrong)[0])
            raise AssertionError(
                f"{tensor.name} differs in {int(wrong.sum())} of {wrong.size} elements, first at {place}: "
                f"{ours[place]!r} instead of {theirs[place]!r}"
            )
