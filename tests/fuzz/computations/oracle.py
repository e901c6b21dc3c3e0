"""What a plan computes, one element after another in Python: numpy's only part is to store and to round.

The meaning is that of ``docs/te.md``. A float is a number with a bound of its error: 0 where the meaning is exact, as it is
for all but exponentials and the like, and sums and products, which may be folded in any order. What depends on such an error
beyond repair (a comparison too close to call) is ``UNKNOWN``, and matches everything. Nothing here imports ansorlite.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import ml_dtypes
import numpy as np

from tests.fuzz.computations.plan import Apply, Axis, Choose, Convert, Element, Node, Number, Plan, Stage

Array: TypeAlias = np.ndarray[Any, Any]


class Unknown:
    """Anything: the meaning does not say what."""

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN: Final = Unknown()


@dataclass(frozen=True, slots=True)
class Real:
    """A float that is within ``error`` of ``value``."""

    value: float
    error: float = 0.0


#: What an expression can be: bools and ints are exact.
Value: TypeAlias = bool | int | Real | Unknown

#: The error of a zero whose sign is not known.
EITHER_ZERO: Final = 5e-324


@dataclass(frozen=True)
class Format:
    """A float dtype: bits of the significand, the greatest number, the smallest normal one."""

    bits: int
    most: float
    normal: float

    @property
    def smallest(self) -> float:
        return max(math.ldexp(self.normal, 1 - self.bits), 5e-324)

    def unit(self, size: float) -> float:
        """The distance of neighbours around ``size``."""
        if math.isinf(size) or math.isnan(size):
            return math.inf
        return max(math.ldexp(1.0, math.frexp(size)[1] - self.bits), self.smallest)


FLOATS: Final = {
    "float16": Format(11, 65504.0, 2.0**-14),
    "bfloat16": Format(8, float.fromhex("0x1.fep127"), 2.0**-126),
    "float32": Format(24, float.fromhex("0x1.fffffep127"), 2.0**-126),
    "float64": Format(53, float.fromhex("0x1.fffffffffffffp1023"), 2.0**-1022),
}
INTEGERS: Final = {f"{sign}int{bits}": (not sign, bits) for sign in ("", "u") for bits in (8, 16, 32, 64)}
DTYPES: Final = ("bool", *INTEGERS, *FLOATS)
#: numpy's type of each dtype.
NUMPY: Final = {dtype: np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype) for dtype in DTYPES}

#: Units in the last place that functions may be off; that powers may; and what is rounded to a narrow float.
ULPS: Final = 4
POWER_ULPS: Final = 6
NARROW_ULPS: Final = 1


# Rounding --------------------------------------------------------------------------------------------------------


def rounded(x: float, dtype: str) -> float:
    """The float of ``dtype`` next to ``x``; of equally near ones the even one."""
    if dtype == "float64" or x == 0.0 or math.isinf(x) or math.isnan(x):
        return x
    if dtype == "float32":
        return float(np.float32(x))
    # The operations of narrow floats are float32's, rounded once more.
    return _narrowed(float(np.float32(x)), dtype)


def _narrowed(x: float, dtype: str) -> float:
    """``x`` rounded once to float16 or bfloat16."""
    form = FLOATS[dtype]
    if x == 0.0 or math.isinf(x) or math.isnan(x):
        return x
    step = form.unit(abs(x))
    near = round(x / step) * step  # Python rounds halves to even; both factors are exact.
    return math.copysign(math.inf if abs(near) > form.most else near, x)


def rounded_integer(n: int, dtype: str) -> float:
    """The float of ``dtype`` next to an integer; bfloat16 and float16 by way of float32."""
    bits = 53 if dtype == "float64" else 24
    drop = max(abs(n).bit_length() - bits, 0)
    whole, rest = divmod(abs(n), 1 << drop)
    whole += 2 * rest > 1 << drop or (2 * rest == 1 << drop and whole & 1)
    near = math.copysign(float(whole << drop), n)
    return near if dtype in ("float64", "float32") else _narrowed(near, dtype)


def wrapped(n: int, dtype: str) -> int:
    signed, bits = INTEGERS[dtype]
    n &= (1 << bits) - 1
    return n - (1 << bits) if signed and n >> (bits - 1) else n


def limits(dtype: str) -> tuple[int, int]:
    signed, bits = INTEGERS[dtype]
    return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)


# Conversions -----------------------------------------------------------------------------------------------------


def convert(x: Value, source: str, target: str) -> Value:
    if isinstance(x, Unknown) or source == target:
        return x
    if isinstance(x, Real):
        return _convert_real(x, source, target)
    if target == "bool":
        return bool(x)
    return wrapped(int(x), target) if target in INTEGERS else Real(rounded_integer(int(x), target))


def _convert_real(x: Real, source: str, target: str) -> Value:
    if target in FLOATS:
        if target == "float64" or (target == "float32" and source != "float64"):
            return x
        near = _narrowed(x.value, target) if (source, target) == ("float64", "float16") else rounded(x.value, target)
        return _known(near, x.error + FLOATS[target].unit(abs(x.value) + x.error) if x.error else 0.0, target)
    if target == "bool":
        return UNKNOWN if x.error and abs(x.value) <= x.error else x.value != 0.0
    return _agreed(x, lambda value: _to_integer(value, target))


def _to_integer(x: float, target: str) -> int:
    low, high = limits(target)
    if math.isnan(x):
        return 0
    if math.isinf(x):
        return high if x > 0 else low
    return min(max(math.trunc(x), low), high)


def _agreed(x: Real, function: Callable[[float], Any]) -> Any:
    """What a monotonous function gives whatever the error."""
    if not x.error:
        return function(x.value)
    ends = function(x.value - x.error), function(x.value + x.error)
    return ends[0] if ends[0] == ends[1] == function(x.value) else UNKNOWN


def _known(value: float, error: float, dtype: str) -> Value:
    """A number with its error, unless that may make it infinite."""
    if not error or math.isnan(value):
        return Real(value) if not error else UNKNOWN
    if math.isinf(value) or math.isinf(error) or math.isnan(error) or abs(value) + error > FLOATS[dtype].most / 2:
        return UNKNOWN
    return Real(value, error)


# Operations ------------------------------------------------------------------------------------------------------

_COMPARE: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}
_BITS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
}
#: Functions that make a float64 of an integer.
_REAL_ONLY: Final = frozenset({"/", "exp", "log", "sqrt", "rsqrt", "tanh", "sigmoid", "erf"})


def result_dtype(op: str, dtypes: Sequence[str]) -> tuple[str, str]:
    """(what operands are converted to, what comes out)."""
    common = dtypes[0]
    for dtype in dtypes[1:]:
        common = _promoted(common, dtype)
    if op in _REAL_ONLY and common in INTEGERS:
        common = "float64"
    return common, "bool" if op in _COMPARE or op in ("all", "any", "not") else common


def _promoted(a: str, b: str) -> str:
    both = np.promote_types(NUMPY[a], NUMPY[b])
    return next(dtype for dtype, kind in NUMPY.items() if kind == both)


def apply(op: str, operands: Sequence[Value], dtype: str) -> Value:
    """``op`` on operands of one dtype."""
    if op in ("all", "any"):
        return _connective(op == "all", operands)
    if any(isinstance(x, Unknown) for x in operands):
        return UNKNOWN
    if dtype in FLOATS:
        reals: list[Any] = list(operands)
        return _on_reals(op, reals, dtype)
    exact: list[Any] = list(operands)
    if op == "not":
        return not exact[0]
    if dtype == "bool":
        return bool(_on_integers(op, [int(x) for x in exact], "uint8"))
    result = _on_integers(op, exact, dtype)
    return result if isinstance(result, bool) else wrapped(result, dtype)


def _connective(every: bool, operands: Sequence[Value]) -> Value:
    if (not every) in [x for x in operands if isinstance(x, bool)]:
        return not every
    return UNKNOWN if any(isinstance(x, Unknown) for x in operands) else every


def _on_integers(op: str, x: Sequence[int], dtype: str) -> Any:
    a, b = x[0], x[-1]
    bits = INTEGERS[dtype][1]
    match op:
        case "+":
            return a + b
        case "-":
            return a - b
        case "*":
            return a * b
        case "//":
            return a // b if b else 0
        case "%":
            return a % b if b else 0
        case "power":
            return pow(a, b, 1 << bits) if b >= 0 else (a if b % 2 else 1) if abs(a) == 1 else 0
        case "<<":
            return a << b if 0 <= b < bits else 0
        case ">>":
            return a >> (b if 0 <= b < bits else bits)
        case "minimum":
            return min(a, b)
        case "maximum":
            return max(a, b)
        case "neg":
            return -a
        case "abs":
            return abs(a)
        case "~":
            return ~a
        case "floor" | "ceil" | "round":
            return a
        case _ if op in _COMPARE:
            return _COMPARE[op](a, b)
    return _BITS[op](a, b)


def _on_reals(op: str, x: Sequence[Real], dtype: str) -> Value:
    a, b = x[0], x[-1]
    if op in _COMPARE:
        clear = not a.error and not b.error
        return _COMPARE[op](a.value, b.value) if clear or abs(a.value - b.value) > a.error + b.error else UNKNOWN
    if op in ("minimum", "maximum"):
        return extremum(x, op == "maximum")
    if op in ("neg", "abs"):
        return Real(-a.value if op == "neg" else abs(a.value), a.error)
    if op in ("floor", "ceil", "round"):
        return _whole(a, {"floor": math.floor, "ceil": math.ceil, "round": round}[op])
    # What narrow floats compute with; the last rounding is theirs.
    wide = dtype if dtype in ("float32", "float64") else "float32"
    if op in ("+", "-", "*", "/"):
        value = rounded(_arithmetic(op, a.value, b.value), dtype)
        return _known(value, _error(op, a, b, value, dtype), dtype)
    if op in ("//", "%"):
        quotient, rest = _floor_divided(a.value, b.value, wide)
        return UNKNOWN if a.error or b.error else Real(rounded(quotient if op == "//" else rest, dtype))
    if op == "power":
        return UNKNOWN if a.error or b.error else _approximate(_power(a.value, b.value), 0.0, dtype, POWER_ULPS)
    if op in ("sqrt", "rsqrt"):
        return _root(op, a, wide, dtype)
    return _function(op, a, dtype)


def _whole(a: Real, function: Callable[[float], int]) -> Value:
    def of(x: float) -> float:
        return x if math.isinf(x) or math.isnan(x) else math.copysign(float(function(x)), x)

    result = _agreed(a, of)
    return result if isinstance(result, Unknown) else Real(result, EITHER_ZERO if a.error and not result else 0.0)


def _arithmetic(op: str, a: float, b: float) -> float:
    match op:
        case "+":
            return a + b
        case "-":
            return a - b
        case "*":
            return a * b
    if b != 0.0 or math.isnan(b):
        return a / b
    if a == 0.0 or math.isnan(a):
        return math.nan
    return math.copysign(math.inf, a) * math.copysign(1.0, b)


def _error(op: str, a: Real, b: Real, value: float, dtype: str) -> float:
    if not a.error and not b.error:
        return 0.0
    if op in ("+", "-"):
        error = a.error + b.error
    elif op == "*":
        error = abs(a.value) * b.error + abs(b.value) * a.error + a.error * b.error
    elif abs(b.value) <= 2 * b.error:
        return math.inf
    else:
        error = (a.error + abs(a.value / b.value) * b.error) / (abs(b.value) - b.error)
    return error + 2 * FLOATS[dtype].unit(abs(value) + error)


def _floor_divided(a: float, b: float, dtype: str) -> tuple[float, float]:
    """numpy's quotient and remainder, in the precision of ``dtype``."""
    if b == 0.0:
        return _arithmetic("/", a, b), math.nan
    rest = math.nan if math.isnan(a) or math.isnan(b) or math.isinf(a) else math.fmod(a, b)
    quotient = rounded(rounded(a - rest, dtype) / b, dtype) if not math.isnan(rest) else math.nan
    if rest and (b < 0.0) != (rest < 0.0):
        rest, quotient = rounded(rest + b, dtype), rounded(quotient - 1.0, dtype)
    elif not rest:
        rest = math.copysign(0.0, b)
    if math.isnan(quotient) or math.isinf(quotient):
        return quotient, rest
    if not quotient:
        return math.copysign(0.0, _arithmetic("/", a, b)), rest
    whole = math.copysign(float(math.floor(quotient)), quotient)
    return (whole + 1.0 if quotient - whole > 0.5 else whole), rest


