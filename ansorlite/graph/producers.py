"""Producers join the task that reads them, where that saves memory traffic or a pass, and does not repeat much work.

Which groups may be one is asked of their tensor expressions, as one computation:

* what only moves elements (a transpose) may join anything that can read them where they were, a product's operand too, if the
  product can read it from a packed copy;
* what computes element by element may join what reads each element a few times, for fewer operations than storing costs: a
  softmax, a norm, a pooling, a mean, but no product, which would repeat them for each of its rows or columns;
* what folds rows (a mean, a sum of squares) may join the element-wise nodes that spread it over the same rows again.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from ansorlite.analysis.access import accesses
from ansorlite.analysis.predicates import (
    has_data_reuse,
    has_more_reduction_parallelism,
    is_expensive,
    is_simple,
    is_strictly_inlinable,
    moves_only,
    packable,
)
from ansorlite.graph.dependence import reuses_data
from ansorlite.graph.describe import Pattern
from ansorlite.graph.fusion import FusionGroup, tensors_of
from ansorlite.graph.graph import Graph, Node
from ansorlite.graph.movement import view_offset
from ansorlite.target import Target
from ansorlite.te.dag import ComputeDAG
from ansorlite.te.expr import Axis, Binary, Read, Unary
from ansorlite.te.ops import Cost, info
from ansorlite.te.rewriting import inline, tensor_named, with_unique_names
from ansorlite.te.tensor import Tensor
from ansorlite.te.traversal import free_vars, reads, walk

#: Storing an element and loading it again, from the third cache or memory, takes as long as so many operations of a vector unit.
_STORING: Final = 16
#: A function like ``exp`` counts as so many operations.
_FUNCTION: Final = 20
#: Elements that a transposed read may repeat (borders of a padding): it takes a cache line for each of them.
_REPEATED: Final = 1.25
#: A fold of fewer elements is quick on one thread.
_SMALL: Final = 1 << 14


def join_producers(graph: Graph, groups: Sequence[FusionGroup], target: Target) -> tuple[FusionGroup, ...]:
    """``groups`` with those that only one other reads in that one, where it pays.

    >>> before: a = [transpose](q); s = [matmul](a, k); b = [multiply, add](s, scale, mask); p = [softmax](b)
    >>> after:  s = [transpose, matmul](q, k); p = [multiply, add, softmax](s, scale, mask)
    """
    return _Joiner(graph, groups, target).joined()


class _Joiner:
    """Groups on their way to fewer.

    Attributes:
        known: output → group, in running order.
        answers: what was found of a producer and a group, for others of the same form.
    """

    def __init__(self, graph: Graph, groups: Sequence[FusionGroup], target: Target) -> None:
        self.graph = graph
        self.target = target
        self.known = {group.output: group for group in groups}
        self.rank = {node.output: position for position, node in enumerate(graph.nodes)}
        self.answers: dict[Hashable, bool] = {}

    def joined(self) -> tuple[FusionGroup, ...]:
        # Whatever joins a group brings its own producers within reach, and its inputs beside others'.
        changed = True
        while changed:
            changed = False
            for last in reversed(list(self.known)):
                while last in self.known and self.take_one_in(self.known[last]):
                    changed = True
        return tuple(self.known.values())

    def take_one_in(self, group: FusionGroup) -> bool:
        """Let one producer join ``group``, if one may."""
        inside = {node.output for node in group.nodes}
        for name in group.inputs:
            views = tuple(_views(self.graph, name))
            source = views[-1].inputs[0] if views else name
            producer = self.known.get(source)
            if producer is None or not _only_read_by(self.graph, source, inside | {view.output for view in views}):
                continue
            union = FusionGroup.of((*producer.nodes, *reversed(views), *group.nodes))
            # The place of the producer's last node says which of the nodes are its own.
            shared = self.shares_inputs(producer, group)
            key = (shared, len(producer.nodes), len(views), _form(self.graph, union))
            if key not in self.answers:
                self.answers[key] = _pays(self.graph, producer, views, group, shared, self.target)
            if self.answers[key]:
                del self.known[source]
                self.known[group.output] = FusionGroup.of(sorted(union.nodes, key=lambda node: self.rank[node.output]))
                return True
        return False

    def shares_inputs(self, producer: FusionGroup, group: FusionGroup) -> bool:
        """Whether both read a value; of the producer also through element-wise groups that may join it."""
        through = (self.known[name] for name in producer.inputs if name in self.known)
        chains = [each for each in through if _patterns(self.graph, each.nodes) == {Pattern.ELEMENTWISE}]
        return not set(producer.inputs).union(*(chain.inputs for chain in chains)).isdisjoint(group.inputs)


def _form(graph: Graph, group: FusionGroup) -> Hashable:
    """What a group computes, of what shapes, whatever its values are called."""
    numbers: dict[str, int] = {}
    for name in (*group.inputs, *(node.output for node in group.nodes)):
        numbers[name] = len(numbers)
    inputs = tuple((graph.values[name], name in graph.constants) for name in group.inputs)
    return inputs, tuple((node.operator, node.attributes, tuple(numbers[name] for name in node.inputs)) for node in group.nodes)


def _patterns(graph: Graph, nodes: Iterable[Node]) -> set[Pattern]:
    return {graph.descriptions[node.output].pattern for node in nodes}


def _views(graph: Graph, name: str) -> Iterator[Node]:
    """The views that ``name`` is of another value, the last first."""
    node = graph.producers.get(name)
    while node is not None and view_offset(graph, node) is not None and graph.only_consumer(node.output) is not None:
        yield node
        node = graph.producers.get(node.inputs[0])


def _only_read_by(graph: Graph, name: str, nodes: set[str]) -> bool:
    return name not in graph.outputs.values() and all(node.output in nodes for node in graph.consumers[name])


def _direct_readers(producer: FusionGroup, views: Sequence[Node], group: FusionGroup) -> Iterator[Node]:
    read = {producer.output, *(view.output for view in views)}
    return (node for node in group.nodes if not read.isdisjoint(node.inputs))


def _is_product(graph: Graph, node: Node) -> bool:
    """Whether a stage of the node reuses data."""
    return Pattern.REDUCTION in _patterns(graph, [node]) and reuses_data(*graph.use(node))


@dataclass(frozen=True, eq=False)
class _Union:
    """A producer and what reads it as one computation.

    Attributes:
        joining: the producer's stages, and those of the views of it.
        readers: the other stages that read one of these.
    """

    dag: ComputeDAG
    result: Tensor
    joining: tuple[Tensor, ...]
    readers: tuple[Tensor, ...]


def _pays(graph: Graph, producer: FusionGroup, views: Sequence[Node], group: FusionGroup, shared: bool, target: Target) -> bool:
    """Whether ``producer``, seen through ``views``, is better computed inside of ``group``.

    Args:
        shared: whether both read a value.
    """
    patterns = _patterns(graph, producer.nodes)
    folds = Pattern.REDUCTION in patterns
    if folds and (views or not shared):
        return False
    if Pattern.ELEMENTWISE in patterns and any(_is_product(graph, node) for node in _direct_readers(producer, views, group)):
        return False
    union = _union(graph, producer, views, group)
    if folds:
        return _spreads_rows(union, target)
    if all(moves_only(stage) for stage in union.joining):
        return _reads_in_place(union)
    if any(has_data_reuse(reader) for reader in union.readers):
        return False
    if any(has_data_reuse(stage) for stage in union.dag.computes) and any(is_expensive(stage) for stage in union.joining):
        return False
    return _costs_less_than_storing(graph, union, producer)


def _union(graph: Graph, producer: FusionGroup, views: Sequence[Node], group: FusionGroup) -> _Union:
    both = FusionGroup.of((*producer.nodes, *reversed(views), *group.nodes))
    tensors = tensors_of(graph, both)
    dag = ComputeDAG.of([*(tensors[name] for name in both.inputs), tensors[both.output]])
    part = ComputeDAG.of([*(tensors[name] for name in producer.inputs), tensors[views[0].output if views else producer.output]])
    joining = tuple(stage for stage in dag.computes if stage in part.computes)
    readers = tuple(
        stage for stage in dag.computes if stage not in joining and any(source in joining for source in dag.producers(stage))
    )
    return _Union(dag, tensors[producer.output], joining, readers)


def _spreads_rows(union: _Union, target: Target) -> bool:
    """Whether folds of rows are spread over these rows again, no product is near, and there are enough rows for all threads."""
    if any(has_data_reuse(stage) for stage in union.dag.computes):
        return False
    if math.prod(union.result.shape) >= math.prod(union.dag.outputs[0].shape):
        return False
    return all(not has_more_reduction_parallelism(stage, target.threads) or stage.iterations < _SMALL for stage in union.joining)


def _reads_in_place(union: _Union) -> bool:
    """Whether what is only moved can be read where it was: once by whoever loads it, or from a packed copy."""
    if not all(is_strictly_inlinable(union.dag, stage) for stage in union.joining):
        return False
    dag = with_unique_names(union.dag)
    names = dict(zip(union.dag.tensors, (tensor.name for tensor in dag.tensors), strict=True))
    for stage in union.joining:
        dag = inline(dag, names[stage])
    inputs = {access.tensor for stage in union.joining for access in accesses(stage)} - set(union.joining)
    moved = {names[tensor] for tensor in inputs}
    for reader in union.readers:
        stage = tensor_named(dag, names[reader])
        found = [access for access in accesses(stage) if access.tensor.name in moved]
        if has_data_reuse(stage):
            if not all(packable(access) and None not in access.dims for access in found):
                return False
        elif len(found) > 1 or stage.iterations > _REPEATED * math.prod(union.result.shape):
            return False
    return len(union.readers) == 1


def _costs_less_than_storing(graph: Graph, union: _Union, producer: FusionGroup) -> bool:
    """Whether all that the readers repeat of the producer's work takes less than storing and loading its result."""
    elements = max(1, math.prod(union.result.shape))
    times = sum(reader.iterations for reader in union.readers)
    if _patterns(graph, producer.nodes) != {Pattern.ELEMENTWISE}:
        return times <= _REPEATED * elements and all(_reads_plainly(stage) for stage in union.joining)
    operations = sum(math.prod(stage.shape) * _price(stage) for stage in union.joining) / elements
    return (times / elements - 1) * operations <= _STORING


def _reads_plainly(stage: Tensor) -> bool:
    """Whether every read is at axes as they are, or of whole rows whose places are data."""
    assert stage.body is not None
    lanes = stage.axes[-1] if stage.axes else None
    return all(
        is_simple(access) or _takes_rows(read, lanes) for read, access in zip(reads(stage.body), accesses(stage), strict=True)
    )


def _takes_rows(read: Read, lanes: Axis | None) -> bool:
    *places, last = read.indices
    return last is lanes and any(map(reads, places)) and all(lanes not in free_vars(place) for place in places)


def _price(stage: Tensor) -> int:
    """Operations for an element."""
    assert stage.body is not None
    nodes = [node for node in walk(stage.body) if isinstance(node, Binary | Unary)]
    return sum(_FUNCTION if info(node.op).cost is Cost.MATH else 1 for node in nodes)
