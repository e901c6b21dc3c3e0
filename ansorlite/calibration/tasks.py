"""Small computations of all kinds that models are made of: products, windows, sums, exponentials, copies."""

from __future__ import annotations

from ansorlite import te

Tensors = list[te.Tensor]


def small_computations() -> list[Tensors]:
    """Each takes between 20 microseconds and a millisecond on a core of today."""
    return [
        _product(192, 192, 192), _product(64, 512, 384), _product(1, 1000, 768), _product(331, 97, 131), _batched(6, 96, 64, 96),
        _window(32, 28, 28, 32, 3), _window(64, 14, 14, 128, 1), _depthwise(48, 28, 28), _softmax(256, 128), _softmax(64, 1009),
        _normalised(96, 512), _sum_of_rows(256, 1024), _transposed(512, 384), _gelu(128, 1024),
    ]  # fmt: skip


def _product(m: int, n: int, k: int) -> Tensors:
    a, b = te.placeholder((m, k), name="A"), te.placeholder((k, n), name="B")
    r = te.reduce_axis(k, name="k")
    c = te.compute((m, n), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")
    return [a, b, te.compute((m, n), lambda i, j: te.maximum(c[i, j], 0.0), name="D")]


def _batched(batch: int, m: int, k: int, n: int) -> Tensors:
    a, b = te.placeholder((batch, m, k), name="A"), te.placeholder((batch, n, k), name="B")
    r = te.reduce_axis(k, name="k")
    return [a, b, te.compute((batch, m, n), lambda z, i, j: te.sum(a[z, i, r] * b[z, j, r], axis=r), name="C")]


def _window(channels: int, height: int, width: int, outputs: int, size: int) -> Tensors:
    x, w = te.placeholder((channels, height, width), name="X"), te.placeholder((outputs, channels, size, size), name="W")
    c, y, z = te.reduce_axis(channels, name="c"), te.reduce_axis(size, name="y"), te.reduce_axis(size, name="z")
    shape = (outputs, height - size + 1, width - size + 1)
    return [x, w, te.compute(shape, lambda o, i, j: te.sum(x[c, i + y, j + z] * w[o, c, y, z], axis=(c, y, z)), name="Y")]


def _depthwise(channels: int, height: int, width: int) -> Tensors:
    x, w = te.placeholder((channels, height, width), name="X"), te.placeholder((channels, 3, 3), name="W")
    y, z = te.reduce_axis(3, name="y"), te.reduce_axis(3, name="z")
    shape = (channels, height - 2, width - 2)
    return [x, w, te.compute(shape, lambda c, i, j: te.sum(x[c, i + y, j + z] * w[c, y, z], axis=(y, z)), name="Y")]


def _softmax(rows: int, columns: int) -> Tensors:
    x = te.placeholder((rows, columns), name="X")
    s, t = te.reduce_axis(columns, name="s"), te.reduce_axis(columns, name="t")
    largest = te.compute((rows,), lambda i: te.max(x[i, s], axis=s), name="largest")
    exponential = te.compute((rows, columns), lambda i, j: te.exp(x[i, j] - largest[i]), name="exponential")
    total = te.compute((rows,), lambda i: te.sum(exponential[i, t], axis=t), name="total")
    return [x, te.compute((rows, columns), lambda i, j: exponential[i, j] / total[i], name="Y")]


def _normalised(rows: int, columns: int) -> Tensors:
    x = te.placeholder((rows, columns), name="X")
    s, t = te.reduce_axis(columns, name="s"), te.reduce_axis(columns, name="t")
    total = te.compute((rows,), lambda i: te.sum(x[i, s], axis=s), name="total")
    mean = te.compute((rows,), lambda i: total[i] * (1.0 / columns), name="mean")
    square = te.compute((rows,), lambda i: te.sum((x[i, t] - mean[i]) * (x[i, t] - mean[i]), axis=t), name="square")
    return [x, te.compute((rows, columns), lambda i, j: (x[i, j] - mean[i]) * te.rsqrt(square[i] + 1e-5), name="Y")]


def _sum_of_rows(rows: int, columns: int) -> Tensors:
    x, s = te.placeholder((rows, columns), name="X"), te.reduce_axis(columns, name="s")
    return [x, te.compute((rows,), lambda i: te.sum(x[i, s], axis=s), name="Y")]


def _transposed(rows: int, columns: int) -> Tensors:
    x, y = te.placeholder((rows, columns), name="X"), te.placeholder((columns, rows), name="Y")
    return [x, y, te.compute((rows, columns), lambda i, j: x[i, j] + y[j, i], name="Z")]


def _gelu(rows: int, columns: int) -> Tensors:
    x, b = te.placeholder((rows, columns), name="X"), te.placeholder((columns,), name="b")
    y = te.compute((rows, columns), lambda i, j: x[i, j] + b[j], name="Y")
    return [x, b, te.compute((rows, columns), lambda i, j: 0.5 * y[i, j] * (1.0 + te.erf(y[i, j] * 0.70710678)), name="Z")]
