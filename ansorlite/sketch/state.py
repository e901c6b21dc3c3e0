"""What the derivation rules work on: a schedule in the making."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from typing import TypeAlias

from ansorlite.schedule.primitives import Convert, Step, Tensorize
from ansorlite.schedule.refs import LoopRef
from ansorlite.schedule.schedule import Schedule
from ansorlite.target import Target
from ansorlite.te.dag import ComputeDAG
from ansorlite.te.rewriting import tensor_named
from ansorlite.te.tensor import Tensor

#: The loops of a nest, outermost first, in bands of like ones (S S R S R S); a band may be empty.
Bands: TypeAlias = tuple[tuple[LoopRef, ...], ...]


@dataclass(frozen=True)
class State:
    """A partial sketch. The schedule is the state's own: a rule goes on with a copy of it (:meth:`fork`).

    Attributes:
        schedule: what was done so far.
        pending: names of the stages still to be visited, the next one first; consumers come before producers.
        bands: the loops of stages with nests of their own, in bands of like ones.
        rows: of GPUs: of stages whose blocks have whole rows, the loop inside of which all threads of a block compute what these
            need besides.
    """

    schedule: Schedule
    target: Target
    pending: tuple[str, ...]
    bands: Mapping[str, Bands] = field(default_factory=dict)
    rows: Mapping[str, LoopRef] = field(default_factory=dict)

    @property
    def dag(self) -> ComputeDAG:
        """The computation after the steps so far."""
        return self.schedule.dag

    @property
    def steps(self) -> tuple[Step, ...]:
        """The trace so far."""
        return self.schedule.steps

    @property
    def stage(self) -> Tensor:
        """The stage being visited."""
        return tensor_named(self.dag, self.pending[0])

    @property
    def operands(self) -> tuple[str, ...]:
        """The stages that make words of a dot product's operands, or convert factors: what they make is worth its place."""
        made = (
            step.words if isinstance(step, Tensorize) else step.copies
            for step in self.steps
            if isinstance(step, Tensorize | Convert)
        )
        return tuple(name for names in made for name in names)

    def fork(self) -> Schedule:
        """A schedule that goes on from this state, and leaves it as it is."""
        return self.schedule.copy()

    def visited(
        self, schedule: Schedule | None = None, bands: Mapping[str, Bands] | None = None, first: tuple[str, ...] = ()
    ) -> State:
        """The state after the stage being visited, gone on with ``schedule``, in which the nests ``bands`` were made.

        ``first`` are visited next.
        """
        known = {**self.bands, **(bands or {})}
        return replace(self, schedule=schedule or self.schedule, pending=first + self.pending[1:], bands=known)

    def is_settled(self, stage: Tensor) -> bool:
        """Whether the stage has loops of its own, or runs in another's, already."""
        return is_settled(self.schedule, stage)


def is_settled(s: Schedule, stage: Tensor) -> bool:
    """Whether the stage has loops of its own, or runs in another's, already."""
    said = s.structure.stages.get(stage.name)
    return said is not None and not said.boxed


class Applicability(Enum):
    """What a rule's condition says about the stage being visited."""

    SKIP = auto()
    APPLY = auto()
    APPLY_AND_SKIP_REST = auto()


@dataclass(frozen=True)
class Rule:
    """One derivation rule.

    Attributes:
        name: the literature's name.
        condition: whether the rule applies to ``state.stage``.
        apply: the states that it leads to.
    """

    name: str
    condition: Callable[[State], Applicability]
    apply: Callable[[State], tuple[State, ...]]
