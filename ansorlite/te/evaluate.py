"""The numpy meaning of a computation: what every program made from it must compute.

Every tensor is evaluated whole, over a grid with one dimension per axis (space axes, then reduce axes), along which an
axis is a broadcast range. Big grids are cut into blocks, so that memory stays bounded.

Rules that numpy leaves open:

* Sums and products of floats accumulate in float64 and are rounded once; integers wrap in their own dtype.
* ``if_then_else`` is lazy: a read in the arm that is not taken may be out of range. ``te.all`` and ``te.any`` are not.
* Integer division by zero gives what numpy gives (0), without a warning.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final, TypeAlias

import numpy as np

from ansorlite.errors import ArgumentError, ExpressionError
from ansorlite.te import dtypes
from ansorlite.te.contraction import Contraction, contract, contraction
from ansorlite.te.dag import ComputeDAG
from ansorlite.te.digits import parts
from ansorlite.te.expr import Axis, Binary, Cast, Const, Expr, Read, Reduce, Select, Unary, Var
from ansorlite.te.index.form import form_of
from ansorlite.te.index.ranges import Interval, span
from ansorlite.te.numeric import accumulator, apply, convert, identity
from ansorlite.te.ops import BINARY, COMBINE
from ansorlite.te.tensor import Tensor
from ansorlite.te.traversal import walk

Array: TypeAlias = np.ndarray[Any, Any]

#: Calls a function with each of some arguments, in any order.
_Map: TypeAlias = Callable[[Callable[[Any], None], Iterable[Any]], Iterable[None]]

#: Elements of the arrays that one step makes of a block: 32 MB of indices.
BLOCK_ELEMENTS: Final = 1 << 22


def evaluate(dag: ComputeDAG, arrays: Sequence[Array], threads: int = 1, single: bool = False) -> list[Array]:
    """The outputs of ``dag``, in call order, from its inputs, in call order.

    Args:
        threads: blocks that are evaluated side by side. The outputs are the same for any number.
        single: whether a sum of products of float32 may be made of parts that are rounded to float32. It takes half of the time,
            and is some hundred times as exact as programs have to be.

    Raises:
        ArgumentError: an array too many or too few, or of the wrong shape or dtype.
        ExpressionError: a read out of range that no ``if_then_else`` excludes.
    """
    _check_arguments(dag, arrays)
    values: dict[Tensor, Array] = dict(zip(dag.inputs, map(np.asarray, arrays), strict=True))
    with ExitStack() as stack:
        each: _Map = map if threads == 1 else stack.enter_context(ThreadPoolExecutor(threads)).map
        for tensor in dag.computes:
            values[tensor] = _evaluate_tensor(tensor, values, each, single)
    return [values[tensor] for tensor in dag.outputs]


def _check_arguments(dag: ComputeDAG, arrays: Sequence[Array]) -> None:
    if len(arrays) != len(dag.inputs):
        names = ", ".join(t.name for t in dag.inputs)
        raise ArgumentError(f"{len(arrays)} arrays given for {len(dag.inputs)} inputs ({names})")
    for tensor, array in zip(dag.inputs, arrays, strict=True):
        if np.shape(array) != tensor.shape:
            raise ArgumentError(f"the array for {tensor.name} has shape {np.shape(array)}; give one of shape {tensor.shape}")
        if np.asarray(array).dtype != dtypes.NUMPY[tensor.dtype]:
            raise ArgumentError(f"the array for {tensor.name} is {np.asarray(array).dtype}; convert it to {tensor.dtype}")


def _evaluate_tensor(tensor: Tensor, values: dict[Tensor, Array], each: _Map, single: bool) -> Array:
    assert tensor.body is not None
    result = np.empty(tensor.shape, dtypes.NUMPY[tensor.dtype])
    if isinstance(tensor.body, Reduce):
        for part in parts(tensor):
            if part.tensor is tensor:
                _reduce(tensor, values, result, each, single)
            else:
                reduced = np.empty(part.tensor.shape, result.dtype)
                _reduce(part.tensor, values, reduced, each, single)
                result[part.region] = reduced.reshape(result[part.region].shape)
        return result
    body = tensor.body

    def store(ranges: tuple[range, ...]) -> None:
        with np.errstate(all="ignore"):
            result[_slices(ranges)] = _Grid(tensor, tensor.axes, ranges, values).evaluate(body)[0]

    _finish(each(store, _blocks(tensor.shape, math.prod)))
    return result


def _reduce(tensor: Tensor, values: dict[Tensor, Array], result: Array, each: _Map, single: bool) -> None:
    """Store a reduction in ``result``, block by block of its space axes."""
    body = tensor.body
    assert isinstance(body, Reduce)
    axes = (*tensor.axes, *body.axes)
    accumulated = accumulator(body.op, body.dtype)
    product = contraction(tensor)
    combine = BINARY[COMBINE[body.op]].numpy
    blocks = _blocks(tuple(axis.extent for axis in axes), product.elements if product else math.prod)

    def part(ranges: tuple[range, ...]) -> Array:
        grid = _Grid(tensor, axes, ranges, values)
        return _contracted(grid, product, single) if product else _reduced(grid, body, tensor.ndim, accumulated)

    def store(group: list[tuple[range, ...]]) -> None:
        with np.errstate(all="ignore"):
            total = reduce(combine, map(part, group), identity(body.op, accumulated))
            result[_slices(group[0][: tensor.ndim])] = convert(total, tensor.dtype)

    # Blocks that differ in reduce axes alone follow one another.
    groups = (list(group) for _, group in itertools.groupby(blocks, lambda ranges: ranges[: tensor.ndim]))
    _finish(each(store, groups))


def _finish(done: Iterable[None]) -> None:
    """Wait for all of it, and raise what any of it raised."""
    for _ in done:
        pass


def _contracted(grid: _Grid, product: Contraction, single: bool) -> Array:
    a, b = grid.evaluate(product.a, product.b)
    return contract(a, b, product, grid.shape, single)


def _reduced(grid: _Grid, body: Reduce, ndim: int, accumulated: str) -> Array:
    (value,) = grid.evaluate(body.body)
    whole = np.broadcast_to(value, grid.shape)
    if body.dtype == "bfloat16":
        whole = whole.astype(np.float32)
    ufunc: Any = BINARY[COMBINE[body.op]].numpy
    return np.asarray(ufunc.reduce(whole, axis=tuple(range(ndim, whole.ndim)), dtype=dtypes.NUMPY[accumulated]))


# Blocks ----------------------------------------------------------------------------------------------------------


def _blocks(extents: tuple[int, ...], elements: Callable[[tuple[int, ...]], int]) -> Iterator[tuple[range, ...]]:
    """Cut the grid into blocks of at most ``BLOCK_ELEMENTS`` as ``elements`` counts them.

    Always in half, along the axis that saves most, the outermost of equals. A block of one point is never cut.
    """
    block = extents
    while elements(block) > BLOCK_ELEMENTS and max(block) > 1:
        halves = [(*block[:d], -(-extent // 2), *block[d + 1 :]) for d, extent in enumerate(block)]
        block = min(halves, key=elements)
    steps = [
        [range(begin, min(begin + size, extent)) for begin in range(0, extent, size)]
        for extent, size in zip(extents, block, strict=True)
    ]
    return itertools.product(*steps)


def _slices(ranges: tuple[range, ...]) -> tuple[slice, ...]:
    return tuple(slice(r.start, r.stop) for r in ranges)


# Expressions over a block ----------------------------------------------------------------------------------------


@dataclass
class _OutOfRange:
    """Where in the block a read is out of range (``where`` broadcasts over it), and what is read there."""

    where: Array
    tensor: Tensor
    dimension: int
    index: Array


class _Grid:
    """One block of a tensor's grid."""

    def __init__(self, tensor: Tensor, axes: tuple[Axis, ...], ranges: tuple[range, ...], values: dict[Tensor, Array]) -> None:
        self.tensor = tensor
        self.shape = tuple(len(r) for r in ranges)
        self._ranges: dict[Var, range] = dict(zip(axes, ranges, strict=True))
        self._dimension: dict[Var, int] = {axis: d for d, axis in enumerate(axes)}
        self._values = values

    def evaluate(self, *roots: Expr) -> list[Array]:
        """The values of expressions, each broadcastable to the block.

        Raises:
            ExpressionError: a read out of range that is executed.
        """
        order = list(dict.fromkeys(node for root in roots for node in walk(root)))
        uses = Counter(child for node in order for child in node.children())
        uses.update(roots)
        done: dict[Expr, Array] = {}
        wrong: dict[Expr, list[_OutOfRange]] = {}
        for node in order:
            done[node], faults = self._node(node, done, wrong)
            if faults:
                wrong[node] = faults
            for child in node.children():
                uses[child] -= 1
                if not uses[child]:
                    done.pop(child, None)
        for root in roots:
            for fault in wrong.get(root, ()):
                self._raise(fault)
        return [done[root] for root in roots]

    def _node(self, node: Expr, done: dict[Expr, Array], wrong: dict[Expr, list[_OutOfRange]]) -> tuple[Array, list[_OutOfRange]]:
        """A node's value over its operands', and the reads out of range that it depends on."""
        faults = [fault for child in node.children() for fault in wrong.get(child, ())]
        match node:
            case Const():
                return np.asarray(node.value, dtypes.NUMPY[node.dtype]), []
            case Var():
                block, shape = self._ranges[node], [1] * len(self.shape)
                shape[self._dimension[node]] = len(block)
                return np.arange(block.start, block.stop).reshape(shape), []
            case Binary(op, a, b, dtype):
                return np.asarray(apply(op, (done[a], done[b]), a.dtype, dtype)), faults
            case Unary(op, a, dtype):
                return np.asarray(apply(op, (done[a],), a.dtype, dtype)), faults
            case Cast(a, dtype):
                return np.asarray(convert(done[a], dtype)), faults
            case Select(cond, then, otherwise):
                taken = done[cond]
                faults = [*wrong.get(cond, ()), *_limited(wrong.get(then, []), taken)]
                faults += _limited(wrong.get(otherwise, []), ~taken)
                return np.where(taken, done[then], done[otherwise]), faults
            case Read():
                value, own = self._read(node, done)
                return value, [*faults, *own]
            case _:
                raise TypeError(f"a {type(node).__name__} is not a tensor expression")

    def _read(self, read: Read, done: dict[Expr, Array]) -> tuple[Array, list[_OutOfRange]]:
        array = self._values[read.tensor]
        if not read.indices:
            return array, []
        view = self._view(read, array)
        if view is not None:
            return view, []
        faults = []
        indices = []
        for dimension, (index, extent) in enumerate(zip(read.indices, read.tensor.shape, strict=True)):
            where = done[index]
            if where.min() < 0 or where.max() >= extent:
                faults.append(_OutOfRange((where < 0) | (where >= extent), read.tensor, dimension, where))
                where = np.clip(where, 0, extent - 1)
            indices.append(where)
        return np.asarray(array[tuple(indices)]), faults

    def _view(self, read: Read, array: Array) -> Array | None:
        """The read as a view, without a gather, if its indices are affine and within range."""
        shape, strides, starts = [1] * len(self.shape), [0] * len(self.shape), []
        for index, extent, stride in zip(read.indices, array.shape, array.strides, strict=True):
            form = form_of(index)
            if not form.over_variables:
                return None
            start = form.constant
            ends: dict[Expr, Interval] = {}
            for term, coefficient in form.terms:
                assert isinstance(term, Var)
                block, dimension = self._ranges[term], self._dimension[term]
                ends[term] = block[0], block[-1]
                start += coefficient * block[0]
                shape[dimension] = len(block)
                strides[dimension] += coefficient * stride
            low, high = span(form, ends)
            if low < 0 or high >= extent:
                return None
            starts.append(slice(start, None))
        return np.lib.stride_tricks.as_strided(array[tuple(starts)], shape, strides, writeable=False)

    def _raise(self, fault: _OutOfRange) -> None:
        index = np.broadcast_to(fault.index, fault.where.shape)[fault.where][0]
        raise ExpressionError(
            f"index {fault.dimension} of {fault.tensor.name} is {index} in {self.tensor.name}, but its extent is "
            f"{fault.tensor.shape[fault.dimension]}; guard the read with te.if_then_else"
        )


def _limited(faults: list[_OutOfRange], taken: Array) -> list[_OutOfRange]:
    """The faults that remain when only the elements where ``taken`` are executed."""
    limited = []
    for fault in faults:
        where = fault.where & taken
        if where.any():
            limited.append(_OutOfRange(where, fault.tensor, fault.dimension, fault.index))
    return limited
