"""Sums of products that matrix units take: products of matrices and convolutions of narrow numbers, with what may follow them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from ansorlite import te
from ansorlite.machine.matrix import AMPERE, HOPPER
from ansorlite.target import Target, resolve
from ansorlite.te.dag import ComputeDAG

_EMULATED: Final = resolve("emulated")
assert _EMULATED.gpu is not None
#: A small GPU that has matrix units.
SMALL: Final[Target] = replace(_EMULATED, gpu=replace(_EMULATED.gpu, matrix=AMPERE))


#: One with those of warpgroups alone.
WIDE: Final[Target] = replace(
    _EMULATED,
    gpu=replace(_EMULATED.gpu, block_threads=256, block_shared=48 << 10, threads=512, shared=96 << 10, matrix=HOPPER[:3]),
)


def sums_of(dtype: str) -> str:
    """The dtype that products are added up in."""
    return "int32" if dtype == "int8" else "float32"


def product(
    m: int, n: int, k: int, dtype: str, *, transposed: str = "", batch: int = 0, end: bool = True
) -> ComputeDAG:  # fmt: skip
    """``max(A @ B + bias, 0)``.

    Args:
        transposed: which of ``"AB"`` are.
        batch: how many products; 0 for one without a dimension of its own.
        end: whether anything follows the product.
    """
    sums = sums_of(dtype)
    lead = (batch,) if batch else ()
    a = te.placeholder((*lead, *((k, m) if "A" in transposed else (m, k))), dtype=dtype, name="A")
    b = te.placeholder((*lead, *((n, k) if "B" in transposed else (k, n))), dtype=dtype, name="B")
    r = te.reduce_axis(k, name="r")

    def element(*at: te.Expr) -> te.Expr:
        *z, i, j = at
        left = a[(*z, r, i)] if "A" in transposed else a[(*z, i, r)]
        right = b[(*z, j, r)] if "B" in transposed else b[(*z, r, j)]
        return te.sum(te.cast(left, sums) * te.cast(right, sums), axis=r)

    c = te.compute((*lead, m, n), element, name="C")
    if not end:
        return ComputeDAG.of([a, b, c])
    bias = te.placeholder((n,), dtype=sums, name="bias")
    d = te.compute(c.shape, lambda *at: te.maximum(c[at] + bias[at[-1]], 0), name="D")
    return ComputeDAG.of([a, b, bias, d])


def convolution(n: int, c: int, size: int, f: int, window: int, dtype: str, *, last: bool, stride: int = 1) -> ComputeDAG:
    """A convolution and a ReLU, rounded to the dtype of the data where that is a float; ``last``: channels are."""
    sums, out = sums_of(dtype), (size - window) // stride + 1
    x = te.placeholder((n, size, size, c) if last else (n, c, size, size), dtype=dtype, name="X")
    w = te.placeholder((f, window, window, c) if last else (f, c, window, window), dtype=dtype, name="W")
    ry, rx, rc = (te.reduce_axis(extent, name=name) for extent, name in ((window, "ry"), (window, "rx"), (c, "rc")))

    def element(b: te.Expr, g: te.Expr, y: te.Expr, z: te.Expr) -> te.Expr:
        down, across = y * stride + ry, z * stride + rx
        data = x[b, down, across, rc] if last else x[b, rc, down, across]
        weight = w[g, ry, rx, rc] if last else w[g, rc, ry, rx]
        axes = (ry, rx, rc) if last else (rc, ry, rx)
        return te.sum(te.cast(data, sums) * te.cast(weight, sums), axis=axes)

    if last:
        conv = te.compute((n, out, out, f), lambda b, y, z, g: element(b, g, y, z), name="conv")
    else:
        conv = te.compute((n, f, out, out), element, name="conv")
    end = dtype if dtype != "int8" else sums
    relu = te.compute(conv.shape, lambda *at: te.cast(te.maximum(conv[at], 0), end), name="relu")
    return ComputeDAG.of([x, w, relu])


def attention_scores(heads: int, m: int, n: int, d: int) -> ComputeDAG:
    """Scores of queries and keys, scaled: a batch that is no first dimension of the data."""
    q = te.placeholder((m, heads, d), dtype="float16", name="Q")
    k = te.placeholder((n, heads, d), dtype="float16", name="K")
    r = te.reduce_axis(d, name="r")
    s = te.compute(
        (heads, m, n),
        lambda h, i, j: te.sum(te.cast(q[i, h, r], "float32") * te.cast(k[j, h, r], "float32"), axis=r),
        name="S",
    )
    return ComputeDAG.of([q, k, te.compute(s.shape, lambda h, i, j: te.cast(s[h, i, j] * 0.125, "float16"), name="scaled")])


#: What units take, small: extents that they divide, and that they do not; data that lies along the sum, and across it.
PRODUCTS: Final[Mapping[str, Callable[[], ComputeDAG]]] = {
    "float16": lambda: product(40, 24, 32, "float16"),
    "float16, uneven": lambda: product(37, 19, 21, "float16"),
    "float16, both transposed": lambda: product(48, 40, 32, "float16", transposed="AB"),
    "float16, nothing follows": lambda: product(16, 16, 48, "float16", end=False),
    "float16, a batch": lambda: product(32, 16, 16, "float16", batch=3),
    "bfloat16": lambda: product(33, 16, 48, "bfloat16", transposed="B"),
    "int8": lambda: product(40, 24, 64, "int8"),
    "int8, uneven": lambda: product(17, 9, 50, "int8", transposed="B"),
    "convolution, channels last": lambda: convolution(2, 5, 7, 16, 3, "float16", last=True),
    "convolution, channels first": lambda: convolution(2, 8, 6, 20, 3, "float16", last=False),
    "convolution, strided, int8": lambda: convolution(1, 16, 9, 24, 3, "int8", last=True, stride=2),
    "attention": lambda: attention_scores(2, 20, 16, 24),
}
