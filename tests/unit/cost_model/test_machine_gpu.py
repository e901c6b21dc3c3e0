"""The draft of GPUs reads every number of a GPU from the GPU's row."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, Final

import numpy as np
import pytest

from ansorlite.cost_model import draft_gpu
from ansorlite.cost_model.draft_gpu import GpuDraft
from ansorlite.features import extract
from ansorlite.features.facts import Operations
from ansorlite.features.gpu import GpuFacts, LaunchFacts, assemble_gpu
from ansorlite.machine.gpu import A100, EMULATED, H100, MALI, Gpu
from ansorlite.sketch.tile_space import TileSpace
from ansorlite.spaces.derivation import derive
from ansorlite.target import GPUS
from ansorlite.task import Task
from tests import workloads

TARGET: Final = replace(GPUS["h100"], gpu=H100)
#: What costs nothing: what programs may have decides which are proposed, and some is only told.
NO_COSTS: Final[Mapping[str, str]] = {
    "name": "told",
    "block_threads": "a limit of blocks",
    "block_shared": "a limit of blocks",
    "load_bytes": "a limit of vectors",
    "async_copies": "whether copies may land later; rules propose fewer slots where not",
    "map_bytes": "from where on code has tensor maps; as bulk copies they count",
    "l2": "told; it sets the sizes of programs that measure",
    "l2_bandwidth": "told",
}
#: Decides how copies are made, before they are counted.
IN_COUNTING: Final = "bulk_bytes"


def _launch(blocks: int = 132, threads: int = 32, registers: int = 32, shared: int = 0) -> LaunchFacts:
    return LaunchFacts(blocks, threads, registers, shared)


def _facts(**counts: Any) -> GpuFacts:
    given = {"leads": True, "steps": 4096, "operations": Operations(), "lanes": 1, "accumulators": 1}
    return GpuFacts("C", **(given | counts))


WAITS: Final = {"leads": False, "rounds": 256, "requests": 1}
#: Programs that are bound by one thing or another.
PROGRAMS: Final = (
    (_launch(), _facts()),
    (_launch(registers=300), _facts()),
    (_launch(), _facts(operations=Operations(div=1))),
    (_launch(), _facts(unit=H100.matrix[0], accumulators=64)),
    (_launch(), _facts(steps=1, nbytes=2**24)),
    (_launch(), _facts(steps=1, sectors=2**24)),
    (_launch(), _facts(steps=1, wavefronts=2**24)),
    (_launch(), _facts(steps=0, leads=True)),
    *((_launch(2**16, **of), _facts(**WAITS)) for of in ({}, {"threads": 256}, {"shared": 64 << 10})),
)


def _seconds(gpu: Gpu) -> list[float]:
    draft = GpuDraft(replace(TARGET, gpu=gpu))
    features = [np.array([[[*map(float, assemble_gpu(*program, gpu))]]]) for program in PROGRAMS]
    return [float(draft.seconds(each)[0]) for each in features]


def _other(name: str) -> Gpu:
    """The same but for one field."""
    value = getattr(H100, name)
    if name == "matrix":
        return replace(H100, matrix=tuple(replace(unit, rate=unit.rate // 4) for unit in value))
    other = not value if isinstance(value, bool) else "another" if isinstance(value, str) else type(value)(0.25 * value) or 1
    return replace(H100, **{name: other})


@pytest.mark.parametrize("name", [field.name for field in fields(Gpu) if field.name != IN_COUNTING])
def test_every_fact_counts_or_is_no_cost(name: str) -> None:
    assert _other(name) != H100
    assert (_seconds(_other(name)) != _seconds(H100)) == (name not in NO_COSTS)


def test_bulk_copies_count_by_where_they_begin() -> None:
    sketch = next(each for each in derive(Task(workloads.matmul(512, 512, 512), TARGET)) if "pipeline" in each.text)
    rows = TileSpace(sketch).sample(64, np.random.default_rng(0))
    some, none = (replace(sketch, target=replace(TARGET, gpu=replace(H100, bulk_bytes=least))) for least in (16, 0))
    assert not np.array_equal(GpuDraft(TARGET).seconds(extract(some, rows)), GpuDraft(TARGET).seconds(extract(none, rows)))


def test_no_number_of_a_gpu_is_in_the_model() -> None:
    numbers = {node.value for node in ast.walk(ast.parse(inspect.getsource(draft_gpu))) if isinstance(node, ast.Constant)}
    assert {number for number in numbers if isinstance(number, int | float)} <= {0, 1, 2}


@pytest.mark.parametrize("gpu", [A100, H100, MALI, EMULATED])
def test_what_follows_from_a_row(gpu: Gpu) -> None:
    """As public tables have it: cycles a second, sectors and passes a cycle."""
    clocks = {A100.name: 1.41e9, H100.name: 1.98e9, MALI.name: 850e6, EMULATED.name: 1e10 / 512}
    assert gpu.clock == pytest.approx(clocks[gpu.name], rel=0.01)
    assert (gpu.sectors, gpu.wavefronts) == (2.0, 1.0)
