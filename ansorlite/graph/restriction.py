"""Whether a graph is another one on fewer elements, so that the larger one can stand in for it.

A model made for 3 rows is the model made for 4 rows on the first three of them, unless rows depend on one another or on their
number. Nothing is assumed about operators: both graphs' tensor expressions are compared, node by node.

    rows       y[i, j] = sum over k < 8 of x[i, k] * w[k, j]      for i < 3, and for i < 4:      the same expression
    softmax    s[i]    = sum over k < 3 of exp(x[k, i])           k < 3, and k < 4:              not the same
    flip       y[i]    = x[2 - i]                                 x[2 - i], and x[3 - i]:        not the same

Why this is enough: say that each input of the large graph holds the small graph's input at its first places. If an element's
expression is the same in both graphs, constants and reduced extents included, it reads the same places in both; the small
graph is legal, so these are places that the small tensors have, where by induction both hold the same values. Expressions are
compared as index arithmetic simplifies them where the small tensor has elements, so that it does not matter how they are written.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from ansorlite.analysis.access import axes_of
from ansorlite.graph.describe import Use, Value, applied
from ansorlite.graph.graph import Array, Graph
from ansorlite.te.expr import Axis, Expr
from ansorlite.te.index.form import division
from ansorlite.te.index.simplify import IndexAlgebra
from ansorlite.te.ops import BinaryOp
from ansorlite.te.rewriting import translated
from ansorlite.te.tensor import Tensor
from ansorlite.te.traversal import bare_axes, reads, walk


def is_restriction(small: Graph, large: Graph) -> bool:
    """Whether ``large`` computes, at the first places of each output, what ``small`` does.

    The caller promises to give ``large`` the inputs of ``small`` at the first places, and beyond them, along each dimension,
    a repetition of the last place: then nothing that is computed there reads outside of a tensor.
    """
    if not are_alike(small, large):
        return False
    if not all(same_prefix(array, large.constants[name]) for name, array in small.constants.items()):
        return False
    repeats = dict.fromkeys(small.inputs, True)
    repeats |= {name: array.shape == large.constants[name].shape for name, array in small.constants.items()}
    for node, other in zip(small.nodes, large.nodes, strict=True):
        flags = tuple(repeats[name] for name in node.inputs)
        found = compared(small.use(node), large.use(other), flags)
        if found is None:
            return False
        repeats[node.output] = found
    return True


def are_alike(small: Graph, large: Graph) -> bool:
    """Whether both have nodes that read the same values, by name, and the inputs of one fit into those of the other."""
    if small.outputs != large.outputs:
        return False
    if [(node.output, node.inputs) for node in small.nodes] != [(node.output, node.inputs) for node in large.nodes]:
        return False
    if small.inputs.keys() != large.inputs.keys() or small.constants.keys() != large.constants.keys():
        return False
    return all(is_within(small.values[name], large.values[name]) for name in small.inputs)


def is_within(small: Value, large: Value) -> bool:
    return small.dtype == large.dtype and _fits(small.shape, large.shape)


def _fits(small: tuple[int, ...], large: tuple[int, ...]) -> bool:
    return len(small) == len(large) and all(a <= b for a, b in zip(small, large, strict=True))


def same_prefix(small: Array, large: Array) -> bool:
    if small is large:
        return True
    if small.dtype != large.dtype or not _fits(small.shape, large.shape):
        return False
    return small.tobytes() == large[tuple(map(slice, small.shape))].tobytes()


@lru_cache(maxsize=4096)
def compared(small: Use, large: Use, repeats: tuple[bool, ...]) -> bool | None:
    """Whether the result repeats itself beyond the small one's places; ``None`` if it is not the small one at those.

    Args:
        repeats: whether each input does.
    """
    if small == large:
        return True
    (few, part), (many, whole) = applied(*small), applied(*large)
    pairs = _Pairs(dict(zip(many, few, strict=True)), dict(zip(many, repeats, strict=True)))
    return pairs.repeats[whole] if pairs.pair(part, whole) else None


@dataclass(frozen=True)
class _Pairs:
    """The tensors of the large operator that are known to hold those of the small one at their first places.

    Attributes:
        small: each with its counterpart.
        repeats: whether each element beyond those places is equal to one at those places.
    """

    small: dict[Tensor, Tensor]
    repeats: dict[Tensor, bool] = field(default_factory=dict)

    def pair(self, small: Tensor, large: Tensor) -> bool:
        """Whether ``large`` is such a tensor, with ``small`` as its counterpart."""
        if large in self.small:
            return self.small[large] is small
        if small.body is None or large.body is None or not _fits(small.shape, large.shape):
            return False
        few, many = reads(small.body), reads(large.body)
        if len(few) != len(many) or not all(self.pair(a.tensor, b.tensor) for a, b in zip(few, many, strict=True)):
            return False
        if not self._same(small, small.body, large, large.body):
            return False
        self.small[large] = small
        grown = {axis for axis, extent in zip(large.axes, small.shape, strict=True) if axis.extent != extent}
        body = IndexAlgebra(axes_of(large)).simplify(large.body)
        self.repeats[large] = not grown or self._repeated(body, grown)
        return not grown or self._in_range(body, grown)

    def _same(self, small: Tensor, body: Expr, large: Tensor, other: Expr) -> bool:
        """Whether both bodies are one expression of their axes, once tensors and axes are those of the small one."""
        if [axis.extent for axis in small.reduce_axes] != [axis.extent for axis in large.reduce_axes]:
            return False
        axes = dict(zip(axes_of(large), axes_of(small), strict=True))
        # What it simplifies is one node if it is surely equal wherever the axes go.
        algebra = IndexAlgebra(axes_of(small))
        return algebra.simplify(translated(other, axes, self.small)) is algebra.simplify(body)

    def _in_range(self, body: Expr, grown: set[Axis]) -> bool:
        """Whether what is read at places that data name is there beyond the small tensor's places, too.

        It is if these data are equal to some that the small graph reads by.
        """
        by_value = [(index, inner) for read in reads(body) for index in read.indices if (inner := reads(index))]
        return all(
            grown.isdisjoint(bare_axes(index)) and all(self.repeats[read.tensor] for read in inner) for index, inner in by_value
        )

    def _repeated(self, body: Expr, grown: set[Axis]) -> bool:
        """Whether an element beyond is surely one of those before, as what it follows from is."""
        if not grown.isdisjoint(bare_axes(body)):
            return False
        moving = [read for read in reads(body) if not grown.isdisjoint(axis for index in read.indices for axis in _axes(index))]
        if not moving:
            return True
        if len(moving) > 1:
            return False
        (read,) = moving
        shapes = zip(read.indices, self.small[read.tensor].shape, read.tensor.shape, strict=True)
        return self.repeats[read.tensor] and all(_is_monotonic(index) for index, few, many in shapes if few != many)


def _axes(expr: Expr) -> Iterator[Axis]:
    return (node for node in walk(expr) if isinstance(node, Axis))


def _is_monotonic(index: Expr) -> bool:
    """Whether it is an axis, or an axis divided by a number: the place in the first of several merged dimensions."""
    match division(index):
        case (BinaryOp.FLOORDIV, Axis(), _):
            return True
    return isinstance(index, Axis)
