"""A computation as plain data: drawn, evaluated by the oracle, translated into ``te``. Its ``repr`` makes it again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True)
class Number:
    """A literal."""

    value: bool | int | float
    dtype: str

    def __repr__(self) -> str:
        value = f"float({str(self.value)!r})" if isinstance(self.value, float) else repr(self.value)
        return f"Number({value}, {self.dtype!r})"


@dataclass(frozen=True)
class Axis:
    """An axis of the stage: its space axes are numbered first, then those that are reduced."""

    number: int


@dataclass(frozen=True)
class Apply:
    """An operation, by the name that ``te`` has for it. Operands of several dtypes are promoted as numpy does."""

    op: str
    operands: tuple[Node, ...]


@dataclass(frozen=True)
class Convert:
    operand: Node
    dtype: str


@dataclass(frozen=True)
class Choose:
    """``then if condition else otherwise``; the other arm may read what is not there."""

    condition: Node
    then: Node
    otherwise: Node


@dataclass(frozen=True)
class Element:
    """An element of an input or of an earlier stage."""

    tensor: str
    indices: tuple[Node, ...]


Node: TypeAlias = Number | Axis | Apply | Convert | Choose | Element


@dataclass(frozen=True)
class Input:
    """What is given.

    Attributes:
        extreme: the share of elements that are NaN, infinite, the greatest of their dtype, and the like.
        constant: whether it is the same in every call.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    extreme: float
    constant: bool = False


@dataclass(frozen=True)
class Stage:
    """A tensor that is computed.

    Attributes:
        fold: ``"sum"``, ``"prod"``, ``"max"`` or ``"min"`` over the axes of extents ``folded``; ``""``: element by element.
    """

    name: str
    shape: tuple[int, ...]
    body: Node
    fold: str = ""
    folded: tuple[int, ...] = ()


@dataclass(frozen=True)
class Plan:
    """A computation.

    Attributes:
        inputs: in call order, whether or not they are read.
        stages: each reads inputs and stages before it.
        outputs: names of stages.
        seed: of the inputs' elements.
    """

    inputs: tuple[Input, ...]
    stages: tuple[Stage, ...]
    outputs: tuple[str, ...]
    seed: int


def operands(node: Node) -> tuple[Node, ...]:
    match node:
        case Apply(_, nodes) | Element(_, nodes):
            return nodes
        case Convert(operand, _):
            return (operand,)
        case Choose(condition, then, otherwise):
            return condition, then, otherwise
        case _:
            return ()


def walk(node: Node) -> Iterator[Node]:
    yield node
    for operand in operands(node):
        yield from walk(operand)
