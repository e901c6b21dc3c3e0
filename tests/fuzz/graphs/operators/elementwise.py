"""Operators that work on one element at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from tests.fuzz.graphs.draft import Draft, Made, number_of
from tests.fuzz.graphs.values import ALL, FLOATS, INTEGERS, NUMBERS, UNSIGNED

Maker: TypeAlias = Callable[[Draft], Made]


def unary(
    operator: str,
    dtypes: Sequence[str] = FLOATS,
    low: float | None = None,
    high: float | None = None,
    **attributes: tuple[float, float],
) -> Maker:
    """One input; ``attributes`` are numbers within a range, ``low`` and ``high`` the range of a new input."""
    return lambda g: Made(operator, [g.pick(dtypes, low=low, high=high)], g.numbers(**attributes))


def binary(operator: str, dtypes: Sequence[str] = NUMBERS) -> Maker:
    """Two inputs of one dtype that are broadcast."""

    def make(g: Draft) -> Made:
        first = g.pick(dtypes)
        pair = [first, g.broadcast(first)]
        return Made(operator, pair if g.chance() else pair[::-1])

    return make


def variadic(operator: str, dtypes: Sequence[str]) -> Maker:
    def make(g: Draft) -> Made:
        first = g.pick(dtypes)
        return Made(operator, [first, *(g.broadcast(first, one_way=True) for _ in range(g.integer(0, 3)))])

    return make


def power(g: Draft) -> Made:
    base = g.pick(("float32", "float64", "float16", "int32", "int64"))
    return Made("Pow", [base, g.broadcast(base, g.choice((g.dtype(base), "float32", "int32", "int64")))])


def modulo(g: Draft) -> Made:
    first = g.pick(NUMBERS)
    fmod = 1 if g.dtype(first) in FLOATS else g.integer(0, 1)
    return Made("Mod", [first, g.broadcast(first)], {"fmod": fmod})


def bit_shift(g: Draft) -> Made:
    first = g.pick(UNSIGNED)
    bits = g[first].dtype.itemsize * 8
    count = g.fresh(g.dtype(first), g[first].shape, 0, bits - 1)
    return Made("BitShift", [first, count], {"direction": g.choice(("LEFT", "RIGHT"))})


def prelu(g: Draft) -> Made:
    x = g.pick((*FLOATS, "int32", "int64", "uint32", "uint64"), (1, 5))
    return Made("PRelu", [x, g.broadcast(x, one_way=True)])


def where(g: Draft) -> Made:
    x = g.pick(ALL)
    return Made("Where", [g.broadcast(x, "bool"), x, g.broadcast(x)])


def clip(g: Draft) -> Made:
    x = g.pick(NUMBERS)
    dtype = g.dtype(x)
    low, high = sorted((g.integer(-3, 3), g.integer(-1, 5)))
    if dtype in UNSIGNED:
        low, high = abs(low), abs(low) + abs(high)
    if g.opset < 11:
        return Made("Clip", [x], {"min": float(low), "max": float(high)})
    ends = [g.parameter(end, dtype) if g.chance(0.8) else "" for end in (low, high)]
    return Made("Clip", [x, *ends])


def cast(g: Draft) -> Made:
    return Made("Cast", [g.pick(ALL)], {"to": number_of(g.choice(ALL))})


def cast_like(g: Draft) -> Made:
    return Made("CastLike", [g.pick(ALL), g.pick(ALL)])


def dropout(g: Draft) -> Made:
    x = g.pick(FLOATS)
    return Made("Dropout", [x], outputs=1 if g.opset < 12 else g.integer(1, 2))


def shrink(g: Draft) -> Made:
    x = g.pick(NUMBERS)
    whole = {name: float(g.integer(0, 3)) for name in ("bias", "lambd")}
    return Made("Shrink", [x], g.numbers(bias=(0, 2), lambd=(0, 2)) if g.dtype(x) in FLOATS else whole)


def gelu(g: Draft) -> Made:
    return Made("Gelu", [g.pick(FLOATS)], {"approximate": g.choice(("none", "tanh"))})


def is_infinite(g: Draft) -> Made:
    return Made("IsInf", [g.pick(FLOATS)], g.flags("detect_negative", "detect_positive"))


ELEMENTWISE: Final[Mapping[str, Maker]] = {
    "Abs": unary("Abs", NUMBERS),
    "Acos": unary("Acos", FLOATS, -1, 1),
    "Acosh": unary("Acosh", FLOATS, 1, 9),
    "Add": binary("Add"),
    "And": binary("And", ("bool",)),
    "Asin": unary("Asin", FLOATS, -1, 1),
    "Asinh": unary("Asinh"),
    "Atan": unary("Atan"),
    "Atanh": unary("Atanh", FLOATS, -0.99, 0.99),
    "BitShift": bit_shift,
    "BitwiseAnd": binary("BitwiseAnd", INTEGERS),
    "BitwiseNot": unary("BitwiseNot", INTEGERS),
    "BitwiseOr": binary("BitwiseOr", INTEGERS),
    "BitwiseXor": binary("BitwiseXor", INTEGERS),
    "Cast": cast,
    "CastLike": cast_like,
    "Ceil": unary("Ceil"),
    "Celu": unary("Celu", FLOATS, alpha=(0.2, 3)),
    "Clip": clip,
    "Cos": unary("Cos"),
    "Cosh": unary("Cosh"),
    "Div": binary("Div"),
    "Dropout": dropout,
    "Elu": unary("Elu", FLOATS, alpha=(0.2, 3)),
    "Equal": binary("Equal", ALL),
    "Erf": unary("Erf", NUMBERS),
    "Exp": unary("Exp"),
    "Floor": unary("Floor"),
    "Gelu": gelu,
    "Greater": binary("Greater"),
    "GreaterOrEqual": binary("GreaterOrEqual"),
    "HardSigmoid": unary("HardSigmoid", FLOATS, alpha=(0.1, 1), beta=(0, 1)),
    "HardSwish": unary("HardSwish"),
    "Identity": unary("Identity", ALL),
    "IsInf": is_infinite,
    "IsNaN": unary("IsNaN"),
    "LeakyRelu": unary("LeakyRelu", FLOATS, alpha=(-0.2, 1.5)),
    "Less": binary("Less"),
    "LessOrEqual": binary("LessOrEqual"),
    "Log": unary("Log", FLOATS, 0.1, 9),
    "Max": variadic("Max", NUMBERS),
    "Mean": variadic("Mean", FLOATS),
    "Min": variadic("Min", NUMBERS),
    "Mish": unary("Mish"),
    "Mod": modulo,
    "Mul": binary("Mul"),
    "Neg": unary("Neg", NUMBERS),
    "Not": unary("Not", ("bool",)),
    "Or": binary("Or", ("bool",)),
    "PRelu": prelu,
    "Pow": power,
    "Reciprocal": unary("Reciprocal"),
    "Relu": unary("Relu", NUMBERS),
    "Round": unary("Round"),
    "Selu": unary("Selu", FLOATS, alpha=(0.5, 3), gamma=(0.5, 2)),
    "Shrink": shrink,
    "Sigmoid": unary("Sigmoid"),
    "Sign": unary("Sign", NUMBERS),
    "Sin": unary("Sin"),
    "Sinh": unary("Sinh"),
    "Softplus": unary("Softplus"),
    "Softsign": unary("Softsign"),
    "Sqrt": unary("Sqrt", FLOATS, 0, 9),
    "Sub": binary("Sub"),
    "Sum": variadic("Sum", FLOATS),
    "Swish": unary("Swish", FLOATS, alpha=(0.2, 2)),
    "Tan": unary("Tan"),
    "Tanh": unary("Tanh"),
    "ThresholdedRelu": unary("ThresholdedRelu", FLOATS, alpha=(-1, 2)),
    "Where": where,
    "Xor": binary("Xor", ("bool",)),
}
