"""Primitives that say how buffers lie in memory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Final

from ansorlite.errors import ScheduleError
from ansorlite.schedule.primitives.step import Step
from ansorlite.schedule.refs import LoopRef, Name
from ansorlite.schedule.samples import Value, least, most
from ansorlite.schedule.structure import Alignment, Structure

#: Elements: a page of the widest dtype. More would only waste memory.
_LARGEST: Final = 4096
#: All banks of shared memory hold so many chunks of 16 bytes.
_MOST_CHUNKS: Final = 8


@dataclass(frozen=True)
class StorageAlign(Step):
    """Neighbours along a dimension of a buffer come to lie a multiple of ``factor`` elements apart, plus ``offset``::

        alloc B[30, 30]      ->      alloc B[30, 30] strides [40, 1]       # storage_align("B", B["i"], 16, 8)

    ``buffer`` is an intermediate stage, with one of its axes, or the copy of a ``cache_read``, with one of the loops of the stage
    that reads it. Rows that begin a power of two apart displace one another in caches, and in the banks of a GPU's memory.
    """

    method: ClassVar = "storage_align"
    positional: ClassVar = 2
    buffer: Name
    loop: LoopRef
    factor: Value
    offset: Value = 0

    def apply(self, structure: Structure) -> Structure:
        if least(self.factor) < 1 or most(self.factor) > _LARGEST:
            raise ScheduleError(
                f"the stride of {self.buffer} along {self.loop.name} is to be a multiple of {self.factor} elements; "
                f"give a factor from 1 to {_LARGEST}"
            )
        if least(self.offset) < 0:
            raise ScheduleError(f"the stride of {self.buffer} along {self.loop.name} has an offset of {self.offset}, less than 0")
        wish = Alignment(self.loop.name, self.factor, self.offset)
        for reader, said in structure.stages.items():
            copy = next((copy for copy in said.copies if copy.name == self.buffer), None)
            if copy is None:
                continue
            if self.loop.stage != reader:
                raise ScheduleError(f"{self.buffer} is a copy for {reader}: name one of the loops of that, not {self.loop}")
            structure.live(self.loop)
            if len(structure.axes(self.loop)) > 1:
                raise ScheduleError(f"loop {self.loop} is fused: {self.buffer} has no one dimension along it; name another loop")
            changed = replace(copy, aligned=_with(copy.aligned, wish))
            return structure.with_stage(reader, copies=tuple(changed if each is copy else each for each in said.copies))
        tensor = structure.computed(self.buffer)
        if tensor in structure.dag.outputs:
            raise ScheduleError(f"stage {self.buffer} is an output: callers say how it lies in memory")
        names = [axis.name for axis in tensor.axes]
        if self.loop.stage != self.buffer or self.loop.name not in names:
            raise ScheduleError(f"stage {self.buffer} has the axes {', '.join(names)}; name one of these, not {self.loop}")
        if self.loop.name == names[-1]:
            raise ScheduleError(
                f"neighbours along {self.loop} lie side by side: name the axis around it, whose rows can lie further apart"
            )
        said = structure.loops(self.buffer)
        return structure.with_stage(self.buffer, aligned=_with(said.aligned, wish))


@dataclass(frozen=True)
class Swizzle(Step):
    """``chunks`` neighbouring runs of 16 bytes of what threads share change places from row to row of its last dimension::

        alloc S[8, 64]      ->      alloc S[8, 64] swizzled by 8       # swizzle("S", 8): S[k, i * 4 + v] at (i ^ k % 8) * 4 + v

    So threads that are at one column of many rows find different banks of a GPU's shared memory. A machine without such banks
    does not look at it. Where rows are no whole runs of so many chunks as many change places as they are.
    """

    method: ClassVar = "swizzle"
    positional: ClassVar = 2
    buffer: Name
    chunks: Value

    def apply(self, structure: Structure) -> Structure:
        tensor = structure.computed(self.buffer)
        if least(self.chunks) < 1 or most(self.chunks) > _MOST_CHUNKS:
            raise ScheduleError(f"stage {self.buffer} is to be swizzled by {self.chunks} chunks; from 1 to {_MOST_CHUNKS} can be")
        if not structure.loops(self.buffer).shared:
            raise ScheduleError(
                f"stage {self.buffer} is to be swizzled, but is not shared by the threads of a block: give it scope='shared'"
            )
        if tensor.ndim < 2:
            raise ScheduleError(f"stage {self.buffer} has no rows that could be swizzled: it has {tensor.ndim} dimensions")
        return structure.with_stage(self.buffer, swizzled=self.chunks)


def _with(aligned: tuple[Alignment, ...], wish: Alignment) -> tuple[Alignment, ...]:
    return (*(each for each in aligned if each.along != wish.along), wish)
