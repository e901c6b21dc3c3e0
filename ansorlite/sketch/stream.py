"""Which outputs may go past the caches: those that no cache would keep, all of them, until somebody reads them."""

from __future__ import annotations

from ansorlite.loops.arguments import argument
from ansorlite.schedule.kinds import SHORTEST_STREAM
from ansorlite.schedule.samples import most
from ansorlite.schedule.schedule import Schedule
from ansorlite.target import Target
from ansorlite.te import dtypes
from ansorlite.te.rewriting import tensor_named
from ansorlite.te.tensor import Tensor


def stream(s: Schedule, target: Target) -> None:
    """Offer streaming stores for the large outputs of a finished sketch that no stage reads, where the last cache does not hold
    inputs and outputs together.

    They must be stored once, element by element, in vectors along the rows of memory, and in runs of some length: a sum that adds
    to its output is read again at once, and rows of narrow tiles end too often. Caches of GPUs fetch nothing that is only
    written over.
    """
    if target.gpu is not None:
        return
    said = s.structure.stages
    leader = {name: s.structure.anchor(name) or name for name, of in said.items() if of.follows}
    anchors = {name for name in said if s.structure.anchor(name) is None} - set(leader.values())
    if sum(argument(tensor).nbytes for tensor in (*s.dag.inputs, *s.dag.outputs)) <= target.reach[-1]:
        return
    for stage in s.dag.outputs:
        once = stage.name in leader or (stage.name in anchors and not stage.reduce_axes)
        if once and argument(stage).nbytes > target.reach[1] and not s.dag.consumers(stage):
            anchor = tensor_named(s.dag, leader.get(stage.name, stage.name))
            if _longest_row(s, anchor) * dtypes.size(stage.dtype) >= SHORTEST_STREAM:
                s.stream(stage.name, on=s.sample((0, 1), name=f"{stage.name}.stream"))


def _longest_row(s: Schedule, anchor: Tensor) -> int:
    """Elements along the innermost loop, if that is vectorised along the rows of the result; else 0."""
    row = next((axis for axis in reversed(anchor.axes) if axis.extent > 1), None)
    said = s.structure.loops(anchor.name)
    if said.vector is None or row is not s.structure.axis(s.stage(anchor)[said.vector[0]]):
        return 0
    innermost = next((split.factors[-1] for split in said.splits if split.loop == row.name), None)
    return most(innermost) if innermost is not None else 0
