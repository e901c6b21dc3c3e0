"""Overlapping blocks of an image, added up to the image."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from ansorlite import te
from ansorlite.errors import ExpressionError
from ansorlite.te.expr import Expr
from ansorlite.te.tensor import Tensor
from ansorlite.topi.conv import axis_names
from ansorlite.topi.row_major import flat
from ansorlite.topi.wide import narrow, wide
from ansorlite.topi.windows import window


def col2im(
    x: Tensor,
    *,
    image: Sequence[int],
    block: Sequence[int],
    strides: Sequence[int] | None = None,
    before: Sequence[int] | None = None,
    after: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
) -> Tensor:
    """Blocks ``x (n, c * elements of a block, blocks)`` → ``(n, c, image...)``: an element is the sum of all that lie on it.

    The transpose of im2col, PyTorch's ``fold``: a transposed convolution with weights of one. An element of the image meets
    those of a block that are ``stride`` apart, and no others, so only those are added.

    Raises:
        ExpressionError: blocks that do not fit the image.
    """
    slide = window(block, strides=strides, before=before, after=after, dilations=dilations)
    counts = slide.outputs(image)
    if x.ndim != 3 or x.shape[1] % prod(slide.kernel) or x.shape[2] != prod(counts):
        made = f"{counts} blocks of {slide.kernel} are (n, c * {prod(slide.kernel)}, {prod(counts)})"
        raise ExpressionError(f"col2im of {x.shape} to {tuple(image)}: {made}")
    lengths = [-(-span // stride) for span, stride in zip(slide.span, slide.strides, strict=True)]
    steps = [te.reduce_axis(length, name=name) for length, name in zip(lengths, axis_names("r", len(lengths)), strict=True)]

    def element(n: Expr, c: Expr, *places: Expr) -> Expr:
        taps, blocks, inside = [], [], []
        dims = (places, steps, counts, slide.before, slide.strides, slide.span, slide.dilations)
        for place, step, count, border, stride, span, dilation in zip(*dims, strict=True):
            at = place + border
            tap, number = step * stride + at % stride, at // stride - step
            inside += [tap < span, tap % dilation == 0, number >= 0, number < count]
            taps.append(tap // dilation)
            blocks.append(number)
        value = x[(n, flat((c, *taps), (0, *slide.kernel)), flat(blocks, counts))]
        return te.sum(wide(te.if_then_else(te.all(*inside), value, te.cast(0, x.dtype))), axis=steps)

    shape = (x.shape[0], x.shape[1] // prod(slide.kernel), *image)
    return narrow(te.compute(shape, element, name="col2im"), x.dtype)
