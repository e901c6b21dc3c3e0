"""Matrix products and convolutions against numpy and the ONNX reference."""

import numpy as np
import pytest

from ansorlite import te
from ansorlite.errors import ExpressionError
from ansorlite.te.traversal import reads
from ansorlite.topi.col2im import col2im
from ansorlite.topi.conv import conv, conv_transpose
from ansorlite.topi.matmul import gemm, matmul
from tests.unit.topi.support import meaning, normal, onnx_meaning

CLOSE = {"rtol": 1e-4, "atol": 1e-5}


@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize("transpose_b", [False, True])
def test_gemm(transpose_a, transpose_b):
    a, b = normal(5, 7), normal(7, 3, seed=1)
    result = meaning(
        gemm, a.T.copy() if transpose_a else a, b.T.copy() if transpose_b else b, transpose_a=transpose_a, transpose_b=transpose_b
    )
    np.testing.assert_allclose(result, a @ b, **CLOSE)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((4, 5), (5, 6)),
        ((2, 4, 5), (5, 6)),
        ((3, 1, 4, 5), (2, 5, 6)),
        ((5,), (5, 6)),
        ((4, 5), (5,)),
        ((5,), (5,)),
        ((2, 4, 5), (5,)),
        ((1, 1), (1, 1)),
    ],
)
def test_matmul(left, right):
    a, b = normal(*left), normal(*right, seed=1)
    np.testing.assert_allclose(meaning(matmul, a, b), np.matmul(a, b), **CLOSE)


def test_matmul_refuses_inner_extents_that_differ():
    with pytest.raises(ExpressionError, match="inner extents 5 and 4"):
        matmul(te.placeholder((3, 5)), te.placeholder((4, 3)))
    with pytest.raises(ExpressionError, match="inner extents 5 and 4"):
        gemm(te.placeholder((3, 5)), te.placeholder((4, 3)))


@pytest.mark.parametrize(
    ("data", "weight", "strides", "before", "after", "dilations", "groups"),
    [
        ((1, 3, 9), (4, 3, 3), (2,), (1,), (0,), (1,), 1),
        ((2, 3, 8, 7), (4, 3, 3, 3), (1, 1), (0, 0), (0, 0), (1, 1), 1),
        ((1, 3, 8, 7), (4, 3, 3, 2), (2, 1), (1, 0), (2, 1), (1, 1), 1),
        ((1, 2, 11, 9), (3, 2, 3, 3), (1, 2), (2, 1), (2, 1), (2, 3), 1),
        ((1, 6, 7, 7), (6, 1, 3, 3), (1, 1), (1, 1), (1, 1), (1, 1), 6),
        ((1, 4, 7, 7), (8, 1, 3, 3), (2, 2), (1, 1), (1, 1), (1, 1), 4),
        ((1, 6, 5, 5), (9, 2, 1, 1), (1, 1), (0, 0), (0, 0), (1, 1), 3),
        ((1, 2, 4, 5, 6), (3, 2, 2, 3, 3), (1, 2, 1), (1, 0, 1), (0, 1, 1), (1, 1, 1), 1),
    ],
)
def test_conv(data, weight, strides, before, after, dilations, groups):
    x, w = normal(*data), normal(*weight, seed=1)
    result = meaning(conv, x, w, strides=strides, before=before, after=after, dilations=dilations, groups=groups)
    expected = onnx_meaning("Conv", x, w, strides=strides, pads=[*before, *after], dilations=dilations, group=groups)
    np.testing.assert_allclose(result, expected, **CLOSE)


def _scattered(x, w, strides, before, after, dilations, groups, output_padding):
    """Transposed convolution by its definition: each datum is spread over the places that it was a sum for."""
    n, ci, height, width = x.shape
    share, kh, kw = w.shape[1:]
    full = np.zeros((n, share * groups, (height - 1) * strides[0] + (kh - 1) * dilations[0] + 1 + output_padding[0],
                     (width - 1) * strides[1] + (kw - 1) * dilations[1] + 1 + output_padding[1]))  # fmt: skip
    for c in range(ci):
        group = c // (ci // groups)
        for h in range(height):
            for v in range(width):
                rows = slice(h * strides[0], h * strides[0] + (kh - 1) * dilations[0] + 1, dilations[0])
                columns = slice(v * strides[1], v * strides[1] + (kw - 1) * dilations[1] + 1, dilations[1])
                full[:, group * share : (group + 1) * share, rows, columns] += x[:, c, h, v, None, None, None] * w[c]
    return full[:, :, before[0] : full.shape[2] - after[0], before[1] : full.shape[3] - after[1]]


