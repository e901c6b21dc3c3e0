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


class Checker:
    """Compares outputs with one reference, many times: what depends on the reference alone is computed once."""

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
            wrong = _wrong(output, reference, limit)
            count = int(np.count_nonzero(wrong))
            if count > self._allowed.jumping * wrong.size:
                first = tuple(int(i) for i in np.unravel_index(int(np.argmax(wrong)), wrong.shape))
                return (
                    f"{count} of {wrong.size} elements of {name} are wrong; the first, at {first}, "
                    f"is {output[first]} and should be {reference[first]}"
                )
        return ""


def _is_float(array: Array) -> bool:
    return dtypes.is_float(array.dtype.name)


def limit_of(reference: Array, relative: float) -> Array | None:
    """How far an output may be from each element of ``reference``; ``None`` if it must be equal."""
    if not _is_float(reference):
        return None
    limit: Array = np.empty(reference.shape, np.float64 if reference.dtype == np.float64 else np.float32)
    limits, values = limit.reshape(-1), reference.reshape(-1)
    count, squares = 0, []
    for place in _parts(limit.size):
        part = limits[place]
        np.abs(values[place].astype(limit.dtype, copy=False), out=part)
        finite = np.isfinite(part)
        part[~finite] = 0
        count += int(np.count_nonzero(finite))
        squares.append(float(np.sum(np.square(part, dtype=np.float64))))
    scale = math.sqrt(math.fsum(squares) / count) if count else 0.0
    for place in _parts(limit.size):
        limits[place] = relative * (limits[place] + scale)
    return limit


def _wrong(output: Array, reference: Array, limit: Array | None) -> Array:
    """Where ``output`` is further from ``reference`` than ``limit``. NaN and infinity must be where they should be."""
    if limit is None:
        return np.asarray(output != reference)
    wrong = np.empty(reference.size, np.bool_)
    outputs, references, limits = output.reshape(-1), reference.reshape(-1), limit.reshape(-1)
    with np.errstate(invalid="ignore", over="ignore"):
        for place in _parts(reference.size):
            ours, right = outputs[place], references[place]
            near = np.abs(np.subtract(ours, right, dtype=limit.dtype)) <= limits[place]
            if not near.all():
                near |= (ours == right) | (np.isnan(ours) & np.isnan(right))
            np.logical_not(near, out=wrong[place])
    return wrong.reshape(reference.shape)


def _parts(size: int) -> Iterator[slice]:
    """Of so many elements, one after another: what is made of a part stays in a cache, and fresh pages take long."""
    return (slice(begin, begin + _PART) for begin in range(0, size, _PART))
