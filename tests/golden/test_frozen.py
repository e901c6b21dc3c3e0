"""Traces that were printed once make the same loop IR for ever: 2,000 of them, with the digests of what the version before the
schedule language made of the same rows.

A change of loop IR on purpose writes this file anew, and a decision record says why.
"""

from __future__ import annotations

import hashlib
import json
import lzma
from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from ansorlite import te
from ansorlite.loops.printer import text
from ansorlite.sketch.candidate import Candidate
from ansorlite.sketch.program import lower
from ansorlite.task import Task
from tests import workloads
from tests.contracts.cases import NAMED
from tests.targets import NARROW, WIDE

_FILE: Final = Path(__file__).parent / "frozen.jsonl.xz"
_TARGETS: Final = {"wide": WIDE, "narrow": NARROW}

#: At their full sizes, as ``tests.workloads`` has them.
_FULL: Final[Mapping[str, Callable[[], list[te.Tensor]]]] = {
    f"full {make.__name__}": make
    for make in (
        workloads.matmul, workloads.matmul_relu, workloads.matmul_bias_relu, workloads.batch_matmul, workloads.int8_matmul,
        workloads.widened_matmul, workloads.widened_conv2d, workloads.conv2d_bias_relu, workloads.depthwise,
        workloads.conv2d_transposed, workloads.max_pool, workloads.softmax, workloads.layer_norm, workloads.sum_of_squares,
        workloads.sum_of_columns, workloads.transpose_add, workloads.two_outputs, workloads.diamond, workloads.quantised_matmul,
        workloads.quantised_matmul_by_columns, workloads.quantised_conv2d, workloads.quantised_conv2d_in_blocks,
        workloads.quantised_conv2d_apart,
    )
} | {
    "full conv strided": lambda: workloads.conv2d_bias_relu(stride=2),
    "full conv grouped": lambda: workloads.conv2d_bias_relu(groups=4),
    "full big transpose": lambda: workloads.transpose_add(4096, 4096),
}  # fmt: skip
_CASES: Final = {**NAMED, **_FULL}


@cache
def frozen() -> Mapping[tuple[str, str], list[tuple[str, str]]]:
    """By case and target: traces, each with the digest of its loop IR."""
    found = defaultdict(list)
    for line in lzma.decompress(_FILE.read_bytes()).decode().splitlines():
        row = json.loads(line)
        found[row["case"], row["target"]].append((row["trace"], row["digest"]))
    return found


def digest(task: Task, trace: str) -> str:
    return hashlib.sha256(text(lower(task, Candidate(trace))).encode()).hexdigest()[:16]


def test_there_are_two_thousand() -> None:
    assert sum(map(len, frozen().values())) >= 1990
    assert {case for case, _ in frozen()} == set(_CASES)


@pytest.mark.parametrize("target", _TARGETS)
@pytest.mark.parametrize("case", _CASES)
def test_the_loops_are_those_of_then(case: str, target: str) -> None:
    task = Task(_CASES[case](), _TARGETS[target])
    changed = [trace for trace, then in frozen()[case, target] if digest(task, trace) != then]
    assert not changed, f"{len(changed)} programs differ, the first one's trace:\n{changed[0]}"