def _power(a: float, b: float) -> float:
    try:
        return math.pow(a, b)
    except OverflowError:
        return math.copysign(math.inf, a) if b % 2.0 == 1.0 else math.inf
    except ValueError:
        if a == 0.0:  # to a negative power
            return math.copysign(math.inf, a) if b % 2.0 == 1.0 else math.inf
        return math.nan


def _approximate(value: float, error: float, dtype: str, ulps: int = ULPS) -> Value:
    """The result of a function that is right to ``ulps``, given its argument's share of the error."""
    form = FLOATS[dtype]
    ulps = ulps if dtype in ("float32", "float64") else NARROW_ULPS
    if math.isnan(value):
        return Real(value) if not error else UNKNOWN
    if abs(value) > form.most * 0.99:
        # Certainly infinite, or perhaps.
        return Real(math.copysign(math.inf, value)) if abs(value) > form.most * 1.01 and not error else UNKNOWN
    return Real(value, error + ulps * form.unit(abs(value) + error))


def _root(op: str, a: Real, wide: str, dtype: str) -> Value:
    if a.error:
        low = a.value - a.error
        if not low > 0.0:
            return UNKNOWN
        root = math.sqrt(a.value)
        value, error = (root, a.error / (2.0 * math.sqrt(low))) if op == "sqrt" else (1.0 / root, a.error * 0.5 * low**-1.5)
        return _known(value, error + ULPS * FLOATS[dtype].unit(value + error), dtype)
    if a.value < 0.0 or math.isnan(a.value):
        return Real(math.nan)
    value = rounded(math.sqrt(a.value), wide)
    return Real(rounded(value if op == "sqrt" else _arithmetic("/", 1.0, value), dtype))


