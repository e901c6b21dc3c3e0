"""How a stage's expression becomes an expression over buffers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from ansorlite.loops.nodes import Buffer, Load
from ansorlite.te.expr import Axis, Expr, Read
from ansorlite.te.tensor import Tensor
from ansorlite.te.traversal import rewrite

#: Where the element of a tensor at these coordinates is to be loaded from.
Reader: TypeAlias = Callable[[tuple[Expr, ...]], Expr]


def whole(buffer: Buffer) -> Reader:
    """The buffer holds all of the tensor."""
    return lambda indices: Load(buffer, indices, buffer.dtype)


def region(buffer: Buffer, corner: tuple[Expr, ...]) -> Reader:
    """The buffer holds the box of the tensor whose lower corner is ``corner``."""
    return lambda indices: Load(buffer, tuple(i - c for i, c in zip(indices, corner, strict=True)), buffer.dtype)


def fixed(buffer: Buffer, indices: tuple[Expr, ...]) -> Reader:
    """The buffer is laid out by loops: whatever the coordinates, the element wanted is at ``indices``."""
    return lambda _: Load(buffer, indices, buffer.dtype)


def on_buffers(expr: Expr, coordinates: Mapping[Axis, Expr], reads: Mapping[Tensor, Reader]) -> Expr:
    """``expr`` at ``coordinates``, reading from memory."""

    def rule(node: Expr) -> Expr | None:
        if isinstance(node, Axis):
            return coordinates[node]
        return reads[node.tensor](node.indices) if isinstance(node, Read) else None

    return rewrite(expr, rule)
