"""Primitives that say where stages are computed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from ansorlite.analysis.access import accesses
from ansorlite.analysis.predicates import fusible_consumer, packable
from ansorlite.errors import ScheduleError
from ansorlite.rewrites.stages import cache_read
from ansorlite.schedule.primitives.step import Results, Step
from ansorlite.schedule.refs import Name, StageRef
from ansorlite.schedule.structure import Copied, Location, Started, Structure, places
from ansorlite.te.tensor import Tensor

_UNNAMED: Final = Name("")
_LAYOUTS: Final = ("packed", "plain", "transposed")


@dataclass(frozen=True)
class ComputeAt(Step):
    """The part of a stage that one iteration of ``at`` needs is computed there, right before it is needed::

        for i: B[i] = ...; for i: C[i] = f(B[i])      ->      for i: { B[i] = ...; C[i] = f(B[i]) }       # compute_at(B, i)

    The part is a box, found from what the stages read; its loops are over the box, and can be shaped like any others, with
    other stages computed in them. Of several places, a choice
    further in than a consumer's is projected onto the consumer's. With ``at=None`` all of the stage is computed before the loops
    that need it.

    With ``scope="shared"`` all threads of a block see the part, and compute it together: its elements are dealt out to them; a
    sum that is vectorised along a reduce axis is added up by as many threads as it has lanes.
    """

    method: ClassVar = "compute_at"
    positional: ClassVar = 2
    stage: StageRef
    at: Location
    scope: str | None = None

    def apply(self, structure: Structure) -> Structure:
        if self.scope not in (None, "shared"):
            raise ScheduleError(f"stage {self.stage.name} has the scope {self.scope!r}; it can be 'shared', or left out")
        tensor = _placeable(structure, self.stage)
        if tensor in structure.dag.outputs:
            raise ScheduleError(f"stage {tensor.name} is an output: it is computed whole, at the root (compute_root)")
        users = structure.users(tensor.name)
        anchor = _anchor(structure, self.stage.name, self.at) or users[0]
        if structure.loops(anchor).follows:
            raise ScheduleError(
                f"stage {tensor.name} cannot be computed in loops of {anchor}, which runs in the loops of another one, which it "
                f"follows; name a loop of that one"
            )
        if structure.anchor(anchor) is not None and None in places(self.at):
            raise ScheduleError(
                f"stage {tensor.name} may be computed in loops of {anchor}, which is computed in another one's loops, or at the "
                f"root (None): choose from loops of {anchor} alone"
            )
        follower = _follower(structure, tensor.name)
        if follower is not None:
            raise ScheduleError(f"stage {tensor.name} has {follower} following it in its loops: these stay at the root")
        for consumer in structure.dag.consumers(tensor):
            if anchor not in structure.around(consumer.name):
                raise ScheduleError(
                    f"stage {tensor.name} cannot be computed in loops of {anchor}: {consumer.name} reads it too, and would read "
                    f"what is not there yet; compute {consumer.name} in loops of {anchor} first, or {tensor.name} at the root"
                )
        return structure.with_stage(self.stage.name, boxed=True, at=self.at, shared=self.scope is not None)


@dataclass(frozen=True)
class ComputeRoot(Step):
    """The stage is computed whole, in loops of its own, before anything that reads it::

    for i: { B[i] = ...; C[i] = f(B[i]) }      ->      for i: B[i] = ...; for i: C[i] = f(B[i])       # compute_root(B)
    """

    method: ClassVar = "compute_root"
    stage: StageRef

    def apply(self, structure: Structure) -> Structure:
        structure.computed(self.stage.name)
        return structure.with_stage(self.stage.name, boxed=False, at=None, follows=False, shared=False)


@dataclass(frozen=True)
class ReverseComputeAt(Step):
    """A stage that reads another one element by element runs right after it, in the same loops, inside of ``at``::

        for i: for k: C[i] += ...; for i: D[i] = f(C[i])
        ->      for i: { for k: c += ...; D[i] = f(c) }       # reverse_compute_at(D, i)

    What is read of the other stage is a local tile, indexed by the loops inside of ``at``. Of several places, a choice inside of
    a loop that adds up is projected outward.
    """

    method: ClassVar = "reverse_compute_at"
    positional: ClassVar = 2
    stage: StageRef
    at: Location

    def apply(self, structure: Structure) -> Structure:
        tensor = _placeable(structure, self.stage)
        leader = _anchor(structure, self.stage.name, self.at)
        if leader is None or None in places(self.at):
            raise ScheduleError(f"stage {tensor.name} is to follow another one: name a loop of that, not the root (None)")
        if structure.anchor(leader) is not None:
            raise ScheduleError(f"stage {tensor.name} cannot follow {leader}, which itself runs in another one's loops")
        if fusible_consumer(structure.dag, structure.tensor(leader)) is not tensor:
            raise ScheduleError(
                f"stage {tensor.name} cannot follow {leader}: it must be its only consumer, an element-wise one over the same "
                f"axes that reads the element of {leader} at its own; compute it at the root instead"
            )
        other = _follower(structure, leader)
        if other not in (None, tensor.name):
            raise ScheduleError(f"stage {other} follows {leader} already; only one stage can")
        return structure.with_stage(self.stage.name, at=self.at, follows=True)


@dataclass(frozen=True)
class CacheRead(Step):
    """A stage reads a tensor from a copy, made inside of the loop ``at``, whose layout is the order of use::

        for k0: for j: for k1: C[j] += A[k1, j]
        ->      for k0: { for j: for k1: A_packed[j, k1] = A[k1, j]; for j: for k1: C[j] += A_packed[j, k1] }

    The dimensions of a ``"packed"`` copy are the loops inside of ``at`` that the read depends on. Those of a ``"plain"`` one are
    the tensor's, in its order, and of a ``"transposed"`` one in the opposite order: such a copy is a stage, which holds the box
    that is read inside of ``at``::

        ->      for k0: { for j: for k1: A_t[j, k1] = A[k1, j]; for j: for k1: C[j] += A_t[j, k1] }       # layout="transposed"

    With ``scope="shared"`` all threads of a block see the copy, and make it together. ``computed``: the tensor is a stage that
    has no other place; its elements are computed into a packed copy.
    """

    method: ClassVar = "cache_read"
    positional: ClassVar = 2
    stage: StageRef
    tensor: Name
    at: Location
    layout: str = "packed"
    name: Name = _UNNAMED
    computed: bool = False
    scope: str | None = None

    def apply(self, structure: Structure) -> Structure:
        stage, tensor = structure.computed(self.stage.name), structure.tensor(self.tensor)
        if self.layout not in _LAYOUTS:
            raise ScheduleError(
                f"a copy of {self.tensor} has the layout {self.layout!r}; it can be 'packed', in the order of use, 'plain', in "
                f"that of the tensor, or 'transposed', in the opposite one"
            )
        if self.scope not in (None, "shared"):
            raise ScheduleError(f"a copy of {self.tensor} has the scope {self.scope!r}; it can be 'shared', or left out")
        if not self.name or self.name in structure.names:
            raise ScheduleError(f"the copy of {self.tensor} for {stage.name} needs a name of its own, not {self.name!r}")
        if all(access.tensor is not tensor for access in accesses(stage)):
            raise ScheduleError(f"stage {stage.name} reads nothing of {self.tensor}")
        if any(copy.tensor == self.tensor for copy in structure.loops(stage.name).copies):
            raise ScheduleError(f"stage {stage.name} reads {self.tensor} from a copy already")
        return self._packed(structure, stage, tensor) if self.layout == "packed" else self._stage(structure, stage, tensor)

    def results(self, after: Structure) -> Results:
        return (StageRef(self.name),) if self.name in after.tensors else ()

    def _packed(self, structure: Structure, stage: Tensor, tensor: Tensor) -> Structure:
        anchor = _anchor(structure, stage.name, self.at)
        if anchor not in (None, stage.name):
            raise ScheduleError(
                f"what {stage.name} reads of {self.tensor} is copied inside of its own loops, not of those of {anchor}"
            )
        read = [access for access in accesses(stage) if access.tensor is tensor]
        if len(read) != 1:
            raise ScheduleError(
                f"stage {stage.name} reads {len(read)} elements of {self.tensor} at a time; one can be read from a packed copy"
            )
        if not packable(read[0]):
            raise ScheduleError(
                f"stage {stage.name} reads {self.tensor} through a window that slides or is guarded; it cannot be packed"
            )
        if self.computed:
            _only_read_by(structure, tensor, stage)
        said, shared = structure.loops(stage.name), self.scope is not None
        copied = Copied(self.tensor, self.name, self.at, self.computed, shared=shared)
        return structure.with_stage(stage.name, copies=(*said.copies, copied))

    def _stage(self, structure: Structure, stage: Tensor, tensor: Tensor) -> Structure:
        if self.computed:
            raise ScheduleError(f"{self.tensor} is computed into packed copies only; say where it is computed by compute_at")
        if structure.loops(self.tensor).follows if tensor.body is not None else False:
            raise ScheduleError(f"{self.tensor} runs in the loops of another stage: it is read where it is made, not from a copy")
        if structure.loops(stage.name).follows and structure.anchor(stage.name) == self.tensor:
            raise ScheduleError(f"stage {stage.name} follows {self.tensor}, whose tile it reads: there is nothing to copy")
        order = tuple(range(tensor.ndim))
        dag = cache_read(structure.dag, stage.name, self.tensor, self.name, order if self.layout == "plain" else order[::-1])
        after = ComputeAt(StageRef(self.name), self.at).apply(structure.rewritten(dag))
        return after.with_stage(self.name, shared=self.scope is not None)


@dataclass(frozen=True)
class DecomposeReduction(Step):
    """The accumulators of a reduction get their first value in loops of their own, at the beginning of loop ``at``::

        for i: for j: { C[i, j] = 0; for k: C[i, j] += ... }
        ->      for i: { for j: C[i, j] = 0; for j: for k: C[i, j] += ... }       # decompose_reduction(C, i)

    With ``at=None`` they start before all loops. Where nothing is said, they start right before the first loop that adds up.
    Those in a local tile (``reverse_compute_at``, ``cache_write``) start no further out than where the tile is made.
    """

    method: ClassVar = "decompose_reduction"
    positional: ClassVar = 2
    stage: StageRef
    at: Location

    def apply(self, structure: Structure) -> Structure:
        tensor = structure.computed(self.stage.name)
        said = structure.loops(tensor.name)
        if not tensor.reduce_axes:
            raise ScheduleError(f"stage {tensor.name} adds nothing up: it has no accumulators that could start apart")
        if said.starts is not None:
            raise ScheduleError(f"it is said already where the accumulators of stage {tensor.name} start; say it once")
        if _anchor(structure, tensor.name, self.at) not in (None, tensor.name):
            raise ScheduleError(f"the accumulators of stage {tensor.name} start in its own loops; name one of these, or None")
        return structure.with_stage(tensor.name, starts=Started(self.at))


def _anchor(structure: Structure, stage: str, at: Location) -> str | None:
    """The stage that the places are loops of; ``None`` if all there is is the root."""
    loops = [structure.live(place) for place in places(at) if place is not None]
    anchors = {loop.stage for loop in loops}
    if len(anchors) > 1:
        raise ScheduleError(
            f"stage {stage} may be computed at loops of one stage; {', '.join(map(str, loops))} are of {len(anchors)}"
        )
    return anchors.pop() if anchors else None


def _follower(structure: Structure, leader: str) -> str | None:
    """The stage that runs in the loops of another one."""
    return next((name for name, said in structure.stages.items() if said.follows and structure.anchor(name) == leader), None)


def _placeable(structure: Structure, stage: StageRef) -> Tensor:
    tensor = structure.computed(stage.name)
    said = structure.loops(stage.name)
    if said.is_shaped or any(name != stage.name and structure.anchor(name) == stage.name for name in _boxed(structure)):
        raise ScheduleError(
            f"stage {stage.name} has loops of its own already, which its place in another stage would undo; "
            f"say where it is computed before its loops are shaped"
        )
    return tensor


def _boxed(structure: Structure) -> list[str]:
    return [name for name, said in structure.stages.items() if said.boxed and any(place is not None for place in places(said.at))]


def _only_read_by(structure: Structure, tensor: Tensor, stage: Tensor) -> None:
    if (
        tensor.body is None
        or tensor.reduce_axes
        or tensor in structure.dag.outputs
        or structure.dag.consumers(tensor) != (stage,)
    ):
        raise ScheduleError(
            f"{tensor.name} cannot be computed into a copy: only an element-wise stage that {stage.name} alone reads can"
        )
