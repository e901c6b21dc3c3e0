"""Sums of products of small numbers, which machines with dot-product instructions do several at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

from ansorlite.analysis.access import axes_of
from ansorlite.te.expr import Axis, Binary, Cast, Expr, Read, Reduce, Var
from ansorlite.te.index.affine import affine
from ansorlite.te.index.form import Affine
from ansorlite.te.index.ranges import bounds
from ansorlite.te.ops import DOTS, BinaryOp, ReduceOp
from ansorlite.te.tensor import Tensor
from ansorlite.te.traversal import free_vars, reads
from ansorlite.te.words import Pieces

#: A factor whose elements are used less often than this is not worth a copy of it as words.
_LEAST_REUSE = 4
#: The last word of a reduction may be padded by this share of it.
_MOST_PADDING = 0.34


@dataclass(frozen=True)
class Factor:
    """One factor of the products: a function of an element of one tensor, and perhaps of where it is.

    Attributes:
        value: the factor.
        read: the read of the element.
        dim: the only dimension of the tensor read that the dotted axis moves along, a step at a time.
        start: what its index is besides the axis.
        uses: how often each element is used.
    """

    value: Expr
    read: Read
    dim: int
    start: Affine
    uses: int

    @property
    def adjacent(self) -> bool:
        """Whether the steps of the dotted axis lie next to each other in memory."""
        return self.dim == self.read.tensor.ndim - 1

    @cached_property
    def places(self) -> dict[Axis, int]:
        """See :func:`places`."""
        return places(self.read)


@dataclass(frozen=True)
class DotProduct:
    """How a stage is ``sum(a * b)`` in words along ``axis``; ``a`` and ``b`` are in the order of the operands of ``op``."""

    op: BinaryOp
    axis: Axis
    a: Factor
    b: Factor

    @property
    def width(self) -> int:
        """How many steps of the axis are in a word."""
        return DOTS[self.op][0].count

    @property
    def words(self) -> int:
        """How many words the axis is; the last one may be padded."""
        return -(-self.axis.extent // self.width)


def dot_product(tensor: Tensor, ops: Sequence[BinaryOp]) -> DotProduct | None:
    """The best of the ways to compute ``tensor`` with dot products of words that pay; ``None`` if there is none.

    It pays where the elements of both factors are used again, and little of the last word is padding. Of several axes the best is
    one whose steps lie next to each other in memory, then the longest.

    Args:
        ops: the dot products that the machine has, the best first.
    """
    paying = (how for how in dot_products(tensor, ops) if _pays(how))
    return min(paying, key=lambda how: (not (how.a.adjacent or how.b.adjacent), -how.axis.extent), default=None)


def dot_products(tensor: Tensor, ops: Sequence[BinaryOp]) -> Iterator[DotProduct]:
    """All ways to compute ``tensor`` with dot products of words, whether they pay or not: by axis, then in the order of ``ops``.

    It must be an int32 sum of products, or a float32 sum of products of bfloat16; in both factors a reduce axis must move along
    one dimension, from the start of a word on, and their values must fit into the pieces of a word: integers by the dtypes of
    what they read, floats by being conversions of bfloat16. Zero points that are subtracted from the factors are part of these
    values.
    """
    body = tensor.body
    if not isinstance(body, Reduce) or body.op is not ReduceOp.SUM:
        return
    fitting = [op for op in ops if DOTS[op][0].sums == body.dtype]
    product = body.body
    if not fitting or not isinstance(product, Binary) or product.op is not BinaryOp.MUL:
        return
    elements = [element_read(value) for value in (product.a, product.b)]
    for axis in body.axes:
        factors = [_factor(tensor, value, read, axis) for value, read in zip((product.a, product.b), elements, strict=True)]
        found = [factor for factor in factors if factor is not None]
        for op in fitting if len(found) == len(factors) else ():
            for a, b in (found, reversed(found)):
                if all(_fits(factor, pieces, axis) for factor, pieces in zip((a, b), DOTS[op], strict=True)):
                    yield DotProduct(op, axis, a, b)
                    break


def has_rows(tensor: Tensor, factor: Factor) -> bool:
    """Whether the factor is the one with the rows of the product: the last dimension of ``tensor`` does not index it."""
    return free_vars(factor.read).isdisjoint(tensor.axes[-1:])


def steps_apart(tensor: Tensor, how: DotProduct) -> bool:
    """Whether the words of a row of the product do not lie side by side in memory, and no longer part of the sum does, as along a
    wide window over few channels."""
    apart = (factor.read for factor in (how.a, how.b) if has_rows(tensor, factor) and not factor.adjacent)
    return any(
        all(axis.extent < how.words for axis in tensor.reduce_axes if axis in free_vars(read.indices[-1])) for read in apart
    )


def words_dot(tensor: Tensor) -> BinaryOp | None:
    """The dot product of words that ``tensor`` is a sum of; ``None`` if it is none."""
    body = tensor.body
    product = body.body if isinstance(body, Reduce) and body.op is ReduceOp.SUM else None
    return product.op if isinstance(product, Binary) and product.op in DOTS else None


def _pays(how: DotProduct) -> bool:
    padding = how.words * how.width / how.axis.extent - 1
    return min(how.a.uses, how.b.uses) >= _LEAST_REUSE and padding <= _MOST_PADDING


def places(read: Read) -> dict[Axis, int]:
    """The axes that index a dimension of the tensor read alone, and from end to end, with these dimensions."""
    found: dict[Axis, int] = {}
    for dim, (index, extent) in enumerate(zip(read.indices, read.tensor.shape, strict=True)):
        form = affine(index)
        axis = form.plain if form is not None else None
        if isinstance(axis, Axis) and axis.extent == extent and axis not in found:
            found[axis] = dim
    return found


def element_read(value: Expr) -> Read | None:
    """The read that a factor is a function of: whatever else is in it (zero points, say) depends only on where that is."""
    for read in sorted(reads(value), key=lambda read: -len(free_vars(read))):
        known = places(read)
        stack, inside = [value], True
        while stack:
            node = stack.pop()
            inside = inside and (not isinstance(node, Var) or node in known)
            if node is not read:
                stack.extend(node.children())
        if inside and free_vars(read):
            return read
    return None


def _factor(tensor: Tensor, value: Expr, read: Read | None, axis: Axis) -> Factor | None:
    if read is None:
        return None
    at = [d for d, index in enumerate(read.indices) if axis in free_vars(index)]
    if len(at) != 1:
        return None
    form = affine(read.indices[at[0]])
    used = free_vars(read)
    uses = prod(other.extent for other in axes_of(tensor) if other not in used)
    if form is None or form.coefficients.get(axis) != 1:
        return None
    start = form + Affine(((axis, -1),), 0)
    return Factor(value, read, at[0], start, uses) if axis not in start.variables else None


def _fits(factor: Factor, pieces: Pieces, axis: Axis) -> bool:
    start = (*factor.start.coefficients.values(), factor.start.constant)
    if any(start) and (axis.extent % pieces.count or any(number % pieces.count for number in start)):
        return False
    return _holds(pieces, factor.value)


def _holds(pieces: Pieces, value: Expr) -> bool:
    """Whether a piece can be whatever ``value`` is."""
    if pieces.floats:
        return isinstance(value, Cast) and value.a.dtype == pieces.dtype
    least, greatest = bounds(value)
    return pieces.range[0] <= least and greatest <= pieces.range[1]
