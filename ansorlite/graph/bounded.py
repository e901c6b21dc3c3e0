"""One graph for every size up to a bound, made of the graphs for two sizes.

    sum       y    = sum over k < 3 of x[k], and over k < 8        for n of 8:   sum over k < 8 of (x[k] if k < n else 0)
    concat    y[i] = x[i] if i < 3 else z[i - 3], and with 8        for n of 8:   x[i] if i < n else z[min(max(i - n, 0), 0)]
    mean      y    = sum / 3, and / 8                               for n of 8:   sum / n

Arrays have the extents of the larger graph, and hold what counts at their first places: a dimension of bounded dynamic size,
padded, as XLA has them. No operator is known by name: numbers that differ between both graphs' expressions become ``a * n + b``,
and what a reduction folds beyond the size is replaced by the reduction's identity. ``n`` is one more input.

The result is the larger graph where ``n`` is its size, and at the places that count the smaller one where ``n`` is that one's.
Whether it is right for a third size is not concluded from two: make it of that size and the same bound, and compare. As in
:mod:`ansorlite.graph.restriction`, whose argument this is, what is computed at places beyond does not matter, but it must not
read outside of a tensor: indices that the bound's own graph does not vouch for are clamped.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

import numpy as np

from ansorlite import te
from ansorlite.analysis.access import axes_of
from ansorlite.graph.dag_operator import DagOperator
from ansorlite.graph.describe import Use, Value, applied
from ansorlite.graph.graph import Array, Graph, Node
from ansorlite.graph.restriction import are_alike, compared, is_within, same_prefix
from ansorlite.te import dtypes
from ansorlite.te.expr import Axis, Binary, Cast, Const, Expr, Read, Reduce, Select, Unary, const
from ansorlite.te.index.form import Affine, form_of
from ansorlite.te.index.ranges import bounds
from ansorlite.te.index.simplify import IndexAlgebra
from ansorlite.te.numeric import identity
from ansorlite.te.ops import BinaryOp, ReduceOp
from ansorlite.te.tensor import Tensor
from ansorlite.te.traversal import free_vars, reads, rewrite

#: What the size is given as.
SIZE: Final = Value((), dtypes.INDEX)


def bounded(small: Graph, large: Graph, dim: str, sizes: tuple[int, int]) -> tuple[Graph, str | None] | None:
    """The graph that computes what ``small`` and ``large`` do, and the input that says for which size it does.

    Args:
        small, large: without nodes that nothing needs.
        dim: the dimension along which ``large`` is larger, for people.
        sizes: of this dimension, in both graphs.

    Returns:
        Without an input, and the graph then is ``large``, if the size matters nowhere. ``None`` if there is no such graph.
    """
    few, many = sizes
    if not are_alike(small, large):
        return None
    size = large.fresh(f"size of {dim}")
    nodes: list[Node] = []
    constants: dict[str, Array] = dict(large.constants)
    repeats = dict.fromkeys(small.inputs, True)
    for name, array in small.constants.items():
        other = large.constants[name]
        repeats[name] = array.shape == other.shape
        if not same_prefix(array, other):
            parts = _affine_parts(array, other, few, many)
            if parts is None:
                return None
            names = tuple(large.fresh(f"{name} {part}") for part in ("slopes", "bases"))
            constants |= dict(zip(names, parts, strict=True))
            del constants[name]
            nodes.append(Node(name, by_size, (*names, size), (("dtype", array.dtype.name),)))
    for node, other_node in zip(small.nodes, large.nodes, strict=True):
        uses = small.use(node), large.use(other_node)
        found = compared(*uses, tuple(repeats[name] for name in node.inputs))
        repeats[node.output] = bool(found)
        if found is None:
            operator = _bounded_operator(*uses, sizes)
            if operator is None:
                return None
            other_node = Node(node.output, operator, (*node.inputs, size), (), other_node.label)
        nodes.append(other_node)
    if not any(size in node.inputs for node in nodes):
        return large, None
    return Graph.of({**large.inputs, size: SIZE}, large.outputs, nodes, constants), size


def by_size(slopes: Tensor, bases: Tensor, size: Tensor, *, dtype: str) -> Tensor:
    """``slopes * size + bases``: integers that follow from a size."""
    return te.compute(slopes.shape, lambda *i: te.cast(slopes[i] * size[()] + bases[i], dtype), name="by_size")


def _affine_parts(small: Array, large: Array, few: int, many: int) -> tuple[Array, Array] | None:
    """What :func:`by_size` makes both of, if there is such a thing."""
    if small.shape != large.shape or small.dtype != large.dtype or not dtypes.is_integer(small.dtype.name):
        return None
    slopes, rests = np.divmod(large.astype(np.int64) - small.astype(np.int64), many - few)
    return None if rests.any() else (slopes, large - slopes * many)


@lru_cache(maxsize=1024)
def _bounded_operator(small: Use, large: Use, sizes: tuple[int, int]) -> DagOperator | None:
    (few, part), (many, whole) = applied(*small), applied(*large)
    size = te.placeholder(SIZE.shape, SIZE.dtype, "size")
    pairs = _Pairs(dict(zip(many, few, strict=True)), size, *sizes)
    try:
        result = pairs.tensor(part, whole)
    except _ApartError:
        return None
    inputs = (*many, size)
    return DagOperator.of(inputs, result)


class _ApartError(Exception):
    """Both graphs differ in more than numbers that follow from the size."""


class _Pairs:
    """The tensors of the larger operator, each with its counterpart, and what becomes of both."""

    def __init__(self, inputs: Mapping[Tensor, Tensor], size: Tensor, few: int, many: int) -> None:
        self._small = dict(inputs)
        self._made = {tensor: tensor for tensor in inputs}
        self._size = Read(size, (), size.dtype)
        self._few = few
        self._many = many

    def tensor(self, small: Tensor, large: Tensor) -> Tensor:
        """The tensor of ``large``'s extents that both are.

        Raises:
            _ApartError: there is none.
        """
        if large in self._small:
            if self._small[large] is not small:
                raise _ApartError
            return self._made[large]
        if small.body is None or large.body is None or not is_within(_value(small), _value(large)):
            raise _ApartError
        self._small[large] = small
        body = _Bodies(self, small, large).merged()
        self._made[large] = Tensor(large.name, large.shape, large.dtype, large.axes, body)
        return self._made[large]

    def number(self, small: Const, large: Const) -> Expr:
        """A number that is both.

        Raises:
            _ApartError: it does not follow from the size, by a slope and a base.
        """
        if small is large:
            return large
        if small.dtype != large.dtype or small.dtype == "bool":
            raise _ApartError
        if not dtypes.is_float(small.dtype):
            whole = self._affine(int(small.value), int(large.value))
            return whole if small.dtype == dtypes.INDEX else te.cast(whole, small.dtype)
        kind: Any = dtypes.NUMPY[small.dtype].type
        for inverted in (False, True):
            # A mean divides by how many there are, or multiplies by its reciprocal.
            numbers = [1 / number.value if inverted and number.value else float(number.value) for number in (small, large)]
            if not all(map(np.isfinite, numbers)):
                continue
            ends = [round(number) for number in numbers]
            same = all(
                (kind(1) / kind(end) if inverted and end else kind(end)) == kind(number.value)
                for end, number in zip(ends, (small, large), strict=True)
            )
            if same:
                whole = te.cast(self._affine(*ends), small.dtype)
                return te.cast(1, small.dtype) / whole if inverted else whole
        raise _ApartError

    def _affine(self, small: int, large: int) -> Expr:
        slope, rest = divmod(large - small, self._many - self._few)
        if rest:
            raise _ApartError
        return Affine(((self._size, slope),) if slope else (), large - slope * self._many).expr()

    def is_less(self, merged: Expr, large: Expr) -> bool:
        """Whether a merged number is never greater than that of the larger graph."""
        form = form_of(merged)
        rising = all(term is self._size and slope > 0 for term, slope in form.terms)
        return merged is large or (rising and isinstance(large, Const))


class _Bodies:
    """Two bodies, which become one."""

    def __init__(self, pairs: _Pairs, small: Tensor, large: Tensor) -> None:
        self._pairs = pairs
        self._few, self._many = (IndexAlgebra(axes_of(tensor)).simplify(_body(tensor)) for tensor in (small, large))
        self._axes: dict[Axis, Axis] = dict(zip(axes_of(large), axes_of(small), strict=False))
        self._done: dict[tuple[Expr, Expr, bool], Expr] = {}

    def merged(self) -> Expr:
        """The body over the larger one's axes."""
        few, many = self._few, self._many
        if not isinstance(many, Reduce):
            return self._merge(few, many, vouched=True)
        if not isinstance(few, Reduce) or (few.op, few.dtype, len(few.axes)) != (many.op, many.dtype, len(many.axes)):
            raise _ApartError
        body = self._merge(few.body, many.body, vouched=True)
        for axis, other in zip(few.axes, many.axes, strict=True):
            if axis.extent != other.extent:
                end = self._pairs.number(Const(axis.extent, dtypes.INDEX), Const(other.extent, dtypes.INDEX))
                factors = (_factors(body, other) if many.op is ReduceOp.SUM else None) or ()
                if len(factors) < 2:
                    body = te.if_then_else(other < end, body, const(identity(many.op, many.dtype), many.dtype))
                else:
                    zeroed: dict[Expr, Expr] = {read: _zeroed(read, other, end) for read in factors}
                    body = rewrite(body, zeroed.get)
        return Reduce(many.op, body, many.axes, many.dtype)

    def _merge(self, few: Expr, many: Expr, vouched: bool) -> Expr:
        """
        Args:
            vouched: whether this is executed nowhere but where the larger graph, at these axes, executes it too.
        """
        key = few, many, vouched
        if key not in self._done:
            self._done[key] = self._merged(few, many, vouched)
        return self._done[key]

    def _merged(self, few: Expr, many: Expr, vouched: bool) -> Expr:
        match few, many:
            case Axis(), Axis() if self._axes.get(many) is few:
                return many
            case Const(value=0), Axis() if many in self._axes and self._axes[many].extent == 1:
                return many
            case Const(), Const():
                return self._pairs.number(few, many)
            case Read(), Read():
                return self._read(few, many, vouched)
            case Select(), Select() if few.dtype == many.dtype:
                cond = self._merge(few.cond, many.cond, vouched)
                then = self._merge(few.then, many.then, vouched and self._implies(cond, many.cond))
                otherwise = self._merge(few.otherwise, many.otherwise, vouched and self._implies(many.cond, cond))
                return Select(cond, then, otherwise, many.dtype)
            case (Binary(op), Binary(same)) | (Unary(op), Unary(same)) if op is same and few.dtype == many.dtype:
                pass
            case Cast(), Cast() if few.dtype == many.dtype:
                pass
            case _:
                raise _ApartError
        both = zip(few.children(), many.children(), strict=True)
        return many.with_children(tuple(self._merge(a, b, vouched) for a, b in both))

    def _read(self, few: Read, many: Read, vouched: bool) -> Expr:
        tensor = self._pairs.tensor(few.tensor, many.tensor)
        indices = []
        for a, b, extent in zip(few.indices, many.indices, tensor.shape, strict=True):
            index = self._merge(a, b, vouched)
            # What data name is garbage at places beyond.
            known = vouched and index is b and not reads(b)
            indices.append(index if known else _clamped(index, extent))
        return Read(tensor, tuple(indices), tensor.dtype)

    def _implies(self, cond: Expr, other: Expr) -> bool:
        """Whether ``other`` holds where ``cond`` does, of which one is merged, the other the larger graph's."""
        match cond, other:
            case _ if cond is other:
                return True
            case Binary(BinaryOp.AND, a, b), Binary(BinaryOp.AND, c, d):
                return self._implies(a, c) and self._implies(b, d)
            case Binary((BinaryOp.LT | BinaryOp.LE) as op, a, end), Binary(same, b, bound) if op is same and a is b:
                return self._pairs.is_less(end, bound)
            case Binary((BinaryOp.GT | BinaryOp.GE) as op, a, bound), Binary(same, b, end) if op is same and a is b:
                return self._pairs.is_less(end, bound)
        return False


