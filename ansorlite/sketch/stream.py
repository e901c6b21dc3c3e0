"""Which outputs may go past the caches: those that no cache would keep until somebody reads them."""

from __future__ import annotations

import math
from collections.abc import Iterator

from ansorlite.schedule.steps import SHORTEST_STREAM, Follow, Hole, Reorder, Split, Stream, Vectorize
from ansorlite.sketch.state import State
from ansorlite.te import dtypes
from ansorlite.te.rewriting import tensor_named
from ansorlite.te.tensor import Tensor


def streams(state: State) -> Iterator[Stream]:
    """The steps for the outputs of a finished sketch that are larger than the last cache, and that no other stage reads.

    They must be stored once, element by element, in vectors along the rows of memory, and in runs of some length: a sum that adds
    to its output is read again at once, and tiles for reuse are narrow.
    """
    leader = {step.stage: step.leader for step in state.steps if isinstance(step, Follow)}
    anchors = {step.stage for step in state.steps if isinstance(step, Reorder)} - set(leader.values())
    for stage in state.dag.outputs:
        nbytes = math.prod(stage.shape) * dtypes.size(stage.dtype)
        once = stage.name in leader or (stage.name in anchors and not stage.reduce_axes)
        if once and nbytes > state.target.reach[-1] and not state.dag.consumers(stage):
            anchor = tensor_named(state.dag, leader.get(stage.name, stage.name))
            if _longest_row(state, anchor) * dtypes.size(stage.dtype) >= SHORTEST_STREAM:
                yield Stream(stage.name, Hole(f"{stage.name}.stream", (0, 1)))


def _longest_row(state: State, anchor: Tensor) -> int:
    """Elements along the innermost loop, if that is vectorised along the rows of the result; else 0."""
    row = next((axis.name for axis in reversed(anchor.axes) if axis.extent > 1), "")
    vectors = any(isinstance(step, Vectorize) and (step.stage, step.axis) == (anchor.name, row) for step in state.steps)
    tables = [s.hole.table for s in state.steps if isinstance(s, Split) and (s.stage, s.axis) == (anchor.name, row)]
    return max((int(table.trips[:, -1].max()) for table in tables if table is not None), default=0) if vectors else 0
