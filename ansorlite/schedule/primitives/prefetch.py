"""Software prefetch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ansorlite.analysis.access import accesses
from ansorlite.analysis.predicates import fetchable
from ansorlite.errors import ScheduleError
from ansorlite.schedule.primitives.loops import shapeable
from ansorlite.schedule.primitives.step import Step
from ansorlite.schedule.refs import LoopRef, Name, StageRef
from ansorlite.schedule.samples import Value, least
from ansorlite.schedule.structure import Ahead, Structure


@dataclass(frozen=True)
class PrefetchRead(Step):
    """Each iteration of a loop asks for what the stage reads of a tensor ``distance`` iterations later, line by line::

        for k in 64: for j: C[j] += A[k] * B[k, j]
        ->      for k in 64: { for j in lines: prefetch B[min(k + 4, 63), j]; for j: C[j] += ... }

    That is ``prefetch(C, "B", at=k, distance=4)``. Of a tensor that is read from a packed copy made outside of the loop it is the
    copy; of one whose copy is made inside, the tensor, so that the next copy finds it near.
    """

    method: ClassVar = "prefetch"
    positional: ClassVar = 2
    stage: StageRef
    tensor: Name
    at: LoopRef
    distance: Value = 1

    def apply(self, structure: Structure) -> Structure:
        stage, tensor = structure.computed(self.stage.name), structure.tensor(self.tensor)
        if self.at.stage != stage.name:
            raise ScheduleError(f"what stage {stage.name} reads is asked for in its own loops, not in {self.at}")
        shapeable(structure, self.at, "prefetch")
        if len(structure.axes(self.at)) > 1:
            raise ScheduleError(
                f"loop {self.at} is fused: what it reads some iterations later is no one run of {self.tensor}; name a loop that "
                f"is not fused"
            )
        read = [access for access in accesses(stage) if access.tensor is tensor]
        if len(read) != 1:
            raise ScheduleError(
                f"stage {stage.name} reads {len(read)} elements of {self.tensor} at a time; one can be asked for ahead"
            )
        (access,) = read
        if not fetchable(access):
            raise ScheduleError(
                f"stage {stage.name} reads {self.tensor} through a window that slides or is guarded: it cannot be asked for "
                f"ahead; copy it (cache_read with layout='plain'), and have the copy read it"
            )
        if structure.axis(self.at) not in access.axes:
            raise ScheduleError(
                f"every iteration of loop {self.at} reads the same elements of {self.tensor}: there is nothing to ask for ahead; "
                f"name a loop over {', '.join(axis.name for axis in access.axes)}"
            )
        if least(self.distance) < 1:
            raise ScheduleError(f"{self.tensor} is to be asked for {self.distance} iterations ahead; one is the least")
        said = structure.loops(stage.name)
        if any(each.tensor == self.tensor and each.loop == self.at.name for each in said.prefetched):
            raise ScheduleError(f"{self.tensor} is asked for ahead in loop {self.at} already")
        ahead = Ahead(self.tensor, self.at.name, self.distance)
        return structure.with_stage(stage.name, prefetched=(*said.prefetched, ahead))