@pytest.mark.parametrize(
    ("weight", "strides", "before", "after", "dilations", "groups", "output_padding"),
    [
        ((4, 3, 3, 3), (1, 1), (0, 0), (0, 0), (1, 1), 1, (0, 0)),
        ((4, 3, 4, 4), (2, 2), (1, 1), (1, 1), (1, 1), 1, (0, 0)),
        ((4, 3, 3, 3), (2, 3), (1, 0), (0, 2), (1, 1), 1, (1, 2)),
        ((4, 2, 2, 2), (3, 3), (0, 0), (0, 0), (1, 1), 2, (0, 0)),
        ((4, 3, 3, 2), (1, 2), (1, 1), (1, 0), (2, 3), 1, (0, 1)),
        ((4, 1, 3, 3), (2, 2), (1, 1), (1, 1), (1, 1), 4, (1, 1)),
    ],
)
def test_conv_transpose(weight, strides, before, after, dilations, groups, output_padding):
    x, w = normal(2, 4, 5, 4), normal(*weight, seed=1)
    arguments = {
        "strides": strides,
        "before": before,
        "after": after,
        "dilations": dilations,
        "groups": groups,
        "output_padding": output_padding,
    }
    np.testing.assert_allclose(meaning(conv_transpose, x, w, **arguments), _scattered(x, w, **arguments), **CLOSE)


def test_conv_without_border_has_no_padding_stage():
    x, w = te.placeholder((1, 3, 8, 8)), te.placeholder((4, 3, 3, 3))
    assert [r.tensor for r in reads(conv(x, w).body)] == [x, w]
    padded = conv(x, w, before=(1, 1), after=(1, 1))
    assert [r.tensor.name for r in reads(padded.body)] == ["pad", "placeholder"]


def test_conv_refuses_what_does_not_fit():
    x = te.placeholder((1, 3, 8, 8))
    with pytest.raises(ExpressionError, match="3 channels"):
        conv(x, te.placeholder((4, 2, 3, 3)))
    with pytest.raises(ExpressionError, match="groups do not fit"):
        conv(x, te.placeholder((4, 1, 3, 3)), groups=3)
    with pytest.raises(ExpressionError, match="does not fit into"):
        conv(x, te.placeholder((4, 3, 9, 9)))


@pytest.mark.parametrize(
    ("image", "block", "slide"),
    [
        ((5, 5), (2, 3), {}),
        ((7,), (3,), {"strides": (5,)}),
        ((9, 8), (3, 3), {"strides": (3, 4), "dilations": (2, 1), "before": (1, 1), "after": (0, 1)}),
        ((6, 6), (2, 2), {"strides": (2, 2)}),
        ((4, 3, 5), (2, 1, 3), {"strides": (1, 2, 1), "before": (1, 0, 0), "after": (1, 0, 1)}),
    ],
)
def test_col2im(image, block, slide):
    rank = len(block)
    strides, dilations = slide.get("strides", (1,) * rank), slide.get("dilations", (1,) * rank)
    before, after = slide.get("before", (0,) * rank), slide.get("after", (0,) * rank)
    spans = [(extent - 1) * dilation + 1 for extent, dilation in zip(block, dilations, strict=True)]
    padded = [b + extent + a for b, extent, a in zip(before, image, after, strict=True)]
    counts = [(extent - span) // stride + 1 for extent, span, stride in zip(padded, spans, strides, strict=True)]
    x = normal(2, 3 * int(np.prod(block)), int(np.prod(counts)))
    expected = np.zeros((2, 3, *padded), np.float32)
    blocks = x.reshape(2, 3, *block, *counts)
    for tap in np.ndindex(*block):
        for number in np.ndindex(*counts):
            at = tuple(n * s + t * d for n, s, t, d in zip(number, strides, tap, dilations, strict=True))
            expected[(slice(None), slice(None), *at)] += blocks[(slice(None), slice(None), *tap, *number)]
    inside = (slice(None), slice(None), *(slice(b, b + extent) for b, extent in zip(before, image, strict=True)))
    np.testing.assert_allclose(meaning(col2im, x, image=image, block=block, **slide), expected[inside], **CLOSE)


def test_blocks_that_are_not_of_the_image():
    with pytest.raises(ExpressionError, match=r"\(4, 4\) blocks of \(2, 2\) are \(n, c \* 4, 16\)"):
        col2im(te.placeholder((1, 8, 15)), image=(5, 5), block=(2, 2))