def _sigmoid(x: float) -> float:
    return 1.0 / (1.0 + math.exp(-x)) if x > -700.0 else math.exp(x) if x > -1e9 else 0.0


def _exp(x: float) -> float:
    try:
        return math.exp(x)
    except OverflowError:
        return math.inf


def _log(x: float) -> float:
    return math.log(x) if x > 0.0 else -math.inf if x == 0.0 else math.nan


_FUNCTIONS: Final[dict[str, Callable[[float], float]]] = {
    "exp": _exp,
    "log": _log,
    "tanh": math.tanh,
    "sigmoid": _sigmoid,
    "erf": math.erf,
}


def _function(op: str, a: Real, dtype: str) -> Value:
    function = _FUNCTIONS[op]
    value = function(a.value)
    if not a.error:
        if math.isinf(a.value) or math.isnan(value) or a.value == 0.0:
            return Real(value)
        return _approximate(value, 0.0, dtype)
    if op == "log" and not a.value > 2.0 * a.error:
        return UNKNOWN
    # All are monotonous, and steepest at an end.
    error = max(abs(function(a.value + a.error) - value), abs(function(a.value - a.error) - value))
    return UNKNOWN if math.isinf(error) or math.isnan(error) else _approximate(value, 1.01 * error, dtype)


# Folds -----------------------------------------------------------------------------------------------------------


