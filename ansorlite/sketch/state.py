"""What the derivation rules work on: a sketch in the making."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum, auto

from ansorlite.schedule.steps import Convert, Dot, Follow, Reorder, Step
from ansorlite.target import Target
from ansorlite.te.dag import ComputeDAG
from ansorlite.te.rewriting import tensor_named
from ansorlite.te.tensor import Tensor


@dataclass(frozen=True)
class State:
    """A partial sketch.

    Attributes:
        dag: the computation after the steps so far.
        steps: the schedule so far.
        pending: names of the stages still to be visited, the next one first; consumers come before producers.
    """

    dag: ComputeDAG
    target: Target
    steps: tuple[Step, ...]
    pending: tuple[str, ...]

    @property
    def stage(self) -> Tensor:
        """The stage being visited."""
        return tensor_named(self.dag, self.pending[0])

    @property
    def operands(self) -> tuple[str, ...]:
        """The stages that make words of a dot product's operands, or convert factors: what they make is worth its place."""
        made = (step.words if isinstance(step, Dot) else step.copies for step in self.steps if isinstance(step, Dot | Convert))
        return tuple(name for names in made for name in names)

    def visited(self, *more: Step, dag: ComputeDAG | None = None, first: tuple[str, ...] = ()) -> State:
        """The state after ``more`` steps on the stage being visited; ``first`` are visited next."""
        return replace(self, dag=dag or self.dag, steps=self.steps + more, pending=first + self.pending[1:])

    def is_tiled(self, stage: Tensor) -> bool:
        """Whether the stage has loops of its own already."""
        return any(isinstance(step, Reorder) and step.stage == stage.name for step in self.steps)

    def is_following(self, stage: Tensor) -> bool:
        """Whether the stage runs in another's tiles already."""
        return any(isinstance(step, Follow) and step.stage == stage.name for step in self.steps)

    def is_settled(self, stage: Tensor) -> bool:
        return self.is_tiled(stage) or self.is_following(stage)


class Verdict(Enum):
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
    condition: Callable[[State], Verdict]
    apply: Callable[[State], tuple[State, ...]]
