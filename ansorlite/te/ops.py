"""The element-wise operations: one table row each.

Everything that must know an operation reads this table: type rules here, the numpy meaning (the interpreter and the
reference evaluator), the price (flops, features). The LLVM emitter has the one other table.
"""

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ansorlite import lazy
from ansorlite.te.words import WORD, Pieces, dot, dot_of_floats

if TYPE_CHECKING:
    from scipy import special
else:
    special = lazy.module("scipy.special")


class BinaryOp(Enum):
    ADD = "+"
    SUB = "-"
    MUL = "*"
    DIV = "/"
    FLOORDIV = "//"
    MOD = "%"
    POW = "pow"
    MIN = "min"
    MAX = "max"
    EQ = "=="
    NE = "!="
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="
    AND = "and"
    OR = "or"
    BITAND = "&"
    BITOR = "|"
    BITXOR = "^"
    SHL = "<<"
    SHR = ">>"
    DOT_U8S8 = "dot_u8s8"
    DOT_U8S7 = "dot_u8s7"
    DOT_S8S8 = "dot_s8s8"
    DOT_U8U8 = "dot_u8u8"
    DOT_S16S16 = "dot_s16s16"
    DOT_BF16 = "dot_bf16"


class UnaryOp(Enum):
    NEG = "neg"
    NOT = "not"
    ABS = "abs"
    EXP = "exp"
    LOG = "log"
    SQRT = "sqrt"
    RSQRT = "rsqrt"
    TANH = "tanh"
    SIGMOID = "sigmoid"
    ERF = "erf"
    FLOOR = "floor"
    CEIL = "ceil"
    ROUND = "round"
    BITS = "bits"


class ReduceOp(Enum):
    SUM = "sum"
    PROD = "prod"
    MAX = "max"
    MIN = "min"


class Cost(Enum):
    """What an operation costs on a machine: the classes that the features count."""

    CHEAP = "add, sub, min, max, compare, logic: one instruction"
    MUL = "multiply: one instruction"
    DIV = "divide, modulo, square root"
    MATH = "exp, log, tanh, ...: tens of instructions"
    CONVERT = "between integers and floats"
    DOT = "a dot product of words"


@dataclass(frozen=True)
class OpInfo:
    """One operation.

    Attributes:
        numpy: its meaning on numpy scalars and arrays of the result's operand dtype.
        cost: its price class.
        kinds: what operands may be: a subset of the letters ``f`` (float), ``i`` (integer), ``b`` (bool).
        boolean: whether the result is bool whatever the operands are.
        to_float: whether integer operands are first converted to float64, as numpy does.
        only: one dtype that operands may be, whatever ``kinds`` says.
        result: the dtype of the result, where neither the operands nor ``boolean`` says it.
    """

    numpy: Callable[..., Any]
    cost: Cost
    kinds: str = "fib"
    boolean: bool = False
    to_float: bool = False
    only: str = ""
    result: str = ""

    def dtype(self, operands: str) -> str:
        """The dtype of the result on operands of dtype ``operands``."""
        return "bool" if self.boolean else self.result or operands


#: What the words are made of whose dot product these operations are (see ``words.py``). The bytes of ``DOT_U8S7`` are small
#: enough for two products to fit into 16 bits.
DOTS: Final[dict[BinaryOp, tuple[Pieces, Pieces]]] = {
    BinaryOp.DOT_U8S8: (Pieces("uint8"), Pieces("int8")),
    BinaryOp.DOT_U8S7: (Pieces("uint8"), Pieces("int8", most=64)),
    BinaryOp.DOT_S8S8: (Pieces("int8"), Pieces("int8")),
    BinaryOp.DOT_U8U8: (Pieces("uint8"), Pieces("uint8")),
    BinaryOp.DOT_S16S16: (Pieces("int16"), Pieces("int16")),
    BinaryOp.DOT_BF16: (Pieces("bfloat16"), Pieces("bfloat16")),
}


def _dot(pieces: tuple[Pieces, Pieces]) -> OpInfo:
    meaning = dot_of_floats if pieces[0].floats else partial(dot, *pieces)
    return OpInfo(meaning, Cost.DOT, kinds="", only=WORD, result=pieces[0].sums)


def _power(x: Any, y: Any) -> Any:
    """numpy refuses negative powers of integers: they are 1 / x ** -y, cut off to an integer, and 0 for 0."""
    base, exponent = np.asarray(x), np.asarray(y)
    negative = (exponent < 0) if base.dtype.kind == "i" else np.False_
    if not np.any(negative):
        return np.power(x, y)
    # Of 1 and -1, the power is that of the same exponent modulo 2.
    small = np.where(negative, exponent & 1, exponent)
    return np.where(negative & (abs(base) != 1), 0, np.power(base, small)).astype(base.dtype)[()]