def extremum(x: Sequence[Real], greatest: bool) -> Value:
    if any(math.isnan(term.value) for term in x):
        return Real(math.nan)
    found = (max if greatest else min)(term.value for term in x)
    error = max(term.error for term in x)
    if not found and len({math.copysign(1.0, term.value) for term in x if not term.value}) > 1:
        error = max(error, EITHER_ZERO)
    return Real(found, error if math.isfinite(found) else 0.0) if math.isfinite(found) or not error else UNKNOWN


def fold(op: str, terms: Sequence[Value], dtype: str) -> Value:
    """Of all terms, in any order."""
    if any(isinstance(term, Unknown) for term in terms):
        return UNKNOWN
    known: list[Any] = list(terms)
    if dtype in FLOATS:
        if op in ("max", "min"):
            return extremum(known, op == "max")
        return _sum(known, dtype) if op == "sum" else _product(known, dtype)
    if op in ("max", "min"):
        found = max(known) if op == "max" else min(known)
        return bool(found) if dtype == "bool" else int(found)
    return wrapped(sum(known) if op == "sum" else math.prod(known), dtype)


def _growth(count: int, dtype: str) -> float:
    """The relative error of as many roundings as ``count`` terms make."""
    error = (count + 1) * math.ldexp(1.0, -FLOATS[dtype].bits)
    return error / (1.0 - error) if error < 0.5 else math.inf


