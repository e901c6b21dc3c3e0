"""From values to addresses: which block of memory a value of a model is in, and where.

Blocks, by number: temporaries (the arena, and behind it the kernels' workspace), weights, each input, each output, and such that
the model has in common with others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from ansorlite.alignment import aligned
from ansorlite.codegen.entry import Address, Move
from ansorlite.graph.fusion import FusionGroup
from ansorlite.graph.graph import Array, Graph
from ansorlite.graph.memory import ConcatCopy, MemoryPlan, Place

TEMPORARIES: Final = 0
WEIGHTS: Final = 1
GIVEN: Final = 2


@dataclass(frozen=True)
class Prepared:
    """What a kernel prepares of constants; calls with the same constants share it.

    Attributes:
        task: position of the kernel's task.
        constants: names of those among its inputs, in order.
        nbytes: of the result.
    """

    task: int
    constants: tuple[str, ...]
    nbytes: int


@dataclass(frozen=True)
class Needs:
    """What the call of a kernel needs.

    Attributes:
        reads: the inputs that it reads as they are.
        prepared: what it reads of the others, if it has any.
    """

    reads: tuple[str, ...]
    prepared: Prepared | None


@dataclass(frozen=True, eq=False)
class MemoryLayout:
    """The blocks of a model.

    Attributes:
        weights: constants that are kept, and what is prepared of constants, each with its place, in the order of their first use.
        weight_bytes: of their block.
    """

    graph: Graph
    plan: MemoryPlan
    weights: Mapping[str | Prepared, Address]
    weight_bytes: int

    @staticmethod
    def of(graph: Graph, plan: MemoryPlan, needs: Callable[[FusionGroup], Needs]) -> MemoryLayout:
        """Constants that a kernel or a copy reads as they are, or that are given out, get a place; and what is prepared."""
        weights: dict[str | Prepared, Address] = {}
        end = 0

        def place(item: str | Prepared, nbytes: int) -> None:
            nonlocal end
            if item not in weights:
                weights[item] = Address(WEIGHTS, end)
                end += aligned(nbytes)

        def keep(names: Iterable[str]) -> None:
            for name in names:
                root = _place(plan, name).root
                if root in graph.constants:
                    place(root, graph.constants[root].nbytes)

        for step in plan.steps:
            if isinstance(step, ConcatCopy):
                keep((step.source,))
                continue
            needed = needs(step)
            if needed.prepared is not None:
                place(needed.prepared, needed.prepared.nbytes)
            keep(needed.reads)
        keep(graph.outputs.values())
        return MemoryLayout(graph, plan, weights, end)

    def prepared(self, what: Prepared) -> Address:
        """Where something prepared lies."""
        return self.weights[what]

    def weight_bytes_of(self, item: str | Prepared) -> int:
        """How large a constant, or something prepared, is."""
        return item.nbytes if isinstance(item, Prepared) else self.graph.constants[item].nbytes

    @property
    def blocks(self) -> int:
        """How many blocks are the model's own, its inputs and outputs among them."""
        return GIVEN + len(self.graph.inputs) + len(self.graph.outputs)

    @property
    def workspace(self) -> Address:
        """Where the kernels' own temporaries begin: behind the arena."""
        return Address(TEMPORARIES, aligned(self.plan.peak))

    def address(self, name: str) -> Address:
        """Where a value lies."""
        place = _place(self.plan, name)
        root, offset = place.root, place.offset
        if root in self.plan.results:
            return Address(self._output(self.plan.results[root]), offset)
        if root in self.plan.offsets:
            return Address(TEMPORARIES, self.plan.offsets[root] + offset)
        if root in self.weights:
            return Address(self.weights[root].base, self.weights[root].offset + offset)
        return Address(GIVEN + list(self.graph.inputs).index(root), offset)

    def nbytes(self, name: str) -> int:
        return self.graph.values[name].nbytes

    def move(self, copy: ConcatCopy) -> Move:
        """A copy of the memory plan, in addresses."""
        target = self.address(copy.target)
        return Move(self.address(copy.source), Address(target.base, target.offset + copy.offset), self.nbytes(copy.source))

    def leftovers(self) -> Iterator[Move]:
        """What is left to do at the end: outputs that were not computed in the caller's array."""
        for public, name in self.graph.outputs.items():
            if self.plan.results.get(_place(self.plan, name).root) != public:
                yield Move(self.address(name), Address(self._output(public), 0), self.nbytes(name))

    def pack_weights(self, block: Array) -> None:
        """Fill the block of weights but for what is prepared. A constant of one value repeated is written out."""
        for name, address in self.weights.items():
            if isinstance(name, Prepared):
                continue
            constant, offset = self.graph.constants[name], address.offset
            block[offset : offset + constant.nbytes].view(constant.dtype).reshape(constant.shape)[...] = constant

    def _output(self, public: str) -> int:
        return GIVEN + len(self.graph.inputs) + list(self.graph.outputs).index(public)


def _place(plan: MemoryPlan, name: str) -> Place:
    """Inputs and constants are where they are."""
    return plan.places.get(name) or Place(name, 0)