BINARY: Final[dict[BinaryOp, OpInfo]] = {
    BinaryOp.ADD: OpInfo(np.add, Cost.CHEAP, "fi"),
    BinaryOp.SUB: OpInfo(np.subtract, Cost.CHEAP, "fi"),
    BinaryOp.MUL: OpInfo(np.multiply, Cost.MUL, "fi"),
    BinaryOp.DIV: OpInfo(np.true_divide, Cost.DIV, "fi", to_float=True),
    BinaryOp.FLOORDIV: OpInfo(np.floor_divide, Cost.DIV, "fi"),
    BinaryOp.MOD: OpInfo(np.remainder, Cost.DIV, "fi"),
    BinaryOp.POW: OpInfo(_power, Cost.MATH, "fi"),
    BinaryOp.MIN: OpInfo(np.minimum, Cost.CHEAP),
    BinaryOp.MAX: OpInfo(np.maximum, Cost.CHEAP),
    BinaryOp.EQ: OpInfo(np.equal, Cost.CHEAP, boolean=True),
    BinaryOp.NE: OpInfo(np.not_equal, Cost.CHEAP, boolean=True),
    BinaryOp.LT: OpInfo(np.less, Cost.CHEAP, boolean=True),
    BinaryOp.LE: OpInfo(np.less_equal, Cost.CHEAP, boolean=True),
    BinaryOp.GT: OpInfo(np.greater, Cost.CHEAP, boolean=True),
    BinaryOp.GE: OpInfo(np.greater_equal, Cost.CHEAP, boolean=True),
    BinaryOp.AND: OpInfo(np.logical_and, Cost.CHEAP, "b", boolean=True),
    BinaryOp.OR: OpInfo(np.logical_or, Cost.CHEAP, "b", boolean=True),
    BinaryOp.BITAND: OpInfo(np.bitwise_and, Cost.CHEAP, "ib"),
    BinaryOp.BITOR: OpInfo(np.bitwise_or, Cost.CHEAP, "ib"),
    BinaryOp.BITXOR: OpInfo(np.bitwise_xor, Cost.CHEAP, "ib"),
    BinaryOp.SHL: OpInfo(np.left_shift, Cost.CHEAP, "i"),
    BinaryOp.SHR: OpInfo(np.right_shift, Cost.CHEAP, "i"),
    **{op: _dot(pieces) for op, pieces in DOTS.items()},
}


def _rsqrt(x: Any) -> Any:
    return np.true_divide(np.ones_like(x), np.sqrt(x))


# SciPy imports what one asks it for: half a second in every process, if it were asked for here.


def _sigmoid(x: Any) -> Any:
    return special.expit(x)


def _erf(x: Any) -> Any:
    return special.erf(x)


def _bits(x: Any) -> Any:
    """Of bfloat16, whose float32 has them in its upper half."""
    return (np.asarray(x, np.float32).view(np.uint32) >> 16).astype(np.uint16)[()]


#: Exact arithmetic on the literals of indices.
INDEX_ARITHMETIC: Final[dict[BinaryOp, Callable[[Any, Any], Any]]] = {
    BinaryOp.ADD: operator.add,
    BinaryOp.SUB: operator.sub,
    BinaryOp.MUL: operator.mul,
    BinaryOp.FLOORDIV: operator.floordiv,
    BinaryOp.MOD: operator.mod,
    BinaryOp.MIN: min,
    BinaryOp.MAX: max,
}

UNARY: Final[dict[UnaryOp, OpInfo]] = {
    UnaryOp.NEG: OpInfo(np.negative, Cost.CHEAP, "fi"),
    UnaryOp.NOT: OpInfo(np.logical_not, Cost.CHEAP, "b", boolean=True),
    UnaryOp.ABS: OpInfo(np.abs, Cost.CHEAP, "fi"),
    UnaryOp.EXP: OpInfo(np.exp, Cost.MATH, "fi", to_float=True),
    UnaryOp.LOG: OpInfo(np.log, Cost.MATH, "fi", to_float=True),
    UnaryOp.SQRT: OpInfo(np.sqrt, Cost.DIV, "fi", to_float=True),
    UnaryOp.RSQRT: OpInfo(_rsqrt, Cost.DIV, "fi", to_float=True),
    UnaryOp.TANH: OpInfo(np.tanh, Cost.MATH, "fi", to_float=True),
    UnaryOp.SIGMOID: OpInfo(_sigmoid, Cost.MATH, "fi", to_float=True),
    UnaryOp.ERF: OpInfo(_erf, Cost.MATH, "fi", to_float=True),
    UnaryOp.FLOOR: OpInfo(np.floor, Cost.CHEAP, "fi"),
    UnaryOp.CEIL: OpInfo(np.ceil, Cost.CHEAP, "fi"),
    UnaryOp.ROUND: OpInfo(np.rint, Cost.CHEAP, "fi"),
    UnaryOp.BITS: OpInfo(_bits, Cost.CHEAP, kinds="", only="bfloat16", result="uint16"),
}

#: A reduction folds with this operation.
COMBINE: Final[dict[ReduceOp, BinaryOp]] = {
    ReduceOp.SUM: BinaryOp.ADD,
    ReduceOp.PROD: BinaryOp.MUL,
    ReduceOp.MAX: BinaryOp.MAX,
    ReduceOp.MIN: BinaryOp.MIN,
}

#: How Python, on numpy's scalars, and C write operations that are the numpy function itself. Conditions are not lazy.
INFIX: Final[Mapping[BinaryOp, str]] = {
    BinaryOp.ADD: "+",
    BinaryOp.SUB: "-",
    BinaryOp.MUL: "*",
    BinaryOp.DIV: "/",
    BinaryOp.EQ: "==",
    BinaryOp.NE: "!=",
    BinaryOp.LT: "<",
    BinaryOp.LE: "<=",
    BinaryOp.GT: ">",
    BinaryOp.GE: ">=",
    BinaryOp.AND: "&",
    BinaryOp.OR: "|",
    BinaryOp.BITAND: "&",
    BinaryOp.BITOR: "|",
    BinaryOp.BITXOR: "^",
}


def info(op: BinaryOp | UnaryOp) -> OpInfo:
    """What is known of an operation."""
    return BINARY[op] if isinstance(op, BinaryOp) else UNARY[op]