def _sum(terms: Sequence[Real], dtype: str) -> Value:
    form = FLOATS[dtype]
    values = [term.value for term in terms]
    if any(map(math.isnan, values)) or (math.inf in values and -math.inf in values):
        return Real(math.nan)
    finite = [abs(term.value) + term.error for term in terms if math.isfinite(term.value)]
    size = math.fsum(finite) if max(finite, default=0.0) < form.most else math.inf
    if size >= form.most / 2:
        return UNKNOWN  # Partial sums may overflow.
    if len(finite) < len(values):
        return Real(math.inf if math.inf in values else -math.inf)
    if not size:
        # Whether 0 is added to it is the program's choice.
        return Real(0.0, EITHER_ZERO if all(math.copysign(1.0, value) < 0.0 for value in values) else 0.0)
    if len(values) == 1:
        return terms[0]
    error = math.fsum(term.error for term in terms) + _growth(len(values), dtype) * size + len(values) * form.smallest
    return _known(math.fsum(values), error, dtype)


def _product(terms: Sequence[Real], dtype: str) -> Value:
    form = FLOATS[dtype]
    values = [term.value for term in terms]
    if any(map(math.isnan, values)):
        return Real(math.nan)
    if any(term.error and abs(term.value) <= 2 * term.error for term in terms):
        return UNKNOWN
    logs = [math.log2(abs(value)) for value in values if value and math.isfinite(value)]
    grows, shrinks = sum(x for x in logs if x > 0.0), sum(x for x in logs if x < 0.0)
    if len(values) > 1 and (grows > math.log2(form.most) - 2 or shrinks < math.log2(form.normal) + 2):
        return UNKNOWN  # A product of some of them may overflow, or lose digits.
    sign = math.prod(math.copysign(1.0, value) for value in values)
    if any(math.isinf(value) for value in values):
        return Real(math.nan if 0.0 in values else sign * math.inf)
    if 0.0 in values:
        return Real(sign * 0.0, 0.0)
    value = math.prod(values)
    if len(values) == 1:
        return Real(value, terms[0].error)
    share = math.fsum(term.error / abs(term.value) for term in terms)
    return _known(value, abs(value) * (2 * _growth(len(values), dtype) + 2 * share), dtype)


# Expressions and stages ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Tensor:
    """What was given or computed: values in row-major order; whether they are products, as they are read, and whether some may be
    zeros that a condition chose."""

    shape: tuple[int, ...]
    dtype: str
    values: list[Value]
    product: bool = False
    zeros: bool = False


def dtype_of(node: Node, dtypes: Mapping[str, str]) -> str:
    """The dtype of an expression, given those of tensors."""
    match node:
        case Number():
            return node.dtype
        case Axis():
            return "int64"
        case Apply(op, operands):
            return result_dtype(op, [dtype_of(operand, dtypes) for operand in operands])[1]
        case Convert(_, dtype):
            return dtype
        case Choose(_, then, otherwise):
            return _promoted(dtype_of(then, dtypes), dtype_of(otherwise, dtypes))
        case Element(tensor, _):
            return dtypes[tensor]


Code: TypeAlias = Callable[[tuple[int, ...]], Value]


def compiled(node: Node, tensors: Mapping[str, Tensor]) -> tuple[Code, str]:
    """An expression as a function of the axes' values; its dtype."""
    match node:
        case Number(value, dtype):
            literal: Value = Real(value) if isinstance(value, float) else value
            return lambda _: literal, dtype
        case Axis(number):
            return lambda at: at[number], "int64"
        case Apply(op, operands):
            return _compiled_apply(op, [compiled(operand, tensors) for operand in operands])
        case Convert(operand, target):
            inner, source = compiled(operand, tensors)
            return lambda at: convert(inner(at), source, target), target
        case Choose(condition, then, otherwise):
            return _compiled_choice(*(compiled(part, tensors) for part in (condition, then, otherwise)))
        case Element(name, indices):
            return _compiled_element(tensors[name], [compiled(index, tensors) for index in indices])


def _compiled_apply(op: str, parts: list[tuple[Code, str]]) -> tuple[Code, str]:
    common, out = result_dtype(op, [dtype for _, dtype in parts])
    return lambda at: apply(op, [convert(code(at), dtype, common) for code, dtype in parts], common), out


def _compiled_choice(condition: tuple[Code, str], then: tuple[Code, str], otherwise: tuple[Code, str]) -> tuple[Code, str]:
    dtype = _promoted(then[1], otherwise[1])

    def choose(at: tuple[int, ...]) -> Value:
        taken = condition[0](at)
        if isinstance(taken, Unknown):
            return UNKNOWN
        code, source = then if taken else otherwise
        return convert(code(at), source, dtype)

    return choose, dtype


