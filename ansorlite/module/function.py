"""One function of a module: what it takes and gives, what it computes as far as that is known, and what runs it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from ansorlite.errors import ArgumentError
from ansorlite.graph.describe import Value
from ansorlite.loops.arguments import argument
from ansorlite.loops.nodes import Buffer
from ansorlite.module.external import External
from ansorlite.runtime.kernel import Kernel
from ansorlite.task import Task

#: What a function is made of.
Given: TypeAlias = Task | Kernel | External


@dataclass(frozen=True, eq=False)
class ModuleFunction:
    """One function of a module.

    Attributes:
        inputs, outputs: in the order in which it is called with them.
        task: what it computes; ``None`` where no tensor expression says so.
        code: what runs it; ``None`` for a task that is not compiled.
    """

    inputs: tuple[Buffer, ...]
    outputs: tuple[Buffer, ...]
    task: Task | None
    code: Kernel | External | None

    @staticmethod
    def of(name: str, given: object) -> ModuleFunction:
        """
        Raises:
            ArgumentError: ``given`` is none of what a function is made of.
        """
        match given:
            case Task(dag=dag):
                return ModuleFunction(tuple(map(argument, dag.inputs)), tuple(map(argument, dag.outputs)), given, None)
            case Kernel() | External():
                return ModuleFunction(given.inputs, given.outputs, None, given)
            case _:
                kind = type(given).__name__
                raise ArgumentError(f"{name} is a {kind}; a function of a module is a task, a kernel or an al.External")

    def replaced(self, name: str, by: object) -> ModuleFunction:
        """This function, run by another task, kernel or external function of the same signature.

        Raises:
            ArgumentError: ``by`` is none of these, or takes or gives other shapes or dtypes.
        """
        new = ModuleFunction.of(name, by)
        if (kinds(self.inputs), kinds(self.outputs)) != (kinds(new.inputs), kinds(new.outputs)):
            raise ArgumentError(f"{name} is {self.signature}, and what should replace it is {new.signature}; they must be equal")
        return new if new.task is not None else replace(self, code=new.code)

    @property
    def signature(self) -> str:
        """Shapes and dtypes, for people."""
        return f"({', '.join(map(str, kinds(self.inputs)))}) -> {', '.join(map(str, kinds(self.outputs)))}"

    @property
    def runs(self) -> str:
        """What runs it, for people."""
        match self.code:
            case External(name=name):
                return f"external {name}"
            case Kernel():
                return "kernel"
            case None:
                return "task"


def kinds(buffers: Sequence[Buffer]) -> tuple[Value, ...]:
    """Shape and dtype of each."""
    return tuple(Value(buffer.shape, buffer.dtype) for buffer in buffers)
