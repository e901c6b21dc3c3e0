"""The loops of rows as a tree of one shape, for models that read programs as trees (as tree-LSTMs do)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from ansorlite.columns.arithmetic import log2, product, select, where
from ansorlite.columns.program import ColumnProgram
from ansorlite.columns.tape import Number
from ansorlite.loops.nodes import BINDINGS
from ansorlite.schedule.nest import Loop, Nest, Program
from ansorlite.sketch.sketch import Sketch

#: Columns of a node. Of one that is no loop those of loops are 0, and the other way round.
NODE: Final = (
    "trip",  # log2(1 + iterations)
    "step",  # log2(1 + elements of the axis that one iteration is)
    "reduce",  # flag
    "parallel",  # flag
    "unrolled",  # flag
    "lanes",  # log2 of the vectorised loop's, else 0
    "binding",  # 0, or 1 + the position among BINDINGS
    "place",  # how many loops of its nest are around what is computed there
    "elements",  # log2(1 + those that are computed there at a time)
)


class Kind(Enum):
    """What a node of a tree is."""

    LOOP = "a loop of a nest"
    ANCHOR = "the statement that the loops of a nest are of"
    EPILOGUE = "what follows it in the same loops"
    ATTACHED = "a stage computed inside of a nest, or right before it"
    COPY = "a copy made inside of a nest, or right before it"


#: Columns of :attr:`LoopTree.array`: the position of the node around, -1 of a root; one flag a kind; :data:`NODE`.
TREE: Final = ("parent", *(kind.name.lower() for kind in Kind), *NODE)


@dataclass(frozen=True, eq=False)
class LoopTree:
    """The loops of some rows. Loops are children of the loop around them; what is computed at a place that rows choose is a child
    of the outermost loop of its nest, and has its place as a number.

    Attributes:
        kinds: of each node.
        names: of the loop, or of the stage or copy.
        parents: ``(nodes,)`` int64: the node around each, which comes before it; -1 of the first of a root nest.
        values: ``(n, nodes, len(NODE))`` float64, read-only.
    """

    kinds: tuple[Kind, ...]
    names: tuple[str, ...]
    parents: NDArray[np.int64]
    values: NDArray[np.float64]

    @property
    def array(self) -> NDArray[np.float64]:
        """``(n, nodes, len(TREE))``: all of it but the names, node by node, for models that read one array."""
        kinds = np.array([[kind is each for each in Kind] for kind in self.kinds], np.float64).reshape(-1, len(Kind))
        shape = np.concatenate([self.parents[:, None], kinds], axis=1)
        return np.concatenate([np.broadcast_to(shape, (len(self.values), *shape.shape)), self.values], axis=2)


@dataclass(frozen=True)
class _Shape:
    kinds: tuple[Kind, ...]
    names: tuple[str, ...]
    parents: tuple[int, ...]
    program: ColumnProgram


_SHAPES: WeakKeyDictionary[Sketch, _Shape] = WeakKeyDictionary()


def loop_tree(sketch: Sketch, rows: NDArray[np.int64]) -> LoopTree:
    """The loops of rows ``(n, holes)``."""
    shape = _SHAPES.get(sketch)
    if shape is None:
        shape = _SHAPES[sketch] = _shape(sketch)
    values = np.ascontiguousarray(shape.program.run(rows).T).reshape(len(rows), len(shape.kinds), len(NODE))
    parents = np.array(shape.parents, dtype=np.int64)
    for array in (values, parents):
        array.setflags(write=False)
    return LoopTree(shape.kinds, shape.names, parents, values)


class _Nodes:
    def __init__(self) -> None:
        self.kinds: list[Kind] = []
        self.names: list[str] = []
        self.parents: list[int] = []
        self.numbers: list[Number] = []

    def add(self, kind: Kind, name: str, parent: int, **numbers: Number) -> int:
        """The number of the new node."""
        self.kinds.append(kind)
        self.names.append(name)
        self.parents.append(parent)
        self.numbers += [numbers.get(column, 0) for column in NODE]
        return len(self.kinds) - 1


def _shape(sketch: Sketch) -> _Shape:
    nodes = _Nodes()

    def numbers(program: Program) -> list[Number]:
        for nest in program.nests:
            _nest(nodes, nest)
        return nodes.numbers

    recorded = sketch.columns(numbers)
    return _Shape(tuple(nodes.kinds), tuple(nodes.names), tuple(nodes.parents), recorded)


def _nest(nodes: _Nodes, nest: Nest, around: int = -1) -> None:
    """``around``: the node of the stage whose loops these are, where it is computed inside of another nest."""
    first = parent = around
    for position, loop in enumerate(nest.loops):
        innermost = position == len(nest.loops) - 1
        parent = nodes.add(
            Kind.LOOP,
            loop.name,
            parent,
            trip=log2(1 + loop.trip),
            step=log2(1 + loop.step),
            reduce=loop.reduce,
            parallel=position < nest.parallel,
            unrolled=loop.unrolled,
            lanes=log2(nest.lanes) if innermost else 0,
            binding=0 if loop.bound is None else 1 + BINDINGS.index(loop.bound),
        )
        first = parent if position == 0 else first
    starts = [nest.band_start(band) for band in range(len(nest.bands) + 1)]

    def here(kind: Kind, name: str, around: int, at: Number, elements: Number) -> int:
        return nodes.add(kind, name, around, place=select(starts, at), elements=log2(1 + elements))

    here(Kind.ANCHOR, nest.anchor.name, parent, len(nest.bands), 1)
    if nest.epilogue is not None:
        inside = (_inside(loop, nest.epilogue_at) for loop in nest.loops if not loop.reduce)
        here(Kind.EPILOGUE, nest.epilogue.name, first, nest.epilogue_at, product(inside))
    for stage in nest.attached:
        node = here(Kind.ATTACHED, stage.tensor.name, first, stage.at, product(stage.lengths))
        if stage.nest is not None:
            _nest(nodes, stage.nest, node)
    for pack in nest.packed:
        inside = (_inside(loop, pack.at) for loop in nest.loops if loop.axis in pack.copy.axes)
        here(Kind.COPY, pack.copy.name, first, pack.at, product(inside))


def _inside(loop: Loop, at: Number) -> Number:
    """The iterations of a loop that is inside of a place, 1 of another."""
    return where(at <= loop.band, loop.trip, 1)
