"""Primitives that rewrite the computation: they change the set of stages, and have nothing to choose."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Final

from ansorlite.analysis.short_convolution import short_convolution
from ansorlite.errors import ExpressionError, ScheduleError
from ansorlite.loops.nodes import Scope
from ansorlite.rewrites.divide import Division, divide
from ansorlite.rewrites.polyphase import phases, take_phases
from ansorlite.rewrites.stages import (
    cache_write,
    fuse,
    fusible_axes,
    partial_sums,
    rfactor,
    with_unit_axis,
    without_unit_reductions,
)
from ansorlite.rewrites.winograd import winograd
from ansorlite.schedule.primitives.step import Results, Rewrite
from ansorlite.schedule.refs import LoopRef, Name, StageRef
from ansorlite.schedule.structure import Location, Structure, places
from ansorlite.te.expr import Axis
from ansorlite.te.rewriting import inline, with_unique_names

#: What caches may be in, by the names that schedules have for it.
_SCOPES: Final = {"register": Scope.REGISTER, "local": Scope.LOCAL, "global": Scope.GLOBAL}


@dataclass(frozen=True)
class Inline(Rewrite):
    """The stage is computed inside of its consumers, and stored nowhere::

    B[i] = A[i] + 1; C[i] = B[i] * 2      ->      C[i] = (A[i] + 1) * 2       # inline(B)
    """

    method: ClassVar = "inline"
    stage: StageRef

    def apply(self, structure: Structure) -> Structure:
        tensor = structure.untouched(self.stage.name)
        if tensor.reduce_axes:
            raise ScheduleError(
                f"stage {tensor.name} adds up over {_named(tensor.reduce_axes)}: it cannot be inlined; use compute_at"
            )
        if tensor in structure.dag.outputs:
            raise ScheduleError(f"stage {tensor.name} is an output: it cannot be inlined")
        reader = next((name for name, of in structure.stages.items() if any(c.tensor == tensor.name for c in of.copies)), None)
        if reader is not None:
            raise ScheduleError(f"stage {tensor.name} cannot be inlined after cache_read of it for {reader}; inline it before")
        return structure.rewritten(inline(structure.dag, tensor.name))


@dataclass(frozen=True)
class CacheWrite(Rewrite):
    """The stage is computed into another one, ``name``, and copied from there::

    C[i] = sum(A[i, k])      ->      C_local[i] = sum(A[i, k]); C[i] = C_local[i]       # cache_write(C)

    With ``at``, a loop of the stage, its loops become those of the new stage, which computes into a tile that is indexed by the
    loops inside of ``at``, and copied back at the end of each iteration; of a loop that adds up, after it has ended::

    for i: for j: C[i, j] = f(...)
    ->      for i: { for j: C_local[j] = f(...); for j: C[i, j] = C_local[j] }       # cache_write(C, at=i)

    ``scope`` says which memory it is computed into: "register", where all loops over the tile are straight-line code, "local"
    memory of a thread, or "global" memory, whole. Else a tile is in registers where it can be.
    """

    method: ClassVar = "cache_write"
    stage: StageRef
    name: Name
    scope: str | None = None
    at: Location = None

    def apply(self, structure: Structure) -> Structure:
        scope = self._scope()
        if self.at is None:
            structure.untouched(self.stage.name)
        else:
            self._check_place(structure, self.at)
        structure.check_unused(self.name)
        stage = self.stage.name
        after = structure.rewritten(cache_write(structure.dag, stage, self.name))
        partials = dict(structure.partials)
        if stage in partials:
            partials[self.name] = partials[stage]
        after = replace(after, partials=partials)
        if self.at is not None:
            at = structure.with_stage(stage, at=self.at).renamed(stage, self.name).loops(self.name).at
            said = structure.loops(stage)
            # What is stored is the stage itself.
            after = after.renamed(stage, self.name).with_stage(self.name, streamed=0, aligned=())
            after = after.with_stage(stage, follows=True, at=at, streamed=said.streamed, aligned=said.aligned)
        return after if scope is None else after.with_stage(self.name, scope=scope)

    def _scope(self) -> Scope | None:
        if self.scope is not None and self.scope not in _SCOPES:
            raise ScheduleError(
                f"the cache of stage {self.stage.name} is to be of scope {self.scope!r}; it is one of {', '.join(_SCOPES)}"
            )
        if self.scope == "global" and self.at is not None:
            raise ScheduleError(
                f"the cache of stage {self.stage.name} is to be in global memory, whole, and copied back in a loop; leave out one"
            )
        return None if self.scope is None else _SCOPES[self.scope]

    def _check_place(self, structure: Structure, at: Location) -> None:
        stage = structure.computed(self.stage.name).name
        loops = [None if place is None else structure.live(place) for place in places(at)]
        if any(loop is None or loop.stage != stage for loop in loops):
            raise ScheduleError(
                f"the cache of stage {stage} is copied back in a loop of its own; name one of these, not the root"
            )
        said = structure.loops(stage)
        if said.boxed or said.follows:
            raise ScheduleError(f"stage {stage} is computed in another one's loops already; cache_write it before")
        follower = next(
            (name for name in structure.stages if structure.loops(name).follows and structure.anchor(name) == stage), None
        )
        if follower is not None:
            raise ScheduleError(f"stage {follower} follows {stage}, and reads its tile: that is its cache already")
        reader = next((name for name, of in structure.stages.items() if any(copy.tensor == stage for copy in of.copies)), None)
        if reader is not None:
            raise ScheduleError(f"stage {reader} reads {stage} from a copy; cache_write it before cache_read")

    def results(self, after: Structure) -> Results:  # noqa: ARG002
        return (StageRef(self.name),)


@dataclass(frozen=True)
class Rfactor(Rewrite):
    """A reduction becomes independent partial reductions over parts of a loop, and their fold::

        C[i] = sum(A[i, k], k)      ->      C_rf[r, i] = sum(A[i, k], k in part r); C[i] = sum(C_rf[r, i], r)       # rfactor(k)

    There are as many parts as the outermost loop of ``k`` in the new stage has iterations. With ``parts`` there are so many, and
    the new stage is one like any other, with an axis that counts them::

        C[i] = sum(A[i, k], k in 12)      ->      C_rf[r, i] = sum(A[i, r * 4 + k], k in 4); C[i] = sum(C_rf[r, i], r in 3)
    """

    method: ClassVar = "rfactor"
    loop: LoopRef
    name: Name
    parts: int | None = None

    def apply(self, structure: Structure) -> Structure:
        tensor = structure.untouched(self.loop.stage)
        axis = structure.axis(structure.live(self.loop))
        if not axis.reduce:
            raise ScheduleError(f"loop {self.loop} adds nothing up: only a reduction's loop can be rfactored")
        structure.check_unused(self.name)
        if self.parts is not None:
            if not 1 < self.parts <= axis.extent:
                raise ScheduleError(
                    f"loop {self.loop} of {axis.extent} steps cannot be cut into {self.parts} parts; name 2 to {axis.extent}"
                )
            return structure.rewritten(partial_sums(structure.dag, tensor.name, axis, self.name, self.parts))
        after = structure.rewritten(rfactor(structure.dag, tensor.name, axis, self.name))
        return replace(after, partials={**structure.partials, self.name: axis.name})

    def results(self, after: Structure) -> Results:  # noqa: ARG002
        return (StageRef(self.name),)


@dataclass(frozen=True)
class AddUnitAxis(Rewrite):
    """A stage without dimensions gets one of one element, whose loop can be bound, and have others computed in it::

    C[] = sum(A[k], k)      ->      C[u] = sum(A[k], k)       # add_unit_axis(C)
    """

    method: ClassVar = "add_unit_axis"
    stage: StageRef

    def apply(self, structure: Structure) -> Structure:
        tensor = structure.untouched(self.stage.name)
        if tensor.axes:
            raise ScheduleError(f"stage {tensor.name} has {tensor.ndim} dimensions: only one without any is given one")
        for other in structure.dag.consumers(tensor):
            structure.untouched(other.name)
        return structure.rewritten(with_unit_axis(structure.dag, tensor.name))


@dataclass(frozen=True)
class Polyphase(Rewrite):
    """Of the steps of a sum over data with zeros in between only those are taken that meet data, one in ``stride``::

    C[y] = sum(D[y + k] * W[k], k in 0..4)      ->      C[y] = sum(D[y // 2 + k] * W[k * 2 + -y % 2], k in 0..2)
    """

    method: ClassVar = "polyphase"
    positional: ClassVar = 2
    loop: LoopRef
    stride: int

    def apply(self, structure: Structure) -> Structure:
        tensor = structure.untouched(self.loop.stage)
        axis = structure.axis(structure.live(self.loop))
        found = (p for p in phases(structure.dag) if (p.tensor, p.axis, p.stride) == (tensor, axis, self.stride))
        chosen = next(found, None)
        if chosen is None:
            raise ScheduleError(f"loop {self.loop} meets no zeros that repeat every {self.stride} steps")
        return structure.rewritten(without_unit_reductions(take_phases(structure.dag, chosen)))


@dataclass(frozen=True)
class Divide(Rewrite):
    """An axis that is read by quotient and remainder becomes two, in all stages that walk it in step::

    C[i] = sum(A[i // 4, k] * B[i, k])      ->      C[i_div, i_mod] = sum(A[i_div, k] * B[i_div * 4 + i_mod, k])
    """

    method: ClassVar = "divide"
    positional: ClassVar = 2
    loop: LoopRef
    divisor: int

    def apply(self, structure: Structure) -> Structure:
        tensor = structure.untouched(self.loop.stage)
        axis = structure.axis(structure.live(self.loop))
        if not 1 < self.divisor < axis.extent:
            raise ScheduleError(f"loop {self.loop} of {axis.extent} steps cannot be divided by {self.divisor}")
        for other in structure.stages:
            structure.untouched(other)
        return structure.rewritten(with_unique_names(divide(structure.dag, Division(tensor, axis, self.divisor))))


@dataclass(frozen=True)
class FuseDimensions(Rewrite):
    """Dimensions that are walked in step everywhere become one, in all tensors: ``pairs`` are the first ones of each two::

    C[n, h, w] = A[n, h, w] + B[n]      ->      C[n, h_w] = A[n, h_w] + B[n]       # fuse_dimensions((("A", (1,)), ("C", (1,))))
    """

    method: ClassVar = "fuse_dimensions"
    pairs: tuple[tuple[Name, tuple[int, ...]], ...]

    def apply(self, structure: Structure) -> Structure:
        for other in structure.stages:
            structure.untouched(other)
        wanted = {structure.tensor(name): dims for name, dims in self.pairs}
        found = fusible_axes(structure.dag, wanted)
        if any(found[tensor] != dims for tensor, dims in wanted.items()):
            raise ScheduleError(f"these dimensions are not walked in step everywhere: {self.pairs}")
        return structure.rewritten(fuse(structure.dag, found))


@dataclass(frozen=True)
class Winograd(Rewrite):
    """A short convolution becomes transforms, a batched matrix product, and the inverse transform (Winograd's algorithm)::

        C[o, x] = sum(D[c, x + k] * W[o, c, k], c, k)
        ->      V[p, c, t] = transformed D; U[p, o, c] = transformed W; M[p, o, t] = sum(U[p, o, c] * V[p, c, t], c);
                C[o, x] = inverse of M[:, o, x // 2]                                       # winograd(C, (2,))

    ``outputs`` are the neighbouring outputs that are computed together along each window. The stages are those of
    ``rewrites/winograd.py``.
    """

    method: ClassVar = "winograd"
    positional: ClassVar = 2
    stage: StageRef
    outputs: tuple[int, ...]

    def apply(self, structure: Structure) -> Structure:
        tensor = structure.untouched(self.stage.name)
        form = short_convolution(tensor)
        if form is None or len(form.windows) != len(self.outputs):
            raise ScheduleError(f"stage {tensor.name} is no short convolution over {len(self.outputs)} windows")
        try:
            return structure.rewritten(winograd(structure.dag, tensor.name, self.outputs))
        except ExpressionError as error:
            raise ScheduleError(f"stage {tensor.name} cannot be computed in tiles of {self.outputs} outputs: {error}") from error


def _named(axes: tuple[Axis, ...]) -> str:
    return ", ".join(axis.name for axis in axes)
