"""Equal computations with other names share records: a trace of one says in the names of the other the same."""

from __future__ import annotations

import numpy as np
import pytest

from ansorlite.errors import ScheduleError
from ansorlite.schedule.schedule import Schedule
from ansorlite.schedule.trace_names import renamed
from ansorlite.spaces.derivation import derive
from ansorlite.task import Task
from ansorlite.te.dag import ComputeDAG
from ansorlite.te.serialize import dump, load
from tests import workloads
from tests.contracts.cases import named, named_dag, some_rows
from tests.targets import WIDE


def with_other_names(dag: ComputeDAG) -> ComputeDAG:
    """An equal computation: the tensors have each other's names, backwards, and the axes new ones."""
    data = dump(dag)
    names = [tensor["name"] for tensor in data["tensors"]]
    for tensor, name in zip(data["tensors"], reversed(names), strict=True):
        tensor["name"] = name
        tensor["axes"] = [f"{axis}_{number}" for number, axis in enumerate(tensor.get("axes", ()))]
        if "reduce" in tensor:
            tensor["reduce"]["axes"] = [[f"{axis}_summed", extent] for axis, extent in tensor["reduce"]["axes"]]
    return load(data)


@named
def test_traces_of_derived_rows(name: str) -> None:
    dag, rng = named_dag(name), np.random.default_rng(3)
    twin = with_other_names(dag)
    assert twin.key == dag.key
    for ours, theirs in zip(derive(Task(dag, WIDE)), derive(Task(twin, WIDE)), strict=True):
        for row in some_rows(ours, 2, rng):
            trace, expected = ours.candidate(row).trace, theirs.candidate(row).trace
            assert renamed(trace, dag, twin) == expected
            assert renamed(expected, twin, dag) == trace


def test_what_is_copied_started_and_asked_for() -> None:
    dag = ComputeDAG.of(workloads.matmul_relu(12, 20, 9))
    twin = with_other_names(dag)
    s = Schedule(dag, WIDE)
    (i, j, k), source = s.stage("C").loops, s.dag.inputs[1].name
    i0, _ = s.split(i, [None, 4])
    s.decompose_reduction("C", i0)
    cache = s.cache_write("C", scope="local", at=i0)
    s.cache_read(cache, source, at=cache[k.name], name=s.free(f"{source}_copy"))
    s.prefetch(cache, source, at=cache[k.name])
    s.parallel(cache[i0.name])
    s.vectorize(cache[j.name], lanes=4)
    trace = str(s.trace)
    theirs = renamed(trace, dag, twin)
    assert theirs != trace
    assert renamed(theirs, twin, dag) == trace


def test_text_that_is_no_trace_of_the_computation_is_refused() -> None:
    dag = ComputeDAG.of(workloads.matmul(8, 8, 8))
    twin = with_other_names(dag)
    assert renamed("nonsense", dag, dag) == "nonsense"
    with pytest.raises(ScheduleError, match="no stage 'Z'"):
        renamed('def schedule(s):\n    Z = s.stage("Z")\n    s.inline(Z)', dag, twin)
