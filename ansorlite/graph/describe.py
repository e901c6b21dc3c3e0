"""What is known of an operator from its tensor expression alone: result shape and dtype, and how it touches its inputs.

No table says which operators are element-wise: their definitions do.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import Any, TypeAlias

from ansorlite import te
from ansorlite.te import dtypes
from ansorlite.te.expr import Axis, Const, Read, Reduce
from ansorlite.te.tensor import Tensor
from ansorlite.te.traversal import bare_axes, reads

Operator: TypeAlias = Callable[..., Tensor]


@dataclass(frozen=True)
class Value:
    """Shape and dtype of a value."""

    shape: tuple[int, ...]
    dtype: str

    def __str__(self) -> str:
        return f"{self.dtype}[{'x'.join(map(str, self.shape))}]"

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * dtypes.size(self.dtype)


class Pattern(Enum):
    """How an operator touches its inputs."""

    ELEMENTWISE = "each element from the elements at the same place; inputs may be broadcast"
    INJECTIVE = "each element from a few elements somewhere: transpose, concat, slice, pad, gather"
    REDUCTION = "elements are folded: matmul, convolution, pooling, softmax, norms"


@dataclass(frozen=True)
class Description:
    """Facts of an operator on inputs of given shapes.

    Attributes:
        value: shape and dtype of the result.
        pattern: how it touches its inputs.
        aligned: per input, whether it has the result's shape and is read at the result's own place only.
        by_place: whether an element depends on its place itself, not only on what is read there (a triangle of a matrix).
    """

    value: Value
    pattern: Pattern
    aligned: tuple[bool, ...]
    by_place: bool


#: An operator, what it is applied to, and its attributes: all that the facts of a node depend on.
Use: TypeAlias = tuple[Operator, tuple[Value, ...], tuple[tuple[str, Any], ...]]


@lru_cache(maxsize=4096)
def describe(operator: Operator, inputs: tuple[Value, ...], attributes: tuple[tuple[str, Any], ...]) -> Description:
    """The facts of ``operator(*inputs, **attributes)``.

    Raises:
        ExpressionError: the operator refuses them.
    """
    tensors, result = applied(operator, inputs, attributes)
    stages = _stages(result)
    pattern, aligned = _pattern(result, tensors, stages)
    by_place = any(next(bare_axes(stage.body), None) is not None for stage in stages if stage.body is not None)
    return Description(Value(result.shape, result.dtype), pattern, aligned, by_place)


def applied(
    operator: Operator, inputs: tuple[Value, ...], attributes: tuple[tuple[str, Any], ...]
) -> tuple[list[Tensor], Tensor]:
    """Placeholders for ``inputs``, and what the operator makes of them.

    Raises:
        ExpressionError: the operator refuses them.
    """
    tensors = [te.placeholder(value.shape, value.dtype, name=f"input {n}") for n, value in enumerate(inputs)]
    return tensors, operator(*tensors, **dict(attributes))


def _stages(result: Tensor) -> list[Tensor]:
    """The computes behind ``result``."""
    found: dict[Tensor, None] = {}
    stack = [result]
    while stack:
        tensor = stack.pop()
        if tensor.body is not None and tensor not in found:
            found[tensor] = None
            stack.extend(read.tensor for read in reads(tensor.body))
    return list(found)


def _pattern(result: Tensor, inputs: list[Tensor], stages: list[Tensor]) -> tuple[Pattern, tuple[bool, ...]]:
    nowhere = (False,) * len(inputs)
    if any(isinstance(stage.body, Reduce) for stage in stages):
        return Pattern.REDUCTION, nowhere
    if len(stages) != 1 or result.body is None:
        return Pattern.INJECTIVE, nowhere
    touched = reads(result.body)
    if not all(_is_broadcast(read, result.axes) for read in touched):
        return Pattern.INJECTIVE, nowhere
    aligned = tuple(t.shape == result.shape and all(r.indices == result.axes for r in touched if r.tensor is t) for t in inputs)
    return Pattern.ELEMENTWISE, aligned


def _is_broadcast(read: Read, axes: tuple[Axis, ...]) -> bool:
    """Whether the read is at ``axes``, last dimension to last, with 0 for some."""
    own = axes[len(axes) - len(read.indices) :]
    return len(read.indices) <= len(axes) and all(
        index is axis or (isinstance(index, Const) and index.value == 0) for index, axis in zip(read.indices, own, strict=True)
    )
