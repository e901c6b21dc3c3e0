"""Primitives that rewrite sums of products for instructions that multiply: dot products of words, and matrix units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ansorlite.analysis.conversion import convertible
from ansorlite.analysis.dot import dot_products
from ansorlite.analysis.matrix import matrix_product
from ansorlite.errors import ScheduleError
from ansorlite.machine.matrix import UNITS
from ansorlite.rewrites.conversion import convert_once
from ansorlite.rewrites.dot import dot_words
from ansorlite.rewrites.matrix import FactorLayout, FactorStage, matrix_form
from ansorlite.schedule.primitives.step import Results, Rewrite
from ansorlite.schedule.refs import LoopRef, Name, StageRef
from ansorlite.schedule.structure import Structure
from ansorlite.te.ops import DOTS


@dataclass(frozen=True)
class Tensorize(Rewrite):
    """The products along a loop are summed by dot products of words; ``words`` are the stages that make these::

        C[i] = sum(A[i, k] * B[k])      ->      C[i] = sum(dot(A_w[i, w], B_w[w]), w)       # tensorize(k, "dot_u8s8")

    Words that are what memory has already need no stage. Others are in the order of what they are made of; with ``steps_last``,
    those of a factor that the last dimension of the result does not index lie side by side, as matrix units read rows.
    """

    method: ClassVar = "tensorize"
    positional: ClassVar = 2
    several: ClassVar = True
    loop: LoopRef
    op: str
    words: tuple[Name, Name]
    steps_last: bool = False

    def apply(self, structure: Structure) -> Structure:
        tensor = structure.untouched(self.loop.stage)
        axis = structure.axis(structure.live(self.loop))
        ops = {op.value: op for op in DOTS}
        if self.op not in ops:
            raise ScheduleError(f"loop {self.loop} is to be tensorized by {self.op!r}; there are {', '.join(ops)}")
        how = next((how for how in dot_products(tensor, (ops[self.op],)) if how.axis is axis), None)
        if how is None:
            raise ScheduleError(f"loop {self.loop} is no sum of products that {self.op} can add up")
        for name in self.words:
            structure.check_unused(name)
        return structure.rewritten(dot_words(structure.dag, tensor.name, how, self.words, steps_last=self.steps_last))

    def results(self, after: Structure) -> Results:
        return tuple(StageRef(name) for name in self.words if name in after.tensors)


@dataclass(frozen=True)
class Convert(Rewrite):
    """The factors of a sum of products that are of a narrower dtype are converted once, into the stages ``copies``::

    C[i] = sum(float32(A[i, k]) * B[k])      ->      A_c[i, k] = float32(A[i, k]); C[i] = sum(A_c[i, k] * B[k])
    """

    method: ClassVar = "convert"
    positional: ClassVar = 2
    several: ClassVar = True
    stage: StageRef
    copies: tuple[Name, ...]

    def apply(self, structure: Structure) -> Structure:
        tensor = structure.untouched(self.stage.name)
        there = convertible(tensor)
        if not 1 <= len(self.copies) <= len(there):
            raise ScheduleError(f"stage {tensor.name} has {len(there)} factors to convert; {len(self.copies)} names were given")
        most_used = sorted(there, key=lambda each: -each.uses)[: len(self.copies)]
        found = [each for each in there if each in most_used]
        for name in self.copies:
            structure.check_unused(name)
        return structure.rewritten(convert_once(structure.dag, tensor.name, found, self.copies))

    def results(self, after: Structure) -> Results:  # noqa: ARG002
        return tuple(StageRef(name) for name in self.copies)


@dataclass(frozen=True)
class UseMatrixUnit(Rewrite):
    """A sum of products becomes a product of matrices that a unit of a GPU computes; ``factors`` are the stages that make these::

        C[i, j] = sum(float32(A[i, k]) * float32(B[k, j]), k)
        ->  C_a[i, k] = A[i, k]; C_b[k, j] = B[k, j]; C[i, j] = sum(float32(C_a[i, o * 8 + p]) * float32(C_b[o * 8 + p, j]), o, p)

    Neighbouring dimensions of rows, or of columns, become one where all that read the stage walk them in step. ``layouts`` say
    how each factor lies: ``"steps_last"``, ``"steps_first"``, or ``"cores"``, for units that read shared memory themselves. The
    innermost loops must be those of one instruction, with the threads as they are in it: rows in 2 (kept by a thread) by 8
    (threads), or in 4 (threads) by these, columns in 4 (threads) by 2 (kept), steps in 2 pieces.
    """

    method: ClassVar = "matrix_unit"
    positional: ClassVar = 2
    several: ClassVar = True
    stage: StageRef
    unit: str
    layouts: tuple[str, str]
    factors: tuple[Name, Name]

    def apply(self, structure: Structure) -> Structure:
        tensor = structure.untouched(self.stage.name)
        if self.unit not in UNITS:
            raise ScheduleError(f"stage {tensor.name} is to be multiplied by {self.unit!r}; there are {', '.join(UNITS)}")
        unit = UNITS[self.unit]
        how = matrix_product(tensor, unit.factors, unit.sums)
        if how is None:
            what = f"products of {unit.factors}, added up in {unit.sums}"
            raise ScheduleError(f"stage {tensor.name} is to be multiplied by {unit.name}, but is no sum of {what}")
        known = {layout.value: layout for layout in FactorLayout}
        if any(layout not in known for layout in self.layouts):
            raise ScheduleError(f"the factors of stage {tensor.name} are to lie as {self.layouts}; there are {', '.join(known)}")
        for name in self.factors:
            structure.check_unused(name)
        first, second = (FactorStage(name, known[layout]) for name, layout in zip(self.factors, self.layouts, strict=True))
        dag = matrix_form(structure.dag, tensor.name, how, unit.piece, (first, second))
        shapes = {before.name: before.shape for before in structure.dag.tensors}
        for after in dag.tensors:
            if after.name in structure.stages and after.shape != shapes[after.name]:
                structure.untouched(after.name)
        return structure.rewritten(dag).with_stage(tensor.name, unit=self.unit)

    def results(self, after: Structure) -> Results:  # noqa: ARG002
        return tuple(StageRef(name) for name in self.factors)
