"""Expressions and computations as text: readable, with the fewest parentheses, and one text for one meaning.

A subexpression that is used several times, or that is very long, is given a name after ``where``: the text of an
expression is never longer than its graph is large.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, Protocol

from ansorlite.te import dtypes
from ansorlite.te.expr import Binary, Cast, Const, Expr, Read, Reduce, Select, Unary, Var
from ansorlite.te.ops import BinaryOp, UnaryOp
from ansorlite.te.tensor import Tensor
from ansorlite.te.traversal import walk
from ansorlite.visible import visible

#: How tightly each infix operator binds, as in Python. The others are written as calls.
_PRECEDENCE: Final[dict[BinaryOp, int]] = {
    BinaryOp.OR: 1,
    BinaryOp.AND: 2,
    BinaryOp.EQ: 3,
    BinaryOp.NE: 3,
    BinaryOp.LT: 3,
    BinaryOp.LE: 3,
    BinaryOp.GT: 3,
    BinaryOp.GE: 3,
    BinaryOp.BITOR: 4,
    BinaryOp.BITXOR: 5,
    BinaryOp.BITAND: 6,
    BinaryOp.SHL: 7,
    BinaryOp.SHR: 7,
    BinaryOp.ADD: 8,
    BinaryOp.SUB: 8,
    BinaryOp.MUL: 9,
    BinaryOp.DIV: 9,
    BinaryOp.FLOORDIV: 9,
    BinaryOp.MOD: 9,
}
_COMPARISON: Final = 3
_NEGATION: Final = 10
_ATOM: Final = 11

_SUFFIX: Final[dict[str, str]] = {
    "int8": "i8",
    "int16": "i16",
    "int32": "i32",
    "uint8": "u8",
    "uint16": "u16",
    "uint32": "u32",
    "uint64": "u64",
    "float16": "f16",
    "bfloat16": "bf16",
    "float64": "f64",
}

#: A subexpression that is used more than once is named if its text is longer than this; ...
_SHARED_TEXT: Final = 16
#: ... one that is used once, if longer than this.
_LONG_TEXT: Final = 240


@dataclass
class Names:
    """Distinct names for tensors and axes: their own where these are distinct."""

    tensors: dict[Tensor, str] = field(default_factory=dict)
    axes: dict[Var, str] = field(default_factory=dict)

    def name_tensor(self, tensor: Tensor, wish: str | None = None) -> None:
        self.tensors[tensor] = _distinct(wish or tensor.name, self.tensors.values())

    def name_axes(self, axes: Iterable[Var]) -> None:
        """Name the axes of one compute; those of others do not matter, for they are never in one text."""
        self.axes = {}
        for axis in axes:
            self.name_axis(axis)

    def name_axis(self, axis: Var) -> None:
        """Name one more axis."""
        self.axes[axis] = _distinct(axis.name, self.axes.values())

    def array(self, node: Expr) -> str:
        """The name of what ``node`` reads an element of."""
        if not isinstance(node, Read):
            raise TypeError(f"a {type(node).__name__} is not a tensor expression")
        return self.tensors.get(node.tensor) or visible(node.tensor.name)


def _distinct(wish: str, taken: Iterable[str]) -> str:
    used = set(taken)
    wish = visible(wish)
    name, number = wish, 1
    while name in used:
        name, number = f"{wish}_{number}", number + 1
    return name


class Computation(Protocol):
    """What a :class:`~ansorlite.te.dag.ComputeDAG` is printed by; its key is made of such text, so this file is below it."""

    @property
    def tensors(self) -> tuple[Tensor, ...]: ...

    @property
    def outputs(self) -> tuple[Tensor, ...]: ...


def text(what: Computation | Tensor | Expr) -> str:
    """A computation, one line per tensor; or one tensor, or one expression, on a line."""
    names = Names()
    if isinstance(what, Expr):
        return expression(what, names)
    if isinstance(what, Tensor):
        return definition(what, names)
    for tensor in what.tensors:
        names.name_tensor(tensor)
    lines = []
    for tensor in what.tensors:
        line = definition(tensor, names)
        domain = ", ".join(f"{names.axes[axis]} in 0..{axis.extent}" for axis in tensor.axes)
        lines.append(f"{line} for {domain}" if domain else line)
    lines.append("return " + ", ".join(names.tensors[tensor] for tensor in what.outputs))
    return "\n".join(lines)


def definition(tensor: Tensor, names: Names) -> str:
    """``C[i, j] = ...``, or ``A: float32[4, 4]`` for a placeholder, ``W: constant float32[4]`` for one that never changes."""
    name = names.tensors.get(tensor, tensor.name)
    if tensor.body is None:
        return f"{name}: {'constant ' if tensor.constant else ''}{tensor.dtype}[{', '.join(map(str, tensor.shape))}]"
    names.name_axes((*tensor.axes, *tensor.reduce_axes))
    return f"{name}[{', '.join(names.axes[axis] for axis in tensor.axes)}] = {expression(tensor.body, names)}"


def expression(expr: Expr, names: Names) -> str:
    """One expression. Deep ones are no problem: nothing here recurses."""
    nodes = list(walk(expr))
    uses: Counter[Expr] | None = None
    done: dict[Expr, tuple[str, int]] = {}
    named: list[str] = []
    for node in nodes:
        piece, binding = _node(node, done, names)
        if len(piece) > _SHARED_TEXT and node is not expr:
            if uses is None:
                uses = Counter(child for user in nodes for child in user.children())
            if uses[node] > 1 or len(piece) > _LONG_TEXT:
                name = _distinct(f"x{len(named)}", {*names.axes.values(), *names.tensors.values()})
                named.append(f"{name} = {piece}")
                piece, binding = name, _ATOM
        done[node] = (piece, binding)
    result = done[expr][0]
    return f"{result} where {', '.join(named)}" if named else result


def _node(node: Expr, done: dict[Expr, tuple[str, int]], names: Names) -> tuple[str, int]:
    """The text of one node over its operands' texts, and how tightly it binds."""

    def within(operand: Expr, binding: int) -> str:
        piece, own = done[operand]
        return piece if own >= binding else f"({piece})"

    def listed(*operands: Expr) -> str:
        return ", ".join(done[operand][0] for operand in operands)

    match node:
        case Const():
            return constant(node), _ATOM
        case Var():
            return names.axes.get(node, node.name), _ATOM
        case Binary(op, a, b) if op in _PRECEDENCE:
            binding = _PRECEDENCE[op]
            # Left-associative; comparisons do not associate at all.
            left = binding + 1 if binding == _COMPARISON else binding
            return f"{within(a, left)} {op.value} {within(b, binding + 1)}", binding
        case Binary(op, a, b):
            return f"{op.value}({listed(a, b)})", _ATOM
        case Unary(UnaryOp.NEG, a):
            return (f"-({done[a][0]})" if isinstance(a, Const) else f"-{within(a, _NEGATION)}"), _NEGATION
        case Unary(op, a):
            return f"{op.value}({listed(a)})", _ATOM
        case Select():
            return f"if_then_else({listed(*node.children())})", _ATOM
        case Cast(a, dtype):
            return f"{dtype}({listed(a)})", _ATOM
        case Reduce(op, body, axes):
            domain = ", ".join(f"{names.axes.get(axis, axis.name)} in 0..{axis.extent}" for axis in axes)
            return f"{op.value}({listed(body)}, {domain})", _ATOM
        case _:
            return f"{names.array(node)}[{listed(*node.children())}]", _ATOM


def constant(node: Const) -> str:
    """A literal. The default dtypes, float32 and int64, go without saying; others are a suffix: ``3u8``, ``0.5f16``."""
    if node.dtype in ("bool", dtypes.INDEX):
        return str(node.value)
    if node.dtype == "float32":
        return str(dtypes.NUMPY["float32"].type(node.value))
    return f"{node.value!r}{_SUFFIX[node.dtype]}"
