"""Programs for GPUs that are kept as traces: what rules and an estimate once found, whatever they find today.

The full ones are the best by the estimate among some that were drawn for a large GPU; the small ones are for the GPU that is
emulated, so that machines which run a thread after another can run them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from ansorlite import te
from ansorlite.cost_model.draft_gpu import GpuDraft
from ansorlite.features import extract
from ansorlite.loops.kernel_module import When, kernel_module
from ansorlite.sketch.candidate import Candidate
from ansorlite.sketch.program import lower
from ansorlite.sketch.tile_space import TileSpace
from ansorlite.spaces.derivation import derive
from ansorlite.target import Target, resolve
from ansorlite.task import Task
from tests import workloads
from tests.contracts.cases import attention
from tests.golden.compare import HERE
from tests.on_gpu import PROCESSORS, assembled, compiled

FULL: Final[Target] = resolve("sm_80")
SMALL: Final[Target] = resolve("emulated")
_DRAWN: Final = 1024
#: So many of a sketch are tried in turn.
_TRIED: Final = 16


def chain(m: int, n: int) -> list[te.Tensor]:
    """Element-wise stages over rows, with what is the same for all of them."""
    x, b = te.placeholder((m, n), name="X"), te.placeholder((n,), name="bias")
    shifted = te.compute((m, n), lambda i, j: x[i, j] + b[j], name="shifted")
    gate = te.compute((m, n), lambda i, j: 1.0 / (1.0 + te.exp(shifted[i, j] * -1.702)), name="gate")
    return [x, b, te.compute((m, n), lambda i, j: shifted[i, j] * gate[i, j], name="Y")]


@dataclass(frozen=True)
class GpuGolden:
    """A computation, full and small."""

    full: Callable[[], list[te.Tensor]]
    small: Callable[[], list[te.Tensor]]

    def task(self, *, small: bool) -> Task:
        return Task(self.small() if small else self.full(), SMALL if small else FULL)


CASES: Final[Mapping[str, GpuGolden]] = {
    "product": GpuGolden(lambda: workloads.matmul_relu(1024, 1024, 1024), lambda: workloads.matmul_relu(24, 20, 16)),
    "batched_product": GpuGolden(workloads.batch_matmul, lambda: workloads.batch_matmul(2, 12, 10, 8)),
    "long_product": GpuGolden(lambda: workloads.matmul_bias_relu(64, 256, 4096), lambda: workloads.matmul_bias_relu(5, 6, 128)),
    "convolution": GpuGolden(
        lambda: workloads.conv2d_bias_relu(1, 64, 56, 56, 64), lambda: workloads.conv2d_bias_relu(1, 4, 7, 9, 6)
    ),
    "softmax": GpuGolden(workloads.softmax, lambda: workloads.softmax(7, 37)),
    "layer_norm": GpuGolden(workloads.layer_norm, lambda: workloads.layer_norm(5, 48)),
    "pooling": GpuGolden(workloads.max_pool, lambda: workloads.max_pool(1, 3, 9, 9)),
    "transpose": GpuGolden(lambda: workloads.transpose_add(1024, 1024), lambda: workloads.transpose_add(13, 9)),
    "chain": GpuGolden(lambda: chain(1024, 1024), lambda: chain(9, 24)),
    "sum": GpuGolden(lambda: workloads.sum_of_squares(1 << 20), lambda: workloads.sum_of_squares(4099)),
    "attention": GpuGolden(lambda: attention(256, 256, 64), lambda: attention(7, 9, 5)),
}


def kept(name: str, *, small: bool) -> Candidate:
    """The program of that name."""
    return Candidate((HERE / _file(name, small=small)).read_text())


def keep(name: str, *, small: bool) -> None:
    """Look for another program of that name, and keep it: the best that nothing is spilled of."""
    task, found = CASES[name].task(small=small), []
    for number, sketch in enumerate(derive(task)):
        rows = TileSpace(sketch).sample(_DRAWN, np.random.default_rng(number))
        seconds = GpuDraft(task.target).seconds(extract(sketch, rows))
        # Long sums are kept in parts.
        whole = "rfactor" not in sketch.text and name in ("long_product", "sum")
        found += [(whole, float(seconds[row]), sketch.candidate(rows[row])) for row in seconds.argsort()[:_TRIED]]
    ordered = [candidate for _, _, candidate in sorted(found, key=lambda each: each[:2])]
    best = next(each for each in ordered if small or not _spilled(task, each))
    path = HERE / _file(name, small=small)
    path.parent.mkdir(exist_ok=True)
    path.write_text(best.trace)


def _spilled(task: Task, candidate: Candidate) -> bool:
    (function,) = kernel_module(lower(task, candidate)).at(When.CALL)
    ptx, _ = compiled(function, FULL)
    reports = (assembled(for_processor(ptx, processor), processor).values() for processor in PROCESSORS)
    return any(report.spilled for each in reports for report in each)


def for_processor(ptx: str, processor: str) -> str:
    """What was written for ``FULL``, said to be for another one."""
    return ptx.replace(f".target {FULL.cpu}\n", f".target {processor}\n")


def _file(name: str, *, small: bool) -> str:
    return f"gpu/{name}{'_small' if small else ''}.txt"
