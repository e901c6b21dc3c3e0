"""Vectorised loops as OpenCL C's vectors: where all lanes of an access are neighbours, one ``vload`` or ``vstore`` has them.

A statement is written so as a whole, or not at all. What it takes is in every driver. Numbers that memory has narrower than
values (float16, bfloat16) are only moved: their bits are.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import copysign
from typing import Final

from ansorlite.codegen.opencl.expressions import Expressions
from ansorlite.codegen.opencl.prelude import TYPES
from ansorlite.loops.nodes import Block, Buffer, For, If, Load, Scope, Stmt, Store, index
from ansorlite.te import dtypes
from ansorlite.te.expr import Binary, Cast, Const, Expr, Select, Unary, Var
from ansorlite.te.index.form import Affine, flat
from ansorlite.te.index.simplify import IndexAlgebra
from ansorlite.te.ops import BinaryOp, UnaryOp
from ansorlite.te.traversal import free_vars, substitute, walk

#: Elements that OpenCL C's vectors have.
LANES: Final = (2, 4, 8, 16)
_WRAPPING: Final = {BinaryOp.ADD: "+", BinaryOp.SUB: "-", BinaryOp.MUL: "*"}
_OF_FLOATS: Final = {**_WRAPPING, BinaryOp.DIV: "/"}
_FUNCTIONS: Final = {
    UnaryOp.EXP: "exp({})",
    UnaryOp.LOG: "log({})",
    UnaryOp.SQRT: "sqrt({})",
    UnaryOp.RSQRT: "(1 / sqrt({}))",
    UnaryOp.TANH: "tanh({})",
    UnaryOp.ERF: "erf({})",
    UnaryOp.FLOOR: "floor({})",
    UnaryOp.CEIL: "ceil({})",
    UnaryOp.ROUND: "rint({})",
    UnaryOp.ABS: "fabs({})",
    UnaryOp.NEG: "(-{})",
    UnaryOp.SIGMOID: "(1 / (1 + exp(-{})))",
}


class _ByElementError(Exception):
    """Something that is not written as a vector."""


def _indented(lines: Sequence[str]) -> list[str]:
    return [f"  {line}" for line in lines]


class Vectors:
    """Writes what iterations of a loop do at once.

    Attributes:
        chunk: a variable: which of the vectors it is.
        chunks: how many there are.
    """

    @staticmethod
    def of(e: Expressions, loop: For) -> Vectors | None:
        """``None``: the loop does not go in vectors."""
        if loop.lanes not in LANES or not isinstance(loop.extent, Const) or int(loop.extent.value) % loop.lanes:
            return None
        return Vectors(e, loop.var, int(loop.extent.value) // loop.lanes, loop.lanes)

    def __init__(self, e: Expressions, var: Var, chunks: int, lanes: int) -> None:
        self._e = e
        self._var = var
        self.chunk, self.chunks = Var(f"{var.name}s"), chunks
        e.ranges[self.chunk] = (0, chunks - 1)
        chunk = self.chunk
        self._at = [chunk * lanes + number for number in range(lanes)]
        self._lanes = lanes
        self._lines: list[str] = []
        self._known: dict[Expr, str] = {}
        self._algebra = IndexAlgebra()
        for known, (_, most) in e.ranges.items():
            self._algebra.bind(known, index(int(most) + 1))

    def lines(self, stmt: Stmt) -> list[str] | None:
        """What all lanes do of a statement; ``None``: its elements are to be written one by one."""
        self._e.statement(())
        try:
            return self._statement(stmt)
        except _ByElementError:
            return None

    def _statement(self, stmt: Stmt) -> list[str]:
        match stmt:
            case Block(body):
                return [line for child in body for line in self._statement(child)]
            case If(cond, body) if self._same(cond):
                return [f"if ({self._e.text(cond)}) {{", *_indented(self._statement(body)), "}"]
            case Store(buffer, _, value):
                self._lines, self._known = [], {}
                offset = self._row(stmt, buffer)
                if offset is None:
                    raise _ByElementError
                moved = self._moved(buffer, value)
                if moved is None:
                    if buffer.dtype in dtypes.STORAGE_FLOATS or buffer.dtype == "bool":
                        raise _ByElementError
                    moved = self._value(value)
                self._lines.append(f"vstore{self._lanes}({moved}, 0, {self._e.names.of(buffer)} + {offset});")
                return self._lines
        raise _ByElementError

    def _moved(self, buffer: Buffer, value: Expr) -> str | None:
        """What is loaded and stored as it is, as its bits lie in memory; zeros where a condition does not hold."""
        kind = f"{TYPES[buffer.dtype][1]}{self._lanes}"
        match value:
            case Load(source, _) if source.dtype == buffer.dtype and (offset := self._row(value, source)) is not None:
                return f"vload{self._lanes}(0, {self._e.names.of(source)} + {offset})"
            case Select(cond, Load() as load, Const(zero)) if zero == 0 and copysign(1.0, zero) > 0 and self._same(cond):
                moved = self._moved(buffer, load)
                # Only one side of a choice is computed.
                return None if moved is None else f"({self._e.text(cond)} ? {moved} : ({kind})(0))"
        return None

    def _same(self, expr: Expr) -> bool:
        """Whether it is the same for all lanes."""
        return self._var not in free_vars(expr)

    def _row(self, access: Load | Store, buffer: Buffer) -> str | None:
        """Where in the buffer the first lane's element is, if those of the others follow it."""
        if any(isinstance(node, Load) for at in access.indices for node in walk(at)):
            raise _ByElementError
        strides = (0, *buffer.strides[1:]) if buffer.scope is Scope.PRIVATE else buffer.strides
        whole = flat(access, strides).expr()
        forms: list[Affine] = [self._algebra.form(substitute(whole, {self._var: at})) for at in self._at]
        first = forms[0]
        if any((form.terms, form.constant) != (first.terms, first.constant + n) for n, form in enumerate(forms)):
            return None
        return self._e.text(first.expr())

    def _value(self, expr: Expr) -> str:
        """A vector of values, by a name of its own."""
        if expr in self._known:
            return self._known[expr]
        if expr.dtype in dtypes.STORAGE_FLOATS or expr.dtype == "bool":
            raise _ByElementError
        if expr.dtype == "float64":
            self._e.doubles = True
        kind, name = f"{TYPES[expr.dtype][0]}{self._lanes}", self._e.fresh()
        if isinstance(expr, Select) and not self._same(expr):
            self._chosen(expr, kind, name)
        else:
            text = f"({kind})({self._e.text(expr)})" if self._same(expr) else self._text(expr)
            self._lines.append(f"const {kind} {name} = {text};")
        self._known[expr] = name
        return name

    def _chosen(self, select: Select, kind: str, name: str) -> None:
        """Where all lanes choose the same, only what they choose is computed."""
        if not self._same(select.cond):
            raise _ByElementError
        known, lines = self._known, self._lines
        lines.append(f"{kind} {name};")
        for head, arm in ((f"if ({self._e.text(select.cond)}) {{", select.then), ("else {", select.otherwise)):
            self._known, self._lines = dict(known), []
            value = self._value(arm)
            lines += [head, *_indented([*self._lines, f"{name} = {value};"]), "}"]
        self._known, self._lines = known, lines

    def _text(self, expr: Expr) -> str:
        kind, wide = TYPES[expr.dtype][0], dtypes.is_float(expr.dtype)
        match expr:
            case Load(buffer, _) if (offset := self._row(expr, buffer)) is not None:
                return f"vload{self._lanes}(0, {self._e.names.of(buffer)} + {offset})"
            case Binary((BinaryOp.MIN | BinaryOp.MAX) as op, a, b):
                x, y = self._value(a), self._value(b)
                if not wide:
                    return f"{op.value}({x}, {y})"
                # As of single numbers: what is no number stays so.
                return f"select({y}, {x}, ({x} {'<=' if op is BinaryOp.MIN else '>='} {y}) | ({x} != {x}))"
            case Binary(op, a, b) if wide and op in _OF_FLOATS:
                return f"{self._value(a)} {_OF_FLOATS[op]} {self._value(b)}"
            case Binary(op, a, b) if op in _WRAPPING and not wide:
                bits = f"as_{kind if kind[0] == 'u' else f'u{kind}'}{self._lanes}"
                return f"as_{kind}{self._lanes}({bits}({self._value(a)}) {_WRAPPING[op]} {bits}({self._value(b)}))"
            case Unary(op, a) if wide and op in _FUNCTIONS:
                return _FUNCTIONS[op].format(self._value(a))
            case Cast(a, dtype) if _widens(a.dtype, dtype):
                return f"convert_{kind}{self._lanes}({self._value(a)})"
        raise _ByElementError


def _widens(source: str, target: str) -> bool:
    """Whether every number of ``source`` is one of ``target``."""
    if source == target or "bool" in (source, target):
        return False
    if dtypes.is_float(source):
        return dtypes.is_float(target) and dtypes.size(target) > dtypes.size(source) and source not in dtypes.STORAGE_FLOATS
    if dtypes.is_float(target):
        return dtypes.size(source) < dtypes.size(target)
    signs = dtypes.is_signed(source) == dtypes.is_signed(target) or dtypes.is_signed(target)
    return signs and dtypes.size(target) > dtypes.size(source)