def _factors(body: Expr, axis: Axis) -> list[Read] | None:
    """The factors of a product, if each is an element at ``axis``; where all are zero, so is the product.

    Masked by themselves they are what a padded operand is: to be packed, and multiplied without a condition.
    """
    match body:
        case Binary(BinaryOp.MUL, a, b):
            left, right = _factors(a, axis), _factors(b, axis)
            return None if left is None or right is None else left + right
        case Cast(a):
            return _factors(a, axis)
        case Read(_, indices) if [index for index in indices if axis in free_vars(index)] == [axis]:
            return [body]
    return None


def _zeroed(read: Read, axis: Axis, end: Expr) -> Read:
    """An element of the tensor that is zero from ``end`` on along the dimension that is read at ``axis``."""
    tensor, dimension = read.tensor, next(d for d, index in enumerate(read.indices) if index is axis)

    def element(*places: Expr) -> Expr:
        return te.if_then_else(places[dimension] < end, tensor[places], const(0, tensor.dtype))

    return Read(te.compute(tensor.shape, element, name=f"{tensor.name}_within"), read.indices, read.dtype)


def _value(tensor: Tensor) -> Value:
    return Value(tensor.shape, tensor.dtype)


def _body(tensor: Tensor) -> Expr:
    assert tensor.body is not None
    return tensor.body


def _clamped(index: Expr, extent: int) -> Expr:
    """``index`` as it is where a tensor of ``extent`` has it, else the nearest one that it has."""
    least, greatest = bounds(index)
    if least < 0:
        index = te.maximum(index, 0)
    return te.minimum(index, extent - 1) if greatest >= extent else index
