"""Models that are made for the sizes, and where need be the values, of what they are called with."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property

from ansorlite.errors import ArgumentError, ModelError
from ansorlite.graph.dimensions import Dimensions, OpenValue, Specialize, ValuesNeededError
from ansorlite.graph.graph import Array, Graph
from ansorlite.graph.hybrid import AnyModel, HybridModel, merged_tasks
from ansorlite.graph.model import Model
from ansorlite.graph.routes import KEEP, Router
from ansorlite.target import Target
from ansorlite.task import Task


@dataclass(frozen=True, eq=False)
class OpenModel:
    """A model with open dimensions, or whose shapes depend on the values of inputs. ``ansorlite.from_onnx`` makes them.

    Attributes:
        dimensions: its inputs, and the sizes that programs are made for.
        outputs: names.
        target: the machine.
        specialize: makes the model for given shapes and values.
        blocked, precision: see :meth:`ansorlite.graph.model.Model.of`.
    """

    dimensions: Dimensions
    outputs: tuple[str, ...]
    target: Target
    specialize: Specialize
    blocked: bool = True
    precision: str = "float32"

    @property
    def dims(self) -> tuple[str, ...]:
        """The open dimensions, in order of first use."""
        return self.dimensions.names

    @property
    def inputs(self) -> Mapping[str, OpenValue]:
        """Name → shape and dtype."""
        return self.dimensions.inputs

    def router(self, keep: int = KEEP) -> Router:
        """What finds the programs that serve sizes; it remembers so many graphs."""
        return Router(self.dimensions, self.specialize, keep, in_place=self.target.gpu is None)

    def at(self, sizes: Mapping[str, int], values: Mapping[str, Array] | None = None) -> AnyModel:
        """The model for one size of each open dimension.

        Args:
            values: of the inputs that decide shapes. The result is for these, whatever it is called with. Without any, what
                depends on them runs in Python.

        Raises:
            ArgumentError: a dimension that is not there, or lacks a size; or some values that decide shapes, and not all.
            ModelError: the model has no meaning for these.
        """
        shapes = self.shapes(sizes)
        try:
            return self.built(self.specialize(shapes, values))
        except ValuesNeededError as error:
            raise ArgumentError(f"shapes depend on the value of input {min(error.names)!r}, too; give it") from None

    def shapes(self, sizes: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
        """Input name → shape, where it is known, for one size of each open dimension.

        Raises:
            ArgumentError: a dimension that is not there, or lacks a size.
        """
        return self.dimensions.shapes(sizes)

    def built(self, found: Graph | HybridModel) -> AnyModel:
        """What :attr:`specialize` gave, ready to be tuned or compiled."""
        if not isinstance(found, Graph):
            return found
        return Model.of(found, self.target, blocked=self.blocked, precision=self.precision)

    @cached_property
    def tasks(self) -> tuple[tuple[Task, int], ...]:
        """The distinct tasks of the models for every named size, in order of first use, each with the number of its uses.

        Raises:
            ArgumentError: a dimension without named sizes.
        """
        unnamed = [dim for dim in self.dims if dim not in self.dimensions.buckets]
        if unnamed:
            raise ArgumentError(
                f"dimension {unnamed[0]!r} is open, so there is no task yet; say which sizes programs are to be made for: "
                f'dims={{"{unnamed[0]}": (1, 8, 32)}}, or --dim {unnamed[0]}=1,8,32'
            )
        router = self.router()
        made: dict[Hashable, AnyModel] = {}
        refused = None
        every = itertools.product(*(self.dimensions.buckets[dim] for dim in self.dims))
        ends = [dict(zip(self.dims, each, strict=True)) for each in every]
        # A size below an end may be served by another program than the end itself.
        for sizes in [*ends, *({dim: max(size - 1, 1) for dim, size in each.items()} for each in ends)]:
            try:
                route = router.route(self.shapes(sizes), {})
            except ModelError as error:
                # Sizes of dimensions that depend on one another do not all go together.
                refused = error
                continue
            except ValuesNeededError as error:
                raise ArgumentError(f"shapes depend on the value of input {min(error.names)!r}, too; give it") from None
            if route.program not in made:
                made[route.program] = self.built(router.graph(route.made_for))
        if refused is not None and not made:
            raise refused
        return merged_tasks(counted for model in made.values() for counted in model.tasks)
