"""Which program serves which sizes and values of a model's inputs.

A program for the upper end of a bucket serves every size of it, where :mod:`ansorlite.graph.bounded` finds the graph that both
are: most often that of the upper end itself, as rows do not depend on one another, else one that is given the size. That is
asked for each size. Where there is no such graph, or it costs much and there were few sizes, the program is for the very size.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from threading import Lock
from typing import Final

from ansorlite.errors import ModelError
from ansorlite.graph.bounded import bounded, by_size
from ansorlite.graph.cases import Case, Growth
from ansorlite.graph.dag_operator import DagOperator
from ansorlite.graph.describe import Use, applied
from ansorlite.graph.dimensions import Dimensions, Shapes, Specialize, sizes_of
from ansorlite.graph.fellows import Fellows
from ansorlite.graph.graph import Array, Graph
from ansorlite.graph.hybrid import HybridModel
from ansorlite.graph.in_place import RowInput, reading_in_place, row_inputs
from ansorlite.graph.memo import Memo
from ansorlite.graph.passes.cleanup import eliminate_dead_nodes
from ansorlite.te.dag import ComputeDAG

#: Programs of a model that are kept, and graphs for other sizes.
KEEP: Final = 16

#: Operations of a program that is given its size, as a multiple of those for the size itself, up to which it is made at once.
#: What masks take part in counts twice: it is slower than without.
_CHEAP: Final = 1.25

#: Else so many sizes have programs of their own first: who calls with one or two has the fastest.
_OWN_PROGRAMS: Final = 2


@dataclass(frozen=True)
class Route:
    """How to run one set of sizes and values.

    Attributes:
        program: the key of the program.
        made_for: what the program is made of.
        padded: input → the larger shape that the program takes.
        rows: inputs that it reads in place.
        cropped: output → what counts of what the program gives.
        sizes: the program's inputs beside the model's, each a size.
    """

    program: Hashable
    made_for: Case
    padded: Shapes
    rows: tuple[RowInput, ...]
    cropped: Mapping[str, tuple[slice, ...]]
    sizes: Mapping[str, int]


@dataclass(frozen=True, eq=False)
class _Served:
    """A graph for a case, and the inputs of it that are sizes, each with the dimension whose it is."""

    graph: Graph
    inputs: Mapping[str, str]

    @property
    def digest(self) -> bytes:
        """Of all in which graphs of the same shapes and values may differ."""
        digest = hashlib.blake2b(digest_size=32)
        for node in self.graph.nodes if self.inputs else ():
            if isinstance(node.operator, DagOperator):
                digest.update(f"{node.output}\n{node.operator.key}\n".encode())
            elif node.operator is by_size:
                known = [self.graph.constants[name].tolist() for name in node.inputs if name in self.graph.constants]
                digest.update(f"{node.output}\n{known}\n".encode())
        return digest.digest()


class Router:
    """Finds routes, and the graphs that programs are made of. Any number of threads may ask at once."""

    def __init__(self, dimensions: Dimensions, specialize: Specialize, keep: int, *, in_place: bool) -> None:
        """
        Args:
            specialize: makes the model for given shapes and values.
            keep: how many graphs of it are kept.
            in_place: whether a program may read parts of the caller's memory.
        """
        self._dimensions = dimensions
        self._specialize = specialize
        self._reads_in_place = in_place
        self._lock = Lock()
        self._graphs: Memo[Graph | HybridModel] = Memo(keep)
        self._alone: frozenset[Hashable] = frozenset()
        self._together: dict[Hashable, tuple[str, ...]] = {}
        self._own: dict[Hashable, frozenset[int]] = {}
        self._fellows: dict[Hashable, Fellows] = {}

    def route(self, shapes: Shapes, values: Mapping[str, Array]) -> Route:
        """How to run the model on inputs of these shapes and values.

        Raises:
            ArgumentError: shapes that contradict the model, or one another.
            ModelError: the model has no meaning for them.
            ValuesNeededError: they are not enough to know all shapes.
        """
        # A program is made of them, and the caller's arrays may change.
        case = Case(shapes, sizes_of(self._dimensions.inputs, shapes), {name: array.copy() for name, array in values.items()})
        exact = self._specialized(case)
        if not isinstance(exact, Graph):
            return Route(case.key, case, {}, (), {}, {})
        with self._lock:
            self._fellows.setdefault(case.kind, Fellows()).see(case.sizes)
        served = _Served(exact, {})
        for dim in sorted(self._dimensions.names, key=lambda name: name not in self._dimensions.buckets):
            if not any(dim in growth.dims for growth in case.growths):
                case, served = self._grown(dim, case, served)
        larger = self._larger(case)
        rows = self._rows(case, served)
        placed = {row.name for row in rows}
        return Route(
            (larger.key, served.digest, rows),
            case,
            {name: shape for name, shape in larger.shapes.items() if shape != shapes[name] and name not in placed},
            rows,
            _crops(exact, served.graph),
            {name: case.sizes[dim] for name, dim in served.inputs.items()},
        )

    def graph(self, case: Case) -> Graph | HybridModel:
        """What a route's program is made of."""
        if not case.growths:
            return self._specialized(case)
        served = self._served(case)
        assert served is not None
        return reading_in_place(served.graph, self._rows(case, served))

    def _rows(self, case: Case, served: _Served) -> tuple[RowInput, ...]:
        """The inputs that are read where they are, if the graph is given sizes; GPUs get copies."""
        if not served.inputs or not self._reads_in_place:
            return ()
        smaller = case
        for growth in case.growths:
            smaller = self._at(smaller, growth, growth.sizes[0])
        return row_inputs(served.graph, smaller.shapes)

    # Filling up ----------------------------------------------------------------------------------------------------

    def _grown(self, dim: str, case: Case, served: _Served) -> tuple[Case, _Served]:
        """What serves the whole bucket of ``dim``, if that can be and pays; else what is given."""
        size = case.sizes[dim]
        upper = self._dimensions.bucket(dim, size)
        # What is known holds for calls of a kind: a dimension's fellow is another one for a first call than for the next.
        call = dim, case.kind
        known = call in self._together or dim in self._dimensions.buckets
        if (call, upper) in self._alone or (upper == size and not known):
            return case, served
        # At the upper end itself, the graph that serves the others is made of that end and of one element fewer.
        sizes = min(size, upper - 1), upper
        found = self._fillings(dim, sizes, case) if sizes[0] else []
        if not found:
            if 1 < size < upper:
                # Not asked again: that costs time, and other sizes of a bucket hardly have another answer. 1 may have one.
                with self._lock:
                    self._alone |= {(call, upper)}
            return case, served
        grown, larger = found[0] if len(found) == 1 else min(found, key=lambda each: _operations(each[1].graph))
        if larger.inputs.keys() != served.inputs.keys():
            if not self._pays(dim, case, served, larger):
                return case, served
            with self._lock:
                self._together[call] = grown.growths[-1].dims
        return grown, larger

    def _fillings(self, dim: str, sizes: tuple[int, int], case: Case) -> list[tuple[Case, _Served]]:
        """The ways to fill up ``dim``: with those that always changed as it did, alone, or else with another one."""
        taken = {other for growth in case.growths for other in growth.dims}
        with self._lock:
            beside = self._fellows[case.kind].of(dim)
            known = self._together.get((dim, case.kind))
        alone, fellows = (dim,), tuple(other for other in beside if other not in taken)
        ways = [known or alone]
        if fellows and known in (None, alone):
            ways.insert(0, (dim, *fellows))
        for way in ways:
            grown = replace(case, growths=(*case.growths, Growth(way, sizes)))
            served = self._served(grown)
            if served is not None:
                return [(grown, served)]
        if known is not None or self._made(self._larger(grown)) is not None:
            return []
        # By itself it has no meaning.
        pairs = [(dim, other) for other in self._dimensions.names if other not in {dim, *taken}]
        cases = [replace(case, growths=(*case.growths, Growth(pair, sizes))) for pair in pairs]
        return [(each, served) for each in cases if (served := self._served(each)) is not None]

    def _pays(self, dim: str, case: Case, served: _Served, larger: _Served) -> bool:
        """Whether a program that is given the size is to serve this one."""
        size, call = case.sizes[dim], (dim, case.kind)
        is_end = self._dimensions.bucket(dim, size) == size
        if not is_end and (dim in self._dimensions.buckets or call in self._together):
            return True
        if _operations(larger.graph) <= _CHEAP * _operations(served.graph):
            return True
        with self._lock:
            own = self._own[call] = self._own.get(call, frozenset()) | {size}
        return not is_end and len(own) > _OWN_PROGRAMS

    def _served(self, case: Case) -> _Served | None:
        """The graph of a case; ``None`` if there is none that serves it."""
        if not case.growths:
            graph = self._made(case)
            return _Served(graph, {}) if isinstance(graph, Graph) else None
        *before, growth = case.growths
        small, large = (self._served(replace(self._at(case, growth, size), growths=tuple(before))) for size in growth.sizes)
        if small is None or large is None or small.inputs != large.inputs:
            return None
        found = bounded(small.graph, large.graph, growth.dims[0], growth.sizes)
        if found is None:
            return None
        graph, size_input = found
        return _Served(graph, {**large.inputs, **({} if size_input is None else {size_input: growth.dims[0]})})

    def _larger(self, case: Case) -> Case:
        """The case of the shapes that a program takes."""
        for growth in case.growths:
            case = self._at(case, growth, growth.sizes[1])
        return replace(case, growths=())

    def _at(self, case: Case, growth: Growth, size: int) -> Case:
        """``case`` with another size of the growth's first dimension, and the others as much larger or smaller."""
        more = size - case.sizes[growth.dims[0]]
        if not more:
            return case
        sizes = {**case.sizes, **{dim: case.sizes[dim] + more for dim in growth.dims}}
        return replace(case, sizes=sizes, shapes={**case.shapes, **self._dimensions.shapes(sizes)})

    # Graphs of one size --------------------------------------------------------------------------------------------

    def _specialized(self, case: Case) -> Graph | HybridModel:
        return self._graphs.get(case.key, lambda: _without_dead_nodes(self._specialize(case.shapes, case.values)))

    def _made(self, case: Case) -> Graph | HybridModel | None:
        try:
            return self._specialized(case)
        except ModelError:
            # The model has a meaning for the sizes that were given, and none for the bucket's.
            return None


def _without_dead_nodes(found: Graph | HybridModel) -> Graph | HybridModel:
    """Shapes are computed by nodes that nothing needs once they are known."""
    return eliminate_dead_nodes(found) if isinstance(found, Graph) else found


def _crops(small: Graph, large: Graph) -> dict[str, tuple[slice, ...]]:
    shapes = {
        public: (small.values[name].shape, large.values[large.outputs[public]].shape) for public, name in small.outputs.items()
    }
    return {public: tuple(map(slice, few)) for public, (few, many) in shapes.items() if few != many}


def _operations(graph: Graph) -> int:
    """Operations on data, those of nodes that are given a size twice."""
    return sum(_operations_of(graph.use(node)) * (2 if isinstance(node.operator, DagOperator) else 1) for node in graph.nodes)


@lru_cache(maxsize=4096)
def _operations_of(use: Use) -> int:
    inputs, result = applied(*use)
    return 0 if result in inputs else ComputeDAG.of([*inputs, result]).flops