def _compiled_element(tensor: Tensor, indices: list[tuple[Code, str]]) -> tuple[Code, str]:
    def read(at: tuple[int, ...]) -> Value:
        flat = 0
        for (code, dtype), extent in zip(indices, tensor.shape, strict=True):
            index = convert(code(at), dtype, "int64")
            if isinstance(index, Unknown):
                return UNKNOWN
            assert isinstance(index, int)
            assert 0 <= index < extent, f"a plan that reads element {index} of {extent}"
            flat = flat * extent + index
        return tensor.values[flat]

    return read, tensor.dtype


def run(stage: Stage, tensors: Mapping[str, Tensor]) -> Tensor:
    code, dtype = compiled(stage.body, tensors)
    product, zeros = _is_product(stage.body, tensors), _chooses_zero(stage.body, tensors)
    values: list[Value] = []
    for space in itertools.product(*map(range, stage.shape)):
        if stage.fold:
            terms = [code((*space, *reduced)) for reduced in itertools.product(*map(range, stage.folded))]
            reals = [x.value for x in terms if isinstance(x, Real)]
            fused = any(map(math.isinf, reals)) or (zeros and any(map(math.isnan, reals)))
            values.append(UNKNOWN if stage.fold == "sum" and product and fused else fold(stage.fold, terms, dtype))
        else:
            values.append(code(space))
    return Tensor(stage.shape, dtype, values, product and not stage.fold, zeros and not stage.fold)


def _chooses_zero(node: Node, tensors: Mapping[str, Tensor]) -> bool:
    """Whether a factor of ``node`` may be a zero that a condition chose: a sum need not take that in, whatever the others are."""
    match node:
        case Choose(_, then, otherwise):
            chosen = any(isinstance(arm, Number) and arm.value == 0 for arm in (then, otherwise))
            return chosen or _chooses_zero(then, tensors) or _chooses_zero(otherwise, tensors)
        case Apply("*", operands):
            return any(_chooses_zero(operand, tensors) for operand in operands)
        case Convert(operand, _):
            return _chooses_zero(operand, tensors)
        case Element(tensor, _):
            return tensors[tensor].zeros
    return False


def _is_product(node: Node, tensors: Mapping[str, Tensor]) -> bool:
    """Whether a sum may take in what ``node`` multiplies without rounding it: then it need not be infinite where that is."""
    match node:
        case Apply("*", _):
            return True
        case Element(name, _):
            return tensors[name].product
    return False


def given(array: Array) -> Tensor:
    dtype = next(name for name, kind in NUMPY.items() if kind == array.dtype)
    items = array.astype(np.float64) if dtype in FLOATS else array
    return Tensor(array.shape, dtype, [Real(x) if dtype in FLOATS else x for x in items.ravel().tolist()])


def evaluate(plan: Plan, arrays: Sequence[Array]) -> list[Tensor]:
    """The outputs of ``plan``, given its inputs."""
    tensors = {item.name: given(array) for item, array in zip(plan.inputs, arrays, strict=True)}
    for stage in plan.stages:
        tensors[stage.name] = run(stage, tensors)
    return [tensors[name] for name in plan.outputs]


def difference(expected: Tensor, found: Array) -> str:
    """The first element of ``found`` that is not as expected, in words; empty if there is none."""
    if found.shape != expected.shape or found.dtype != NUMPY[expected.dtype]:
        return f"{found.dtype}{list(found.shape)} instead of {expected.dtype}{list(expected.shape)}"
    items = (found.astype(np.float64) if expected.dtype in FLOATS else found).ravel().tolist()
    for number, (value, item) in enumerate(zip(expected.values, items, strict=True)):
        if not _matches(value, item):
            place = tuple(int(i) for i in np.unravel_index(number, expected.shape))
            return f"{item!r} instead of {value!r} at {place}"
    return ""


def _matches(value: Value, found: Any) -> bool:
    if isinstance(value, Unknown):
        return True
    if not isinstance(value, Real):
        return bool(value == found)
    if math.isnan(value.value) or math.isnan(found):
        return math.isnan(value.value) and math.isnan(found)
    if value.error:
        return abs(found - value.value) <= value.error
    return bool(found == value.value and (found != 0.0 or math.copysign(1.0, found) == math.copysign(1.0, value.value)))
