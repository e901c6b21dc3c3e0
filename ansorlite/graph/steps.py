"""The steps of a model on their places in memory: calls of kernels, copies, and what runs in Python."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np

from ansorlite.codegen.entry import Address, Call, EntryStep
from ansorlite.export.description import StepFacts
from ansorlite.graph.describe import Value
from ansorlite.graph.fusion import FusionGroup
from ansorlite.graph.graph import Array
from ansorlite.graph.layout import WEIGHTS, MemoryLayout, Needs, Prepared
from ansorlite.graph.model import Model
from ansorlite.runtime.abroad import KernelAbroad
from ansorlite.runtime.device import Memory, MemorySpace
from ansorlite.runtime.kernel import Kernel
from ansorlite.runtime.workspace import workspace

#: What native code calls, here or on another machine.
NATIVE: Final = (Kernel, KernelAbroad)


class Bindable(Protocol):
    """What an executable needs of a kernel. Those of :data:`NATIVE` are called by native code."""

    def bind(self, *arrays: Array) -> Callable[[], None]:
        """A call on fixed arrays, inputs then outputs; it writes the outputs in place."""


@dataclass(frozen=True)
class PythonStep:
    """A step that is no native kernel, with the places of its arrays."""

    kernel: Bindable
    arrays: tuple[tuple[Address, Value], ...]
    space: MemorySpace

    def __call__(self, bases: Sequence[int]) -> None:
        places = ((bases[address.base] + address.offset, value) for address, value in self.arrays)
        self.kernel.bind(*(self.space.view(address, value.shape, value.dtype) for address, value in places))()

    def profile(self, bases: Sequence[int]) -> list[int]:
        """Run it; nanoseconds."""
        start = time.perf_counter_ns()
        self(bases)
        return [time.perf_counter_ns() - start]


@dataclass(frozen=True)
class BoundStep:
    """A step, and what it is."""

    step: EntryStep | PythonStep
    facts: StepFacts


def symbol(position: int) -> str:
    """What calls name the kernel of the task at ``position``."""
    return f"kernel{position}"


def needs_of(model: Model, kernels: Sequence[Bindable]) -> Callable[[FusionGroup], Needs]:
    """What each group's call needs.

    Args:
        kernels: one for each of ``model.tasks``.
    """
    position_of = _positions(model)

    def needs(group: FusionGroup) -> Needs:
        position = position_of[group.output]
        kernel = kernels[position]
        if not isinstance(kernel, NATIVE):
            return Needs(group.inputs, None)
        compiled = kernel.compiled
        reads = tuple(name for number, name in enumerate(group.inputs) if number not in compiled.unread)
        constants = tuple(name for name in group.inputs if name in model.graph.constants)
        return Needs(reads, Prepared(position, constants, compiled.prepared) if compiled.prepared else None)

    return needs


def prepare(model: Model, layout: MemoryLayout, kernels: Sequence[Bindable], weights: Memory, space: MemorySpace) -> None:
    """Fill what is prepared in the block of weights."""
    groups = {position: group for group, position in zip(model.groups, model.assignments, strict=True)}
    for what, place in layout.weights.items():
        if not isinstance(what, Prepared):
            continue
        kernel, inputs = kernels[what.task], groups[what.task].inputs
        assert isinstance(kernel, NATIVE)
        given = [np.ascontiguousarray(model.graph.constants[name]) for name in what.constants]
        places, _memories = space.place(given)
        temporaries = workspace(space, kernel.compiled.prepare_workspace)
        address_of = iter(places)
        addresses = [next(address_of) if name in model.graph.constants else 0 for name in inputs]
        kernel.prepare_at([*addresses, 0, temporaries.address, weights.address + place.offset])


def bound_steps(model: Model, layout: MemoryLayout, kernels: Sequence[Bindable], space: MemorySpace) -> Iterator[BoundStep]:
    """The steps of the memory plan, then the copies of outputs that were not computed in the caller's arrays.

    Args:
        kernels: one for each of ``model.tasks``.
    """
    position_of, needs = _positions(model), needs_of(model, kernels)
    for step in layout.plan.steps:
        if isinstance(step, FusionGroup):
            position = position_of[step.output]
            yield _bound_kernel(model, layout, step, position, kernels[position], needs(step), space)
        else:
            move = layout.move(step)
            yield BoundStep(move, _copied(move.nbytes))
    for move in layout.leftovers():
        yield BoundStep(move, _copied(move.nbytes))


def _positions(model: Model) -> dict[str, int]:
    """The position of each group's task, by the group's output."""
    return {group.output: position for group, position in zip(model.groups, model.assignments, strict=True)}


def _bound_kernel(
    model: Model, layout: MemoryLayout, group: FusionGroup, position: int, kernel: Bindable, needs: Needs, space: MemorySpace
) -> BoundStep:
    names = (*group.inputs, group.output)
    # An address that is not read may be any.
    places = tuple(layout.address(name) if name in needs.reads or name == group.output else Address(WEIGHTS, 0) for name in names)
    values = [model.graph.values[name] for name in names]
    task = model.tasks[position][0]
    name = f"{group.name} {'x'.join(map(str, values[-1].shape))}"
    nbytes = sum(map(layout.nbytes, names))
    if not isinstance(kernel, NATIVE):
        facts = StepFacts(name, task.key, "", task.dag.flops, nbytes, None)
        return BoundStep(PythonStep(kernel, tuple(zip(places, values, strict=True)), space), facts)
    origin = kernel.origin
    program = origin.candidate.name if origin else ""
    facts = StepFacts(name, task.key, program, task.dag.flops, nbytes, origin.latency if origin else None)
    prepared = () if needs.prepared is None else (layout.prepared(needs.prepared),)
    return BoundStep(Call(symbol(position), (*places, layout.workspace, *prepared)), facts)


def _copied(nbytes: int) -> StepFacts:
    return StepFacts("copy", "", "", 0, 2 * nbytes, None)
