"""What is timed on a GPU: families of cases, each with what PyTorch has for it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Final

from ansorlite import te
from ansorlite.te.tensor import Tensor
from ansorlite.topi.conv import conv
from ansorlite.topi.elementwise import elementwise
from ansorlite.topi.matmul import matmul
from ansorlite.topi.norm import layer_norm
from ansorlite.topi.reduction import wide_sum
from ansorlite.topi.softmax import softmax
from benchmarks.gpu.model_cases import MODELS, SMALL_MODELS, ModelCase

#: Calls PyTorch (the first argument) on tensors.
Peer = Callable[..., Any]


@dataclass(frozen=True)
class Case:
    """
    Attributes:
        shapes, dtype: of the inputs.
        output: of the inputs.
        peer: the same by PyTorch.
    """

    family: str
    name: str
    shapes: tuple[tuple[int, ...], ...]
    dtype: str
    output: Callable[..., Tensor]
    peer: Peer

    def tensors(self) -> list[Tensor]:
        inputs = [te.placeholder(shape, self.dtype, name=f"x{number}") for number, shape in enumerate(self.shapes)]
        return [*inputs, self.output(*inputs)]


@dataclass(frozen=True)
class Family:
    """
    Attributes:
        bar: at least so many times as fast as PyTorch, as a geometric mean.
        of_copy: at least this share of the bandwidth of a copy; 0: that is no matter.
        large: names of cases that have a bar of their own beside it, ``bar_of_large``.
    """

    name: str
    bar: float
    of_copy: float
    cases: tuple[Case | ModelCase, ...]
    large: tuple[str, ...] = ()
    bar_of_large: float = 0.0


def _products(family: str, dtype: str, sizes: Sequence[tuple[int, ...]]) -> tuple[Case, ...]:
    """Of (batch, m, n, k), or (m, n, k)."""
    found = []
    for *batch, m, n, k in sizes:
        shapes = ((*batch, m, k), (*batch, k, n))
        found.append(
            Case(family, "x".join(map(str, (*batch, m, n, k))), shapes, dtype, matmul, lambda torch, a, b: torch.matmul(a, b))
        )
    return tuple(found)


def _convolutions(family: str, dtype: str, sizes: Sequence[tuple[int, int, int, int, int]]) -> tuple[Case, ...]:
    """Of (batch, channels, outputs, image, kernel), with whole borders."""
    found = []
    for n, ci, co, image, kernel in sizes:
        border = [kernel // 2] * 2

        def output(x: Tensor, w: Tensor, border: list[int] = border) -> Tensor:
            return conv(x, w, before=border, after=border)

        def peer(torch: Any, x: Any, w: Any, border: list[int] = border) -> Any:
            return torch.nn.functional.conv2d(x, w, padding=border)

        shapes = ((n, ci, image, image), (co, ci, kernel, kernel))
        found.append(Case(family, f"n{n}_{ci}to{co}_{image}_{kernel}x{kernel}", shapes, dtype, output, peer))
    return tuple(found)


def _transposed(x: Tensor) -> Tensor:
    n, m = x.shape
    return te.compute((m, n), lambda i, j: x[j, i], name="transposed")


def _chain(x: Tensor, y: Tensor) -> Tensor:
    return elementwise(lambda a, b: te.maximum(a * 2.0 + b, 0.0) * te.tanh(b), x, y, name="chain")


def _memory(rows: int, columns: int) -> tuple[Case, ...]:
    shape, size = (rows, columns), f"{rows}x{columns}"
    one = ("memory", size)
    return tuple(
        Case(one[0], f"{name}_{size}", shapes, "float32", output, peer)
        for name, shapes, output, peer in (
            ("softmax", (shape,), softmax, lambda torch, x: torch.softmax(x, -1)),
            (
                "layer_norm",
                (shape, (columns,)),
                layer_norm,
                lambda torch, x, scale: torch.nn.functional.layer_norm(x, scale.shape, scale),
            ),
            ("sum", (shape,), lambda x: wide_sum(x, axes=(-1,)), lambda _, x: x.sum(-1)),
            ("chain", (shape, shape), _chain, lambda torch, x, y: torch.relu(x * 2 + y) * torch.tanh(y)),
            ("transpose", (shape,), _transposed, lambda _, x: x.t().contiguous()),
        )
    )


def _attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    batch, length, head = k.shape
    turned = te.compute((batch, head, length), lambda b, i, j: k[b, j, i], name="turned")
    scores = elementwise(lambda s: s * (1.0 / math.sqrt(head)), matmul(q, turned), name="scaled")
    return matmul(softmax(scores), v)


def _their_attention(torch: Any, q: Any, k: Any, v: Any) -> Any:
    """PyTorch has its fast kernels for four dimensions alone: here all rows are heads of one sample."""
    return torch.nn.functional.scaled_dot_product_attention(q[None], k[None], v[None])[0]


def _attentions(sizes: Sequence[tuple[int, int, int]]) -> tuple[Case, ...]:
    """Of (batch and heads, length, head)."""
    return tuple(
        Case(
            "attention",
            f"{b}x{length}x{head}",
            ((b, length, head),) * 3,
            "float16",
            _attention,
            _their_attention,
        )
        for b, length, head in sizes
    )


_CUBES: Final = ((1024,) * 3, (2048,) * 3, (4096,) * 3, (8192,) * 3)
#: Tall, wide, of one row, batched, small.
_OTHERS: Final = (
    (16384, 128, 1024),
    (128, 4096, 4096),
    (1, 4096, 4096),
    (64, 512, 512, 64),
    (96, 128, 128, 512),
    (256,) * 3,
    (512,) * 3,
)
#: What counts as a large cube.
_LARGE: Final = ("4096x4096x4096", "8192x8192x8192")
_CONVOLUTIONS: Final = ((16, 64, 64, 56, 3), (16, 128, 128, 28, 3), (16, 256, 1024, 14, 1), (16, 3, 64, 224, 7))

#: The bars are those of issue 17.
FAMILIES: Final = (
    Family("product32", 1.0, 0.0, _products("product32", "float32", (*_CUBES[:3], *_OTHERS, _CUBES[3]))),
    Family("memory", 1.3, 0.9, (*_memory(4096, 4096), *_memory(65536, 256), *_memory(64, 131072))),
    Family("product16", 1.0, 0.0, _products("product16", "float16", (*_CUBES, *_OTHERS)), _LARGE, 0.9),
    Family("productb16", 1.0, 0.0, _products("productb16", "bfloat16", (*_CUBES, *_OTHERS)), _LARGE, 0.9),
    Family("conv32", 1.0, 0.0, _convolutions("conv32", "float32", _CONVOLUTIONS)),
    Family("conv16", 0.9, 0.0, _convolutions("conv16", "float16", _CONVOLUTIONS)),
    Family("attention", 0.8, 0.0, _attentions(((32, 1024, 64), (16, 2048, 128), (96, 512, 64)))),
    Family("model", 1.0, 0.0, MODELS),
)
#: Of each family one case that is done in a moment: the script is tried out with these where there is no GPU.
SMALL: Final = (
    Family("product32", 1.0, 0.0, _products("product32", "float32", ((16, 16, 16),))),
    Family("memory", 1.3, 0.9, _memory(8, 32)),
    Family("product16", 1.0, 0.0, _products("product16", "float16", ((16, 16, 16),))),
    Family("productb16", 1.0, 0.0, _products("productb16", "bfloat16", ((16, 16, 16),))),
    Family("conv32", 1.0, 0.0, _convolutions("conv32", "float32", ((1, 2, 4, 6, 3),))),
    Family("attention", 0.8, 0.0, _attentions(((1, 8, 4),))),
    Family("model", 1.0, 0.0, SMALL_MODELS),
)


def families(*, small: bool) -> tuple[Family, ...]:
    """Those to be timed, or those to try the script out with."""
    return SMALL if small else FAMILIES


def in_order(families: Sequence[Family]) -> list[Case | ModelCase]:
    """One case of each family, then another of each, and so on: whenever time is up, each has had its share."""
    turns = zip_longest(*(family.cases for family in families))
    return [case for turn in turns for case in turn if case is not None]
