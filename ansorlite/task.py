"""A task: one computation on one target, the unit of tuning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from ansorlite.target import Target, resolve
from ansorlite.te import serialize
from ansorlite.te.dag import ComputeDAG
from ansorlite.te.tensor import Tensor


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Task:
    """What is to be computed, and on what machine.

    Attributes:
        dag: the computation.
        target: the machine.
    """

    dag: ComputeDAG
    target: Target

    def __init__(self, tensors: Sequence[Tensor] | ComputeDAG, target: str | Target = "llvm") -> None:
        """Make a task of argument tensors in call order: inputs, then outputs.

        Raises:
            ExpressionError: the tensors do not make a computation.
            TargetError: an unknown target.
        """
        dag = tensors if isinstance(tensors, ComputeDAG) else ComputeDAG.of(tensors)
        object.__setattr__(self, "dag", dag)
        object.__setattr__(self, "target", resolve(target))

    def __repr__(self) -> str:
        return f"Task({self.key!r}, {self.target.key!r})"

    @cached_property
    def key(self) -> str:
        """The workload key: readable, and equal for equal computations whatever the names."""
        return self.dag.key

    def __reduce__(self) -> tuple[object, ...]:
        # Expressions are known by identity: they travel as data, and are built anew.
        return rebuilt, (serialize.dump(self.dag), self.target, self.key)


def rebuilt(data: serialize.Data, target: Target, key: str) -> Task:
    """The task of a computation that ``serialize.dump`` wrote, whose key is known.

    Raises:
        RecordsError: ``data`` mean nothing.
    """
    task = Task(serialize.load(data), target)
    task.__dict__["key"] = key  # the cached property, which takes as long as building
    return task
