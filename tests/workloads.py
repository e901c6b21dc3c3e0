"""Named computations, written in ``te`` as a user would: each returns its argument tensors, inputs then outputs."""

from __future__ import annotations

from ansorlite import te
from ansorlite.topi.quantized import integer_conv

Tensors = list[te.Tensor]


def matmul(m: int = 512, n: int = 512, k: int = 512, dtype: str = "float32") -> Tensors:
    a = te.placeholder((m, k), dtype, name="A")
    b = te.placeholder((k, n), dtype, name="B")
    r = te.reduce_axis(k, name="k")
    c = te.compute((m, n), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")
    return [a, b, c]


def matmul_relu(m: int = 512, n: int = 512, k: int = 512) -> Tensors:
    a, b, c = matmul(m, n, k)
    return [a, b, te.compute((m, n), lambda i, j: te.maximum(c[i, j], 0.0), name="D")]


def matmul_bias_relu(m: int = 512, n: int = 512, k: int = 512) -> Tensors:
    a, b, c = matmul(m, n, k)
    bias = te.placeholder((n,), name="bias")
    d = te.compute((m, n), lambda i, j: c[i, j] + bias[j], name="D")
    return [a, b, bias, te.compute((m, n), lambda i, j: te.maximum(d[i, j], 0.0), name="E")]


def batch_matmul(batch: int = 12, m: int = 128, n: int = 128, k: int = 64) -> Tensors:
    a = te.placeholder((batch, m, k), name="A")
    b = te.placeholder((batch, k, n), name="B")
    r = te.reduce_axis(k, name="k")
    c = te.compute((batch, m, n), lambda z, i, j: te.sum(a[z, i, r] * b[z, r, j], axis=r), name="C")
    return [a, b, c]


def int8_matmul(m: int = 128, n: int = 128, k: int = 128) -> Tensors:
    """uint8 by int8 into int32, as quantised models have it."""
    a = te.placeholder((m, k), "uint8", name="A")
    b = te.placeholder((k, n), "int8", name="B")
    r = te.reduce_axis(k, name="k")
    c = te.compute((m, n), lambda i, j: te.sum(te.cast(a[i, r], "int32") * te.cast(b[r, j], "int32"), axis=r), name="C")
    return [a, b, c]


def widened_matmul(m: int = 128, n: int = 128, k: int = 128, dtype: str = "bfloat16", *, turned: bool = False) -> Tensors:
    """Products of narrow floats, added up in float32; of a matrix whose columns are the rows, if that is ``turned``."""
    a, b = te.placeholder((k, m) if turned else (m, k), dtype, name="A"), te.placeholder((k, n), dtype, name="B")
    r = te.reduce_axis(k, name="k")

    def product(i: te.Expr, j: te.Expr) -> te.Expr:
        return te.cast(a[(r, i) if turned else (i, r)], "float32") * te.cast(b[r, j], "float32")

    return [a, b, te.compute((m, n), lambda i, j: te.sum(product(i, j), axis=r), name="C")]


def widened_conv2d(ci: int = 6, h: int = 4, w: int = 5, co: int = 4, block: int = 0, stride: int = 1, pad: int = 1) -> Tensors:
    """bfloat16 NCHW input, OIHW weights, into float32; with ``block``, in blocks of so many channels side by side."""
    shape = (1, ci, h, w) if not block else (1, ci // block, h, w, block)
    x, weight = te.placeholder(shape, "bfloat16", name="X"), te.placeholder((co, ci, 3, 3), "bfloat16", name="W")
    zero = te.cast(0.0, "bfloat16")

    def padded_element(b: te.Expr, c: te.Expr, y: te.Expr, z: te.Expr, *inner: te.Expr) -> te.Expr:
        inside = te.all(y >= pad, y < h + pad, z >= pad, z < w + pad)
        return te.if_then_else(inside, x[(b, c, y - pad, z - pad, *inner)], zero)

    padded = te.compute((*shape[:2], h + 2 * pad, w + 2 * pad, *shape[4:]), padded_element, name="padded")
    oh, ow = (h + 2 * pad - 3) // stride + 1, (w + 2 * pad - 3) // stride + 1
    extents = ((ci, "rc"), (3, "ry"), (3, "rx")) if not block else ((ci // block, "ro"), (block, "rc"), (3, "ry"), (3, "rx"))
    axes = [te.reduce_axis(extent, name=name) for extent, name in extents]
    *channel, ry, rx = axes

    def element(b: te.Expr, o: te.Expr, y: te.Expr, z: te.Expr) -> te.Expr:
        value = padded[(b, channel[0], y * stride + ry, z * stride + rx, *channel[1:])]
        one = channel[0] if not block else channel[0] * block + channel[1]
        return te.sum(te.cast(value, "float32") * te.cast(weight[o, one, ry, rx], "float32"), axis=axes)

    return [x, weight, te.compute((1, co, oh, ow), element, name="conv")]


def pad_nchw(x: te.Tensor, pad: int) -> te.Tensor:
    """``x`` with ``pad`` zeros around its last two dimensions; ``x`` itself for none."""
    if pad == 0:
        return x
    n, c, h, w = x.shape
    return te.compute(
        (n, c, h + 2 * pad, w + 2 * pad),
        lambda b, ch, y, z: te.if_then_else(
            te.all(y >= pad, y < h + pad, z >= pad, z < w + pad), x[b, ch, y - pad, z - pad], 0.0
        ),
        name="padded",
    )


def conv2d(
    n: int = 1,
    ci: int = 64,
    h: int = 56,
    w: int = 56,
    co: int = 64,
    kernel: int = 3,
    stride: int = 1,
    pad: int = 1,
    dilation: int = 1,
    groups: int = 1,
) -> Tensors:
    """NCHW input, OIHW weights."""
    x = te.placeholder((n, ci, h, w), name="X")
    weight = te.placeholder((co, ci // groups, kernel, kernel), name="W")
    padded = pad_nchw(x, pad)
    reach = dilation * (kernel - 1) + 1
    oh, ow = (h + 2 * pad - reach) // stride + 1, (w + 2 * pad - reach) // stride + 1
    rc, ry, rx = te.reduce_axis(ci // groups, name="rc"), te.reduce_axis(kernel, name="ry"), te.reduce_axis(kernel, name="rx")

    def element(b: te.Expr, o: te.Expr, y: te.Expr, z: te.Expr) -> te.Expr:
        channel = rc if groups == 1 else o // (co // groups) * (ci // groups) + rc
        read = padded[b, channel, y * stride + ry * dilation, z * stride + rx * dilation]
        return te.sum(read * weight[o, rc, ry, rx], axis=(rc, ry, rx))

    return [x, weight, te.compute((n, co, oh, ow), element, name="conv")]


def conv2d_bias_relu(
    n: int = 1,
    ci: int = 64,
    h: int = 56,
    w: int = 56,
    co: int = 64,
    kernel: int = 3,
    stride: int = 1,
    pad: int = 1,
    dilation: int = 1,
    groups: int = 1,
) -> Tensors:
    x, weight, conv = conv2d(n, ci, h, w, co, kernel, stride, pad, dilation, groups)
    bias = te.placeholder((co,), name="bias")
    out = te.compute(conv.shape, lambda b, o, y, z: te.maximum(conv[b, o, y, z] + bias[o], 0.0), name="out")
    return [x, weight, bias, out]


def depthwise(n: int = 1, c: int = 32, h: int = 56, w: int = 56, kernel: int = 3, stride: int = 1, pad: int = 1) -> Tensors:
    x = te.placeholder((n, c, h, w), name="X")
    weight = te.placeholder((c, kernel, kernel), name="W")
    padded = pad_nchw(x, pad)
    oh, ow = (h + 2 * pad - kernel) // stride + 1, (w + 2 * pad - kernel) // stride + 1
    ry, rx = te.reduce_axis(kernel, name="ry"), te.reduce_axis(kernel, name="rx")
    out = te.compute(
        (n, c, oh, ow),
        lambda b, ch, y, z: te.sum(padded[b, ch, y * stride + ry, z * stride + rx] * weight[ch, ry, rx], axis=(ry, rx)),
        name="depthwise",
    )
    return [x, weight, out]


def conv2d_transposed(
    n: int = 1, ci: int = 64, h: int = 14, w: int = 14, co: int = 32, kernel: int = 4, stride: int = 2, pad: int = 1
) -> Tensors:
    """NCHW input, IOHW weights: the gradient of a convolution, gathered over a dilated and padded input."""
    x = te.placeholder((n, ci, h, w), name="X")
    weight = te.placeholder((ci, co, kernel, kernel), name="W")
    edge = kernel - 1 - pad
    high, wide = (h - 1) * stride + 1, (w - 1) * stride + 1
    dilated = te.compute(
        (n, ci, high + 2 * edge, wide + 2 * edge),
        lambda b, c, y, z: te.if_then_else(
            te.all(
                y >= edge,
                y < high + edge,
                z >= edge,
                z < wide + edge,
                (y - edge) % stride == 0,
                (z - edge) % stride == 0,
            ),
            x[b, c, (y - edge) // stride, (z - edge) // stride],
            0.0,
        ),
        name="dilated",
    )
    rc, ry, rx = te.reduce_axis(ci, name="rc"), te.reduce_axis(kernel, name="ry"), te.reduce_axis(kernel, name="rx")
    out = te.compute(
        (n, co, dilated.shape[2] - kernel + 1, dilated.shape[3] - kernel + 1),
        lambda b, o, y, z: te.sum(
            dilated[b, rc, y + ry, z + rx] * weight[rc, o, kernel - 1 - ry, kernel - 1 - rx], axis=(rc, ry, rx)
        ),
        name="transposed",
    )
    return [x, weight, out]


def max_pool(n: int = 1, c: int = 64, h: int = 112, w: int = 112, kernel: int = 3, stride: int = 2, pad: int = 1) -> Tensors:
    x = te.placeholder((n, c, h, w), name="X")
    ry, rx = te.reduce_axis(kernel, name="ry"), te.reduce_axis(kernel, name="rx")
    oh, ow = (h + 2 * pad - kernel) // stride + 1, (w + 2 * pad - kernel) // stride + 1

    def element(b: te.Expr, ch: te.Expr, y: te.Expr, z: te.Expr) -> te.Expr:
        row, column = y * stride + ry - pad, z * stride + rx - pad
        inside = te.all(row >= 0, row < h, column >= 0, column < w)
        return te.max(te.if_then_else(inside, x[b, ch, row, column], float("-inf")), axis=(ry, rx))

    return [x, te.compute((n, c, oh, ow), element, name="pool")]


def softmax(m: int = 1024, n: int = 1024) -> Tensors:
    x = te.placeholder((m, n), name="X")
    r, s = te.reduce_axis(n, name="r"), te.reduce_axis(n, name="s")
    largest = te.compute((m,), lambda i: te.max(x[i, r], axis=r), name="largest")
    exp = te.compute((m, n), lambda i, j: te.exp(x[i, j] - largest[i]), name="exp")
    total = te.compute((m,), lambda i: te.sum(exp[i, s], axis=s), name="total")
    return [x, te.compute((m, n), lambda i, j: exp[i, j] / total[i], name="softmax")]


def layer_norm(m: int = 512, n: int = 768, epsilon: float = 1e-5) -> Tensors:
    x = te.placeholder((m, n), name="X")
    gamma = te.placeholder((n,), name="gamma")
    beta = te.placeholder((n,), name="beta")
    r, s = te.reduce_axis(n, name="r"), te.reduce_axis(n, name="s")
    total = te.compute((m,), lambda i: te.sum(x[i, r], axis=r), name="total")
    centred = te.compute((m, n), lambda i, j: x[i, j] - total[i] / n, name="centred")
    squares = te.compute((m,), lambda i: te.sum(centred[i, s] * centred[i, s], axis=s), name="squares")
    out = te.compute((m, n), lambda i, j: centred[i, j] * te.rsqrt(squares[i] / n + epsilon) * gamma[j] + beta[j], name="norm")
    return [x, gamma, beta, out]


def sum_of_squares(n: int = 1 << 20) -> Tensors:
    x = te.placeholder((n,), name="X")
    r = te.reduce_axis(n, name="r")
    return [x, te.compute((1,), lambda _: te.sum(x[r] * x[r], axis=r), name="squares")]


def sum_of_columns(m: int = 2048, n: int = 2048) -> Tensors:
    x = te.placeholder((m, n), name="X")
    r = te.reduce_axis(m, name="r")
    return [x, te.compute((n,), lambda j: te.sum(x[r, j], axis=r), name="total")]


def transpose_add(m: int = 512, n: int = 512) -> Tensors:
    a = te.placeholder((m, n), name="A")
    b = te.placeholder((n, m), name="B")
    return [a, b, te.compute((m, n), lambda i, j: a[i, j] + b[j, i], name="C")]


def two_outputs(m: int = 256, n: int = 256, k: int = 256) -> Tensors:
    """A matmul and its activation are both outputs; the second reads the first."""
    a, b, c = matmul(m, n, k)
    return [a, b, c, te.compute((m, n), lambda i, j: te.tanh(c[i, j]), name="D")]


def diamond(m: int = 256, n: int = 256, k: int = 256) -> Tensors:
    """One reduction read by two element-wise computes that meet again."""
    a, b, c = matmul(m, n, k)
    left = te.compute((m, n), lambda i, j: te.exp(c[i, j] * 0.125), name="left")
    right = te.compute((m, n), lambda i, j: te.abs(c[i, j]) + 1.0, name="right")
    return [a, b, te.compute((m, n), lambda i, j: left[i, j] / right[i, j], name="D")]


def quantised_matmul(
    m: int = 128,
    n: int = 128,
    k: int = 128,
    dtypes: tuple[str, str] = ("uint8", "int8"),
    zeros: tuple[int, int] = (0, 0),
    most: int | None = None,
) -> Tensors:
    """Small integers into int32, less their zero points; the second ones limited to ``most`` in magnitude."""
    a, b = te.placeholder((m, k), dtypes[0], name="A"), te.placeholder((k, n), dtypes[1], name="B")
    r = te.reduce_axis(k, name="k")

    def shifted(x: te.Expr, zero: int) -> te.Expr:
        return te.cast(x, "int32") - zero if zero else te.cast(x, "int32")

    def limited(x: te.Expr) -> te.Expr:
        return x if most is None else te.maximum(te.minimum(x, most), -most)

    c = te.compute(
        (m, n), lambda i, j: te.sum(shifted(a[i, r], zeros[0]) * limited(shifted(b[r, j], zeros[1])), axis=r), name="C"
    )
    return [a, b, c]


def quantised_matmul_by_columns() -> Tensors:
    """A zero point for each row and column, one more that is the same for all, and a reduction of an odd length."""
    a, b = te.placeholder((6, 7), "uint8", name="A"), te.placeholder((7, 9), "int8", name="B")
    rows, columns = te.placeholder((6,), "uint8", name="rows"), te.placeholder((9,), "int8", name="columns")
    one = te.placeholder((), "int8", name="one")
    k = te.reduce_axis(7, name="k")

    def element(i: te.Expr, j: te.Expr) -> te.Expr:
        left = te.cast(a[i, k], "int32") - te.cast(rows[i], "int32") - te.cast(one[()], "int32")
        return te.sum(left * (te.cast(b[k, j], "int32") - te.cast(columns[j], "int32")), axis=k)

    return [a, b, rows, columns, one, te.compute((6, 9), element, name="C")]


def quantised_conv2d(
    ci: int = 64, h: int = 56, w: int = 56, co: int = 64, kernel: int = 3, stride: int = 1, pad: int = 1, zero: int = 0
) -> Tensors:
    """uint8 NCHW input, int8 OIHW weights, into int32; the input is padded with its zero point."""
    x, weight = te.placeholder((1, ci, h, w), "uint8", name="X"), te.placeholder((co, ci, kernel, kernel), "int8", name="W")
    padded = te.compute(
        (1, ci, h + 2 * pad, w + 2 * pad),
        lambda b, c, y, z: te.if_then_else(
            te.all(y >= pad, y < h + pad, z >= pad, z < w + pad), x[b, c, y - pad, z - pad], te.cast(zero, "uint8")
        ),
        name="padded",
    )
    oh, ow = (h + 2 * pad - kernel) // stride + 1, (w + 2 * pad - kernel) // stride + 1
    rc, ry, rx = te.reduce_axis(ci, name="rc"), te.reduce_axis(kernel, name="ry"), te.reduce_axis(kernel, name="rx")

    def element(b: te.Expr, o: te.Expr, y: te.Expr, z: te.Expr) -> te.Expr:
        value = te.cast(padded[b, rc, y * stride + ry, z * stride + rx], "int32")
        return te.sum((value - zero if zero else value) * te.cast(weight[o, rc, ry, rx], "int32"), axis=(rc, ry, rx))

    return [x, weight, te.compute((1, co, oh, ow), element, name="conv")]


def quantised_conv2d_in_blocks(border: int = 1, block: int = 8) -> Tensors:
    """Blocks of channels side by side, uint8, by int8 weights; the border is the zero point."""
    x, weight = te.placeholder((1, 2, 4, 5, block), "uint8", name="X"), te.placeholder((8, 2 * block, 3, 3), "int8", name="W")
    pads = (border, border)
    return [x, weight, integer_conv(x, weight, zero=7, apart=True, block=4, before=pads, after=pads)]


def quantised_conv2d_apart() -> Tensors:
    """uint8 by int8, less the zero point times the weights' sums: two reductions, of which what comes last reads both."""
    x, weight = te.placeholder((1, 16, 4, 5), "uint8", name="X"), te.placeholder((8, 16, 3, 3), "int8", name="W")
    return [x, weight, integer_conv(x, weight, zero=7, apart=True, before=(1, 1), after=(1, 1))]
