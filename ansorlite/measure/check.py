"""Is a program's output right? Compared with the reference, within what rounding can explain."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np

from ansorlite.te import dtypes
from ansorlite.te.dag import ComputeDAG
from ansorlite.te.expr import Binary, Cast, Expr, Unary
from ansorlite.te.ops import BINARY, BinaryOp, UnaryOp
from ansorlite.te.traversal import walk

Array: TypeAlias = np.ndarray[Any, Any]

#: dtype -> (distance between 1 and the next number, how many of them one rounding step may be off, all in all).
#: The wide types get more, as vector versions of exp and tanh are a few units off where numpy's are not.
_ROUNDING: Final = {
    "float64": (2.0**-52, 64.0),
    "float32": (2.0**-23, 32.0),
    "float16": (2.0**-10, 4.0),
    "bfloat16": (2.0**-7, 4.0),
}

#: Where a result may jump (floor, a comparison of floats), this fraction of the elements may land on the other side.
_JUMPING_FRACTION: Final = 1e-3

#: Elements of a part: a few arrays of it fit into the second cache.
_PART: Final = 1 << 15


@dataclass(frozen=True)
class Tolerance:
    """What difference from the reference rounding can explain.

    Attributes:
        relative: of an element of the reference plus the root mean square of all of them; 0 means equality.
        jumping: which fraction of the elements may differ by any amount.
    """

    relative: float
    jumping: float


def tolerance(dag: ComputeDAG) -> Tolerance:
    """The tolerance for the outputs of ``dag``.

    Errors of a sum of K terms in another order grow as the square root of K; those of stages after one another add up.
    """
    floats = [tensor.dtype for tensor in dag.tensors if dtypes.is_float(tensor.dtype)]
    floats += [node.dtype for tensor in dag.computes for node in _nodes(tensor.body) if dtypes.is_float(node.dtype)]
    if not floats:
        return Tolerance(0.0, 0.0)
    unit, steps = max((_ROUNDING[dtype] for dtype in set(floats)), key=lambda rounding: rounding[0])
    growth = sum(math.sqrt(math.prod(axis.extent for axis in tensor.reduce_axes)) for tensor in dag.computes)
    jumps = any(_jumps(node) for tensor in dag.computes for node in _nodes(tensor.body))
    return Tolerance(unit * steps * max(growth, 1.0), _JUMPING_FRACTION if jumps else 0.0)


def _nodes(body: Expr | None) -> list[Expr]:
    return [] if body is None else list(walk(body))


def _jumps(node: Expr) -> bool:
    """Whether the node is not continuous in a float operand."""
    match node:
        case Unary(UnaryOp.FLOOR | UnaryOp.CEIL | UnaryOp.ROUND, _, _):
            return True
        case Binary(BinaryOp.FLOORDIV | BinaryOp.MOD, a, _, _):
            return dtypes.is_float(a.dtype)
        case Binary(op, a, _, _) if BINARY[op].boolean:
            return dtypes.is_float(a.dtype)
        case Cast(a, dtype):
            return dtypes.is_float(a.dtype) and not dtypes.is_float(dtype)
    return False


@dataclass(frozen=True)
class Limit:
    """How far elements of an output may be from the reference's.

    Attributes:
        relative: as in :class:`Tolerance`.
        scale: the root mean square of the reference, of what is finite there.
        finite: whether all of it is.
    """

    relative: float
    scale: float
    finite: bool

    def of(self, reference: Array) -> Array:
        """The distance for each of these elements: float64 where they are, else float32.

        It is not kept for all of them: to compute it again takes less than to read as much from memory."""
        values = reference.astype(_wide(reference), copy=False)
        limit: Array = np.abs(values)
        if not self.finite:
            limit[~np.isfinite(values)] = 0
        limit += self.scale
        limit *= self.relative
        return limit


class Checker:
    """Compares outputs with one reference, many times: what depends on all of the reference is computed once."""

    def __init__(self, names: Sequence[str], references: Sequence[Array], allowed: Tolerance) -> None:
        """
        Args:
            names: of the outputs, for messages.
            references: the outputs as they should be.
            allowed: what may differ.
        """
        self._names = names
        self._references = references
        self._limits = [limit_of(reference, allowed.relative) for reference in references]
        self._allowed = allowed

    def poison(self, outputs: Sequence[Array]) -> None:
        """Fill ``outputs`` with what is wrong everywhere, so that an element that is never written is found."""
        for output, reference in zip(outputs, self._references, strict=True):
            output[...] = np.nan if _is_float(reference) else np.invert(reference)

    def compare(self, outputs: Sequence[Array]) -> str:
        """What is wrong with ``outputs``, as one sentence; empty if nothing is."""
        for name, output, reference, limit in zip(self._names, outputs, self._references, self._limits, strict=True):
            count, place = _wrong(output.reshape(-1), reference.reshape(-1), limit)
            if count > self._allowed.jumping * reference.size:
                first = tuple(int(i) for i in np.unravel_index(place, reference.shape))
                return (
                    f"{count} of {reference.size} elements of {name} are wrong; the first, at {first}, "
                    f"is {output[first]} and should be {reference[first]}"
                )
        return ""


def _is_float(array: Array) -> bool:
    return dtypes.is_float(array.dtype.name)


def _wide(array: Array) -> type[np.floating[Any]]:
    """In which its elements are compared."""
    return np.float64 if array.dtype == np.float64 else np.float32


def limit_of(reference: Array, relative: float) -> Limit | None:
    """How far an output may be from ``reference``; ``None`` if it must be equal."""
    if not _is_float(reference):
        return None
    count, squares, values = 0, [], reference.reshape(-1)
    for place in _parts(values.size):
        part = values[place].astype(np.float64)
        if not np.isfinite(part).all():
            part = part[np.isfinite(part)]
        count += part.size
        squares.append(float(np.dot(part, part)))
    return Limit(relative, math.sqrt(math.fsum(squares) / count) if count else 0.0, count == values.size)


def _wrong(output: Array, reference: Array, limit: Limit | None) -> tuple[int, int]:
    """How many elements of ``output`` are wrong, and where the first of them is; both arrays are of one dimension."""
    count = first = 0
    with np.errstate(invalid="ignore", over="ignore"):
        for place in _parts(reference.size):
            right = _right(output[place], reference[place], limit)
            if not right.all():
                first = first if count else place.start + int(np.argmin(right))
                count += right.size - int(np.count_nonzero(right))
    return count, first


def _right(output: Array, reference: Array, limit: Limit | None) -> Array:
    """Where ``output`` is within the limit of ``reference``. NaN and infinity must be where they should be."""
    if limit is None:
        return np.asarray(output == reference)
    near: Array = np.abs(np.subtract(output, reference, dtype=_wide(reference))) <= limit.of(reference)
    if not near.all():
        near |= (output == reference) | (np.isnan(output) & np.isnan(reference))
    return near


def _parts(size: int) -> Iterator[slice]:
    """Of so many elements, one after another: what is made of a part stays in a cache, and fresh pages take long."""
    return (slice(begin, begin + _PART) for begin in range(0, size, _PART))
