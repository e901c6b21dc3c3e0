"""What is recorded: grids of a dozen tasks, clouds of forty. On one thread, so that a table says the same on a busy machine."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from ansorlite.target import Target
from ansorlite.task import Task
from benchmarks.kernels.suites import SUITES

#: (suite, case) of the grids: what computes, what moves memory, what reduces; round extents and odd ones.
GRIDS: Final = (
    ("odd", "matmul 197x197x197"), ("odd", "matmul 17x1009x331"), ("bert", "classifier 1x1000x768"),
    ("subgraph", "q k^T softmax 128x12x64 batch 1"), ("ansor10", "C1D 64x256->256 k5 s1 batch 1"),
    ("anchors", "W9 conv 3x224x224 k7 s2 -> 64"), ("odd", "conv 7^2x331->197 k3"), ("odd", "depthwise 113^2x97 k3"),
    ("anchors", "W14 transposed conv 256x8x8 k4 s2 -> 128"), ("bert", "softmax 1536x128"), ("odd", "layer norm 197x509"),
    ("int8", "matmul 128x768x768"),
)  # fmt: skip

#: (suite, case) of the clouds.
CLOUDS: Final = (
    *GRIDS,
    ("ansor10", "GMM 128x128x128 batch 1"), ("ansor10", "GMM 512x512x32 batch 1"), ("ansor10", "C1D 256x64->128 k3 s2 batch 1"),
    ("ansor10", "C1D 128x128->256 k1 s2 batch 1"), ("ansor10", "C2D 56^2x64->64 k1 s1 batch 1"),
    ("ansor10", "GRP 28^2x128->256 k1 s2 batch 1"), ("ansor10", "GRP 14^2x256->256 k3 s1 batch 1"),
    ("ansor10", "DIL 14^2x256->256 k3 s1 batch 1"), ("ansor10", "DEP 112^2x32 k3 s1 batch 1"),
    ("ansor10", "DEP 14^2x512 k3 s2 batch 1"), ("ansor10", "DEP 7^2x1024 k3 s1 batch 1"),
    ("ansor10", "T2D 8^2x256->128 k4 s2 batch 1"), ("ansor10", "T2D 32^2x64->3 k4 s2 batch 1"),
    ("ansor10", "CAP 8^2x16->16 k3 s1 batch 1"), ("ansor10", "NRM 512x512 batch 1"),
    ("subgraph", "conv+bn+relu 28^2x128->256 k1 s2 batch 1"), ("subgraph", "conv+bn+relu 56^2x64->64 k3 s1 batch 1"),
    ("bert", "projection 128x768x768"), ("bert", "mix values 12x128x64x128"), ("bert", "layer norm 128x768"),
    ("bert", "bias gelu 128x3072"), ("resnet", "conv 56^2x256->128 k1 s2 bias relu"),
    ("resnet", "conv 14^2x256->256 k3 s1 bias relu"),
    ("resnet", "conv 7^2x512->512 k3 s1 bias relu"), ("resnet", "residual 3136x256"), ("odd", "conv 113^2x3->61 k5 s2"),
    ("odd", "softmax 331x1009"), ("odd", "sum of rows 509x1009"), ("memory", "transpose add 1024x1024"),
    ("memory", "softmax over columns 1024x1024"), ("int8", "conv 28^2x128->128 k3"),
)  # fmt: skip


def task_of(suite: str, case: str, target: Target) -> Task:
    """The task of a case."""
    operator = next(each.operator for each in SUITES[suite] if each.name == case)
    return Task(operator.tensors(), target)


def stem(suite: str, case: str) -> str:
    """The name of the case's file."""
    return re.sub(r"[^a-z0-9]+", "_", f"{suite} {case}".lower()).strip("_")


def matching(cases: tuple[tuple[str, str], ...], texts: tuple[str, ...]) -> Mapping[str, tuple[str, str]]:
    """Those that have one of ``texts`` in their names, or all, by file name."""
    return {
        stem(suite, case): (suite, case)
        for suite, case in cases
        if not texts or any(text in f"{suite} {case}" or text == stem(suite, case) for text in texts)
    }
