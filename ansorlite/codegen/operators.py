"""The one table of what each operation is in LLVM, per class of dtype.

An entry is the head of an instruction, or a function of (builder, dtype, lanes, operands...) that writes several.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from ansorlite.codegen import casts, dots, floating, integer, types, vector_math, vector_power
from ansorlite.codegen.builder import Builder
from ansorlite.te import dtypes
from ansorlite.te.ops import DOTS, BinaryOp, UnaryOp

Emit = str | Callable[..., str]

_COMPARE_FLOAT: Final = {
    BinaryOp.EQ: "fcmp oeq",
    BinaryOp.NE: "fcmp une",
    BinaryOp.LT: "fcmp olt",
    BinaryOp.LE: "fcmp ole",
    BinaryOp.GT: "fcmp ogt",
    BinaryOp.GE: "fcmp oge",
}


def _compare_integer(sign: str) -> dict[BinaryOp, Emit]:
    return {
        BinaryOp.EQ: "icmp eq",
        BinaryOp.NE: "icmp ne",
        BinaryOp.LT: f"icmp {sign}lt",
        BinaryOp.LE: f"icmp {sign}le",
        BinaryOp.GT: f"icmp {sign}gt",
        BinaryOp.GE: f"icmp {sign}ge",
    }


def _intrinsic(name: str) -> Callable[..., str]:
    def emit(b: Builder, dtype: str, lanes: int, *operands: str) -> str:
        return b.intrinsic(name, types.VALUE[dtype], lanes, *operands)

    return emit


_BITS: Final[dict[BinaryOp, Emit]] = {BinaryOp.BITAND: "and", BinaryOp.BITOR: "or", BinaryOp.BITXOR: "xor"}

#: Minimum and maximum → the comparison that says which operand it is.
EXTREMA: Final[dict[BinaryOp, str]] = {BinaryOp.MIN: "olt", BinaryOp.MAX: "ogt"}

_FLOAT: Final[dict[BinaryOp, Emit]] = {
    BinaryOp.ADD: "fadd",
    BinaryOp.SUB: "fsub",
    BinaryOp.MUL: "fmul",
    BinaryOp.DIV: "fdiv",
    BinaryOp.FLOORDIV: floating.floor_divide,
    BinaryOp.MOD: floating.modulo,
    BinaryOp.POW: vector_power.power,
    **{op: partial(floating.extremum, comparison=comparison) for op, comparison in EXTREMA.items()},
    **_COMPARE_FLOAT,
}


def _integer(sign: str) -> dict[BinaryOp, Emit]:
    return {
        BinaryOp.ADD: "add",
        BinaryOp.SUB: "sub",
        BinaryOp.MUL: "mul",
        BinaryOp.FLOORDIV: integer.floor_divide,
        BinaryOp.MOD: integer.modulo,
        BinaryOp.POW: integer.power,
        BinaryOp.MIN: _intrinsic(f"{sign}min"),
        BinaryOp.MAX: _intrinsic(f"{sign}max"),
        BinaryOp.SHL: integer.shift_left,
        BinaryOp.SHR: integer.shift_right,
        **_BITS,
        **_compare_integer(sign),
        **{op: partial(dots.dot, op) for op in DOTS},
    }


_BOOL: Final[dict[BinaryOp, Emit]] = {
    BinaryOp.AND: "and",
    BinaryOp.OR: "or",
    BinaryOp.MIN: "and",
    BinaryOp.MAX: "or",
    **_BITS,
    **_compare_integer("u"),
}

_SIGNED: Final = _integer("s")
_UNSIGNED: Final = _integer("u")


def _table(dtype: str, floats: Any, signed: Any, unsigned: Any, bools: Any) -> Any:
    if dtypes.is_float(dtype):
        return floats
    if dtype == "bool":
        return bools
    return signed if dtypes.is_signed(dtype) else unsigned


def _rsqrt(b: Builder, dtype: str, lanes: int, x: str) -> str:
    root = b.intrinsic("sqrt", types.VALUE[dtype], lanes, x)
    one = types.splat(types.float_literal(1.0, dtype), types.VALUE[dtype], lanes)
    return b.op(f"fdiv {types.value_type(dtype, lanes)} {one}, {root}")


def _negate(b: Builder, dtype: str, lanes: int, x: str) -> str:
    return b.op(f"sub {types.value_type(dtype, lanes)} {types.splat('0', types.VALUE[dtype], lanes)}, {x}")


def _absolute(b: Builder, dtype: str, lanes: int, x: str) -> str:
    zero = types.splat("0", types.VALUE[dtype], lanes)
    kind = types.value_type(dtype, lanes)
    return b.select(kind, lanes, b.op(f"icmp slt {kind} {x}, {zero}"), _negate(b, dtype, lanes, x), x)


def _same(b: Builder, dtype: str, lanes: int, x: str) -> str:
    del b, dtype, lanes
    return x


def _not(b: Builder, dtype: str, lanes: int, x: str) -> str:
    return b.op(f"xor {types.value_type(dtype, lanes)} {x}, {types.splat('true', 'i1', lanes)}")


_UNARY_FLOAT: Final[dict[UnaryOp, Emit]] = {
    UnaryOp.NEG: "fneg",
    UnaryOp.ABS: _intrinsic("fabs"),
    UnaryOp.EXP: vector_math.exp,
    UnaryOp.LOG: vector_math.log,
    UnaryOp.SQRT: _intrinsic("sqrt"),
    UnaryOp.RSQRT: _rsqrt,
    UnaryOp.TANH: vector_math.tanh,
    UnaryOp.SIGMOID: vector_math.sigmoid,
    UnaryOp.ERF: vector_math.erf,
    UnaryOp.FLOOR: _intrinsic("floor"),
    UnaryOp.CEIL: _intrinsic("ceil"),
    UnaryOp.ROUND: _intrinsic("rint"),
    UnaryOp.BITS: casts.bits,
}
_UNARY_SIGNED: Final[dict[UnaryOp, Emit]] = {UnaryOp.NEG: _negate, UnaryOp.ABS: _absolute}
_UNARY_UNSIGNED: Final[dict[UnaryOp, Emit]] = {UnaryOp.NEG: _negate, UnaryOp.ABS: _same}
_UNARY_BOOL: Final[dict[UnaryOp, Emit]] = {UnaryOp.NOT: _not}

#: The float operations whose result may need rounding to a storage float: all but those that only choose or compare.
_EXACT: Final = frozenset({*EXTREMA, *_COMPARE_FLOAT, UnaryOp.NEG, UnaryOp.ABS, UnaryOp.BITS})


def _emit(b: Builder, entry: Emit, op: BinaryOp | UnaryOp, dtype: str, lanes: int, operands: tuple[str, ...]) -> str:
    if isinstance(entry, str):
        result = b.op(f"{entry} {types.value_type(dtype, lanes)} {', '.join(operands)}")
    else:
        result = entry(b, dtype, lanes, *operands)
    if dtype in types.STORAGE_FLOATS and op not in _EXACT:
        return casts.round_to_storage(b, dtype, lanes, result)
    return result


def binary(b: Builder, op: BinaryOp, dtype: str, lanes: int, x: str, y: str) -> str:
    """``x op y`` on operands of ``dtype``."""
    return _emit(b, _table(dtype, _FLOAT, _SIGNED, _UNSIGNED, _BOOL)[op], op, dtype, lanes, (x, y))


def extremum_with_number(b: Builder, op: BinaryOp, dtype: str, lanes: int, number: str, other: str) -> str:
    """The minimum or maximum, as ``op`` says, of two floats of which the first is known to be no NaN."""
    return floating.extremum(b, dtype, lanes, number, other, EXTREMA[op], number=True)


def multiply_add(b: Builder, dtype: str, lanes: int, total: str, x: str, y: str) -> str:
    """``total + x * y`` of floats, rounded once where the target has an instruction for it: for sums, whose rounding depends on
    their order anyway. What is computed element by element is rounded at each operation, as numpy does it: a value that is
    rounded to an integer afterwards must not depend on which operations were fused.
    """
    if dtype in types.STORAGE_FLOATS:
        return binary(b, BinaryOp.ADD, dtype, lanes, total, binary(b, BinaryOp.MUL, dtype, lanes, x, y))
    kind = types.value_type(dtype, lanes)
    product = b.op(f"fmul contract {kind} {x}, {y}")
    return b.op(f"fadd contract {kind} {total}, {product}")


def unary(b: Builder, op: UnaryOp, dtype: str, lanes: int, x: str) -> str:
    """``op(x)`` on an operand of ``dtype``."""
    table = _table(dtype, _UNARY_FLOAT, _UNARY_SIGNED, _UNARY_UNSIGNED, _UNARY_BOOL)
    return _emit(b, table[op], op, dtype, lanes, (x,))
