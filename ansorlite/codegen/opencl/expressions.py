"""Expressions of the loop IR as OpenCL C."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable
from typing import Final

import numpy as np

from ansorlite.codegen.opencl.prelude import TYPES
from ansorlite.errors import TargetError
from ansorlite.loops.nodes import Buffer, Load, Scope
from ansorlite.te import dtypes
from ansorlite.te.expr import Binary, Cast, Const, Expr, Select, Unary, Var
from ansorlite.te.index.ranges import Interval, bounds
from ansorlite.te.ops import BINARY, INFIX, BinaryOp, UnaryOp
from ansorlite.te.traversal import walk

#: They wrap around: of signed integers C leaves it open what they do.
_WRAPPING: Final = (BinaryOp.ADD, BinaryOp.SUB, BinaryOp.MUL)
#: Functions of the prelude.
_CALLED: Final = {
    BinaryOp.FLOORDIV: "floordiv",
    BinaryOp.MOD: "mod",
    BinaryOp.SHL: "shl",
    BinaryOp.SHR: "shr",
}
_FUNCTIONS: Final = {
    UnaryOp.EXP: "exp",
    UnaryOp.LOG: "log",
    UnaryOp.SQRT: "sqrt",
    UnaryOp.TANH: "tanh",
    UnaryOp.ERF: "erf",
    UnaryOp.FLOOR: "floor",
    UnaryOp.CEIL: "ceil",
    UnaryOp.ROUND: "rint",
    UnaryOp.ABS: "fabs",
}


class Names:
    """C names of variables and buffers: each has one."""

    def __init__(self) -> None:
        self._known: dict[Var | Buffer, str] = {}

    def of(self, owner: Var | Buffer) -> str:
        if owner not in self._known:
            self._known[owner] = f"{re.sub(r'[^A-Za-z0-9]', '_', owner.name)}_{len(self._known)}"
        return self._known[owner]


class Expressions:
    """Prints expressions.

    Attributes:
        ranges: between what values the variables lie that are there.
        doubles: whether any of them had float64 by now.
    """

    def __init__(self, names: Names) -> None:
        self.names = names
        self.ranges: dict[Var, Interval] = {}
        self.doubles = False
        self._shared: dict[Expr, str] = {}
        self._count = 0

    def statement(self, roots: Iterable[Expr]) -> list[str]:
        """Definitions of what ``roots`` have in common, so that it is written, and computed, once."""
        self._shared = {}
        return self._definitions(list(roots))

    def _definitions(self, roots: list[Expr]) -> list[str]:
        lines: list[str] = []
        for node in self._common(roots):
            name, kind = self.fresh(), TYPES[node.dtype][0]
            if isinstance(node, Select) and self._branches(node):
                condition = self.text(node.cond)
                lines += [f"{kind} {name};", *self._arm(f"if ({condition}) {{", node.then, name)]
                lines += [*self._arm("else {", node.otherwise, name)]
            else:
                lines.append(f"const {kind} {name} = {self.text(node)};")
            self._shared[node] = name
        return lines

    def fresh(self) -> str:
        """A name that nothing has."""
        self._count += 1
        return f"s_{self._count - 1}"

    def _arm(self, head: str, value: Expr, name: str) -> list[str]:
        """What is done in one of two cases; what it defines is unknown behind it."""
        before = dict(self._shared)
        inside = [*self._definitions([value]), f"{name} = {self.text(value)};"]
        self._shared = before
        return [head, *(f"  {line}" for line in inside), "}"]

    def _common(self, roots: list[Expr]) -> list[Expr]:
        """Operands first. What is loaded under a condition is left there: such a choice is a branch if it would be long."""
        uses = Counter(child for node in _operands_first(roots) for child in node.children()) + Counter(roots)
        always: set[Expr] = set()
        waiting = list(roots)
        while waiting:
            node = waiting.pop()
            if node not in always and node not in self._shared:
                always.add(node)
                waiting += (node.cond,) if isinstance(node, Select) else node.children()
        return [
            node
            for node in _operands_first(roots)
            if node not in self._shared
            and not isinstance(node, Const | Var)
            and (
                (uses[node] > 1 and (node in always or not _loads(node)))
                or (isinstance(node, Select) and node in always and self._branches(node))
            )
        ]

    def _branches(self, select: Select) -> bool:
        """Whether an arm has loads that are used several times."""
        for arm in (select.then, select.otherwise):
            nodes = _operands_first([arm])
            uses = Counter(child for node in nodes for child in node.children())
            if any(uses[node] > 1 and _loads(node) for node in nodes):
                return True
        return False

    def text(self, expr: Expr) -> str:
        """C's text of a value."""
        if expr in self._shared:
            return self._shared[expr]
        if expr.dtype == "float64":
            self.doubles = True
        match expr:
            case Const():
                return self._literal(expr)
            case Var():
                return self.names.of(expr)
            case Load(buffer, indices):
                return self._loaded(buffer, self.place(buffer, indices))
            case Binary(op, a, b):
                return self._rounded(expr.dtype, self.binary(op, a.dtype, expr.dtype, self.text(a), self.text(b), expr))
            case Unary(op, a):
                return self._rounded(expr.dtype, self._unary(op, a))
            case Select(cond, then, otherwise):
                return f"({self.text(cond)} ? {self.text(then)} : {self.text(otherwise)})"
            case Cast(a, dtype):
                return self._cast(self.text(a), a.dtype, dtype)
        raise TypeError(f"not an expression of the loop IR: {expr!r}")

    def place(self, buffer: Buffer, indices: tuple[Expr, ...]) -> str:
        """An element, as C names it. Of PRIVATE buffers each thread has its own: the first index does not count."""
        pairs = list(zip(indices, buffer.strides, strict=True))
        if buffer.scope is Scope.PRIVATE:
            pairs = pairs[1:]
        terms = [self.text(index) if stride == 1 else f"{self.text(index)} * {stride}" for index, stride in pairs]
        return f"{self.names.of(buffer)}[{' + '.join(terms) or '0'}]"

    def stored(self, buffer: Buffer, value: str) -> str:
        """A value as it is in memory."""
        if buffer.dtype in dtypes.STORAGE_FLOATS:
            return f"store_{buffer.dtype}({value})"
        return f"(uchar)({value})" if buffer.dtype == "bool" else value

    def binary(self, op: BinaryOp, operands: str, dtype: str, x: str, y: str, whole: Binary | None = None) -> str:
        """``op`` on two texts.

        Args:
            operands: their dtype.
            whole: the expression, where there is one: what is known of indices makes them simpler.
        """
        kind = TYPES[operands][0]
        number = dtypes.is_integer(operands)
        if op in (BinaryOp.MIN, BinaryOp.MAX):
            return f"{op.value}({x}, {y})" if not dtypes.is_float(operands) else f"{op.value}imum_{kind}({x}, {y})"
        if number and op in _CALLED:
            if whole is not None and op in (BinaryOp.FLOORDIV, BinaryOp.MOD) and self._natural(whole):
                return f"({x} {'/' if op is BinaryOp.FLOORDIV else '%'} {y})"
            return f"{_CALLED[op]}_{kind}({x}, {y})"
        if op in _CALLED:
            return f"{_CALLED[op]}_{kind}({x}, {y})"
        if op is BinaryOp.POW:
            return f"power_{kind}({x}, {y})" if number else f"pow({x}, {y})"
        if op not in INFIX:
            raise TargetError(f"no OpenCL C is made for {op.value}: programs for the target opencl are derived without it")
        if number and op in _WRAPPING and not (whole is not None and self._exact(whole)):
            return f"(({kind})(({_unsigned(kind)}){x} {INFIX[op]} ({_unsigned(kind)}){y}))"
        text = f"({x} {INFIX[op]} {y})"
        return text if BINARY[op].boolean or not number else f"(({kind}){text})" if dtypes.size(dtype) < 4 else text

    def _natural(self, expr: Binary) -> bool:
        """Whether a quotient is one of numbers that are not negative by one that is positive."""
        return bounds(expr.a, self.ranges)[0] >= 0 and bounds(expr.b, self.ranges)[0] > 0

    def _exact(self, expr: Expr) -> bool:
        """Whether an index does not wrap around."""
        return expr.dtype == dtypes.INDEX and all(
            math.isfinite(bound) and abs(bound) < 1 << 62 for bound in bounds(expr, self.ranges)
        )

    def _unary(self, op: UnaryOp, a: Expr) -> str:
        text, kind = self.text(a), TYPES[a.dtype][0]
        if op is UnaryOp.NOT:
            return f"(!{text})"
        if op is UnaryOp.BITS:
            return f"store_bfloat16({text})"
        if dtypes.is_integer(a.dtype):
            match op:
                case UnaryOp.NEG:
                    return f"(({kind})(0 - ({_unsigned(kind)}){text}))"
                case UnaryOp.ABS if kind[0] != "u":
                    return f"(({kind})abs({text}))"
                case UnaryOp.ABS | UnaryOp.FLOOR | UnaryOp.CEIL | UnaryOp.ROUND:
                    return text
            raise TargetError(f"no OpenCL C is made for {op.value} of {a.dtype}")
        match op:
            case UnaryOp.NEG:
                return f"(-{text})"
            case UnaryOp.RSQRT:
                return f"(1 / sqrt({text}))"
            case UnaryOp.SIGMOID:
                return f"sigmoid_{kind}({text})"
        return f"{_FUNCTIONS[op]}({text})"

    def _cast(self, text: str, source: str, target: str) -> str:
        kind = TYPES[target][0]
        if source == target:
            return text
        if target == "bool":
            return f"({text} != 0)"
        if dtypes.is_float(source) and dtypes.is_integer(target):
            # What is no number becomes 0, which OpenCL only advises.
            return f"convert_{kind}_sat_rtz(number_{TYPES[source][0]}({text}))"
        return self._rounded(target, f"(({kind}){text})")

    @staticmethod
    def _rounded(dtype: str, text: str) -> str:
        return f"round_{dtype}({text})" if dtype in dtypes.STORAGE_FLOATS else text

    def _loaded(self, buffer: Buffer, place: str) -> str:
        if buffer.dtype == "float64":
            self.doubles = True
        return f"load_{buffer.dtype}({place})" if buffer.dtype in dtypes.STORAGE_FLOATS else place

    @staticmethod
    def _literal(expr: Const) -> str:
        dtype = expr.dtype
        if dtypes.is_float(dtype):
            with np.errstate(over="ignore"):
                value = float(dtypes.NUMPY[dtype].type(expr.value))
            suffix = "" if dtype == "float64" else "f"
            kind = TYPES[dtype][0]
            if math.isnan(value):
                return f"(({kind})NAN)"
            return f"({'-' if value < 0 else ''}({kind})INFINITY)" if math.isinf(value) else f"({value.hex()}{suffix})"
        if dtype == "bool":
            return str(int(expr.value))
        number = int(expr.value)
        if dtype == "int64":
            return f"(-{-(number + 1)}L - 1)" if number < 0 else f"{number}L"
        if dtype == "uint64":
            return f"{number}UL"
        return f"(({TYPES[dtype][0]}){number}L)"


def _operands_first(roots: Iterable[Expr]) -> list[Expr]:
    """Every node of ``roots`` once."""
    order: dict[Expr, None] = {}
    waiting: list[tuple[Expr, bool]] = [(root, False) for root in roots]
    while waiting:
        node, done = waiting.pop()
        if done:
            order[node] = None
        elif node not in order:
            waiting.append((node, True))
            waiting += [(child, False) for child in node.children()]
    return list(order)


def _loads(expr: Expr) -> bool:
    """Whether anything is loaded in it."""
    return any(isinstance(node, Load) for node in walk(expr))


def _unsigned(kind: str) -> str:
    return kind if kind[0] == "u" else f"u{kind}"
