"""Computations of which programs were recorded under schema 2 (``schema2.jsonl``); together they have every kind of step."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from ansorlite import te
from ansorlite.target import Target
from ansorlite.task import Task
from tests import workloads
from tests.contracts.cases import NAMED
from tests.targets import NARROW, WIDE

TARGETS: Final[Mapping[str, Target]] = {
    "wide": WIDE,
    "narrow": NARROW,
    "dots": replace(WIDE, features="+sse2,+ssse3,+avx512vnni"),
}


def convolution(size: int, border: int, relu: bool) -> list[te.Tensor]:
    """One that Winograd's transforms pay for."""
    data, weights = te.placeholder((size, size, 64), name="data"), te.placeholder((3, 3, 64, 64), name="weights", constant=True)
    padded = te.compute(
        (size + 2 * border, size + 2 * border, 64),
        lambda h, w, c: te.if_then_else(
            te.all(h >= border, h < size + border, w >= border, w < size + border), data[h - border, w - border, c], 0.0
        ),
        name="padded",
    )
    y, x, c = te.reduce_axis(3, name="y"), te.reduce_axis(3, name="x"), te.reduce_axis(64, name="c")
    source, left = (padded, size) if border else (data, size - 2)
    summed = te.compute(
        (left, left, 64), lambda h, w, o: te.sum(source[h + y, w + x, c] * weights[y, x, c, o], axis=[y, x, c]), name="conv"
    )
    return [data, weights, te.compute(summed.shape, lambda *i: te.maximum(summed[i], 0.0), name="relu") if relu else summed]


_CASES: Final[Mapping[str, Callable[[], list[te.Tensor]]]] = {
    **NAMED,
    "winograd": lambda: convolution(24, 1, relu=True),
    "winograd, tiles that do not divide": lambda: convolution(27, 0, relu=True),
    "winograd alone": lambda: convolution(24, 1, relu=False),
    "quantised": workloads.quantised_matmul,
    "widened": workloads.widened_matmul,
    "large transpose": lambda: workloads.transpose_add(4096, 4096),
}

#: Which are recorded, for which targets.
RECORDED: Final = (
    ("matmul of primes", "wide"),
    ("matmul bias relu", "narrow"),
    ("convolution 1x1", "narrow"),
    ("transposed convolution", "wide"),
    ("softmax", "narrow"),
    ("sum of squares", "narrow"),
    ("derived weights", "wide"),
    ("winograd", "wide"),
    ("winograd, tiles that do not divide", "narrow"),
    ("winograd alone", "narrow"),
    ("quantised", "dots"),
    ("widened", "narrow"),
    ("large transpose", "wide"),
)


def task(case: str, target: str) -> Task:
    return Task(_CASES[case](), TARGETS[target])
