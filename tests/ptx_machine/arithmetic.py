"""What one thread computes from its registers alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tests.ptx_machine.accesses import elements
from tests.ptx_machine.errors import PtxError
from tests.ptx_machine.state import Mask, State, dtype_of, width
from tests.ptx_machine.text import PAIRS, Instruction

Values = NDArray[Any]


def is_float(kind: str) -> bool:
    return kind in ("f16", "f32", "f64")


def fused(x: Values, y: Values, z: Values) -> Values:
    """``x * y + z`` rounded once; of float64, once but for rare ties."""
    if x.dtype == np.float64:
        return _fused_double(x, y, z)
    # Exact in float64 but for the sum, which is rounded to odd: the second rounding then is right.
    product, addend = x.astype(np.float64) * y.astype(np.float64), z.astype(np.float64)
    total = product + addend
    back = total - product
    error = (product - (total - back)) + (addend - back)
    bits = total.view(np.int64)
    fix = np.isfinite(total) & (error != 0) & (bits & 1 == 0)
    step = np.where((error > 0) == (total > 0), 1, -1)
    result: Values = np.where(fix, bits + step, bits).view(np.float64).astype(x.dtype)
    return result


def _split(x: Values) -> tuple[Values, Values]:
    big = x * 134217729.0
    high = big - (big - x)
    return high, x - high


def _fused_double(x: Values, y: Values, z: Values) -> Values:
    product = x * y
    (a, b), (c, d) = _split(x), _split(y)
    low = ((a * c - product) + a * d + b * c) + b * d
    total = product + z
    back = total - product
    error = (product - (total - back)) + (z - back)
    exact = total + (error + low)
    result: Values = np.where(np.isfinite(low) & np.isfinite(error), exact, total)
    return result


def _minimum(x: Values, y: Values, instruction: Instruction) -> Values:
    if not is_float(instruction.type):
        return np.minimum(x, y)
    chosen = np.minimum(x, y) if instruction.has("NaN") else np.fmin(x, y)
    return np.where((x == y) & np.signbit(x), x, chosen)


def _maximum(x: Values, y: Values, instruction: Instruction) -> Values:
    if not is_float(instruction.type):
        return np.maximum(x, y)
    chosen = np.maximum(x, y) if instruction.has("NaN") else np.fmax(x, y)
    return np.where((x == y) & ~np.signbit(x), x, chosen)


def _divided(x: Values, y: Values) -> Values:
    if x.dtype.kind == "f":
        return x / y
    safe = np.where(y == 0, y.dtype.type(1), y)
    quotient = x // safe
    if x.dtype.kind == "i":
        quotient = quotient + ((x % safe != 0) & ((x < 0) != (safe < 0)))
    return np.where(y == 0, np.array(-1).astype(x.dtype), quotient.astype(x.dtype))


def _rest(x: Values, y: Values) -> Values:
    return np.where(y == 0, x, np.fmod(x, np.where(y == 0, y.dtype.type(1), y)))


def _shift(x: Values, y: Values, *, left: bool) -> Values:
    bits = 8 * x.dtype.itemsize
    by = np.minimum(y, bits - 1).astype(x.dtype)
    shifted = np.left_shift(x, by) if left else np.right_shift(x, by)
    gone = np.zeros_like(x) if left or x.dtype.kind == "u" else np.right_shift(x, bits - 1)
    result: Values = np.where(y >= bits, gone, shifted)
    return result


_PLAIN: Final[dict[str, Callable[[Values, Values], Values]]] = {
    "add": np.add,
    "sub": np.subtract,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "div": _divided,
    "rem": _rest,
}


def _flags(s: State, operand: str) -> Values:
    return np.full(s.n, bool(int(operand, 0))) if operand.lstrip("-").isdecimal() else s.predicate(operand)


def _binary(s: State, instruction: Instruction, mask: Mask) -> None:
    name, kind = instruction.operation[0], instruction.type
    to, *operands = instruction.operands
    if kind == "pred":
        s.put(to, _PLAIN[name](_flags(s, operands[0]), _flags(s, operands[1])), mask)
        return
    if kind in ("bf16x2", "bf16"):
        raise PtxError(f"unknown instruction: {instruction.text}")
    x, y = s.value(operands[0], kind), s.value(operands[1], kind)
    if instruction.has("cc") or (name in ("add", "sub") and instruction.has("sat") and not is_float(kind)):
        raise PtxError(f"unknown instruction: {instruction.text}")
    result = _flushed(_PLAIN[name](x, y), instruction)
    s.put(to, np.clip(result, 0, 1) if instruction.has("sat") else result, mask)


def _flushed(values: Values, instruction: Instruction) -> Values:
    """With ``.ftz`` denormal numbers become 0."""
    if not instruction.has("ftz"):
        return values
    return np.where(np.abs(values) < np.finfo(values.dtype).tiny, np.copysign(values.dtype.type(0), values), values)


def _extremum(s: State, instruction: Instruction, mask: Mask) -> None:
    to, a, b = instruction.operands
    kind = instruction.type
    choose = _minimum if instruction.operation[0] == "min" else _maximum
    s.put(to, choose(s.value(a, kind), s.value(b, kind), instruction), mask)


def _shifted(s: State, instruction: Instruction, mask: Mask) -> None:
    to, a, b = instruction.operands
    s.put(to, _shift(s.value(a, instruction.type), s.value(b, "u32"), left=instruction.operation[0] == "shl"), mask)


def _funnel(s: State, instruction: Instruction, mask: Mask) -> None:
    """``shf``: 32 bits of 64 that are shifted."""
    to, a, b, c = instruction.operands
    low, high = (s.value(operand, "u32").astype(np.uint64) for operand in (a, b))
    by = s.value(c, "u32").astype(np.uint64)
    by = by & np.uint64(31) if instruction.has("wrap") else np.minimum(by, np.uint64(32))
    both = high << np.uint64(32) | low
    result = np.where(by == 32, low, (both << by) >> np.uint64(32)) if instruction.has("l") else both >> by
    s.put(to, result.astype(np.uint32), mask)


def _product(x: Values, y: Values, kind: str, form: str) -> Values:
    """All bits, the upper half or the lower one."""
    if form == "lo":
        return x * y
    if width(kind) < 8:
        wide = x.astype(f"{x.dtype.kind}{2 * width(kind)}") * y.astype(f"{x.dtype.kind}{2 * width(kind)}")
        result: Values = wide if form == "wide" else (wide >> (8 * width(kind))).astype(x.dtype)
        return result
    exact = [(int(p) * int(q) >> 64) % (1 << 64) for p, q in zip(x.tolist(), y.tolist(), strict=True)]
    return np.array(exact, np.uint64).view(x.dtype)


def _multiply(s: State, instruction: Instruction, mask: Mask) -> None:
    kind = instruction.type
    to, *rest = instruction.operands
    if is_float(kind):
        s.put(to, _flushed(s.value(rest[0], kind) * s.value(rest[1], kind), instruction), mask)
        return
    form = next((word for word in ("lo", "hi", "wide") if instruction.has(word)), "")
    if not form or instruction.has("sat") or instruction.has("cc"):
        raise PtxError(f"unknown instruction: {instruction.text}")
    product = _product(s.value(rest[0], kind), s.value(rest[1], kind), kind, form)
    if instruction.operation[0] == "mad":
        product = product + s.value(rest[2], f"{kind[0]}{2 * width(kind) * 8}" if form == "wide" else kind)
    s.put(to, product, mask)


def _multiply_add(s: State, instruction: Instruction, mask: Mask) -> None:
    to, *operands = instruction.operands
    kind = instruction.type
    if not is_float(kind):
        raise PtxError(f"unknown instruction: {instruction.text}")
    s.put(to, _flushed(fused(*(s.value(operand, kind) for operand in operands)), instruction), mask)


def _move(s: State, instruction: Instruction, mask: Mask) -> None:
    to, value = instruction.operands
    kind = instruction.type
    if kind == "pred":
        s.put(to, _flags(s, value), mask)
    elif to[0] == "{":
        parts = elements(to)
        whole, bits = s.value(value, f"u{8 * width(kind)}"), 8 * width(kind) // len(parts)
        for number, part in enumerate(parts):
            s.put(part, (whole >> whole.dtype.type(number * bits)).astype(f"u{bits // 8}"), mask)
    elif value[0] == "{":
        parts = elements(value)
        bits = 8 * width(kind) // len(parts)
        joined = np.zeros(s.n, f"u{width(kind)}")
        for number, part in enumerate(parts):
            joined |= s.value(part, f"u{bits}").astype(joined.dtype) << joined.dtype.type(number * bits)
        s.put(to, joined, mask)
    else:
        s.put(to, s.value(value, kind), mask)


_ROUNDINGS: Final = {"rzi": np.trunc, "rni": np.rint, "rmi": np.floor, "rpi": np.ceil}


def _saturated(x: Values, dtype: np.dtype[Any]) -> Values:
    """Floats, whole numbers by now, as integers: the nearest that there is; NaN is 0."""
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    inside = (x >= float(low)) & (x < float(high) + (1 if dtype.itemsize < 8 else 0))
    result = np.where(inside, x, 0).astype(dtype)
    result = np.where(x >= float(high), dtype.type(high), result)
    return np.where(x < float(low), dtype.type(low), result)


def to_bfloat(x: Values) -> Values:
    """float32 rounded to bfloat16, half to even: its bits."""
    bits = x.view(np.uint32)
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    return np.where(np.isnan(x), np.uint16(0x7FFF), rounded)


def _convert(s: State, instruction: Instruction, mask: Mask) -> None:
    target, source = instruction.operation[-2:]
    to, *operands = instruction.operands
    if target in ("f16x2", "bf16x2"):
        high, low = (s.value(operand, "f32") for operand in operands)
        narrow = [to_bfloat(x) if target == "bf16x2" else x.astype(np.float16).view(np.uint16) for x in (low, high)]
        s.put(to, narrow[0].astype(np.uint32) | narrow[1].astype(np.uint32) << 16, mask)
        return
    if target == "bf16":
        s.put(to, to_bfloat(s.value(operands[0], "f32")), mask)
        return
    if target == "tf32":
        bits = s.value(operands[0], "u32")
        s.put(to, (bits + np.uint32(0x1000)) & np.uint32(0xFFFFE000), mask)
        return
    if source == "bf16":
        s.put(to, (s.value(operands[0], "u16").astype(np.uint32) << 16).view(np.float32), mask)
        return
    x, dtype = s.value(operands[0], source), dtype_of(target)
    for word, function in _ROUNDINGS.items():
        if instruction.has(word):
            x = function(x)
    if dtype.kind in "iu" and x.dtype.kind == "f":
        result = _saturated(x, dtype)
    elif dtype.kind in "iu" and instruction.has("sat"):
        result = np.clip(x, np.iinfo(dtype).min, np.iinfo(dtype).max).astype(dtype)
    elif dtype.kind == "f" and x.dtype.kind == "f" and dtype.itemsize < x.dtype.itemsize and instruction.has("rz"):
        raise PtxError(f"unknown instruction: {instruction.text}")
    else:
        result = x.astype(dtype)
        if instruction.has("sat"):
            result = np.clip(result, 0, 1)
    result = _flushed(result, instruction) if dtype.kind == "f" else result
    wide = s.kernel.widths.get(to, result.dtype.itemsize)
    if wide > result.dtype.itemsize and dtype.kind in "iu":
        result = result.astype(f"{dtype.kind}{wide}")
    s.put(to, result, mask)


_COMPARISONS: Final[dict[str, Callable[[Values, Values], Values]]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "lo": np.less,
    "ls": np.less_equal,
    "hi": np.greater,
    "hs": np.greater_equal,
}


def compare(name: str, x: Values, y: Values) -> Values:
    either = np.isnan(x) | np.isnan(y) if x.dtype.kind == "f" else np.zeros(len(x), np.bool_)
    if name in ("num", "nan"):
        return either if name == "nan" else ~either
    if x.dtype.kind == "f" and name[-1] == "u":
        return _COMPARISONS[name[:-1]](x, y) | either
    if name not in _COMPARISONS:
        raise PtxError(f"unknown comparison: {name}")
    # An ordered "not equal" does not hold of NaN.
    return _COMPARISONS[name](x, y) & ~either


def _set_predicate(s: State, instruction: Instruction, mask: Mask) -> None:
    to, a, b, *more = instruction.operands
    kind = instruction.type.replace("b", "u") if instruction.type[0] == "b" and instruction.type != "bf16" else instruction.type
    result = compare(instruction.operation[1], s.value(a, kind), s.value(b, kind))
    if more:
        result = _PLAIN[instruction.operation[2]](result, s.predicate(more[0]))
    first, _, second = to.partition("|")
    s.put(first, result, mask)
    if second:
        s.put(second, ~result, mask)


def _select(s: State, instruction: Instruction, mask: Mask) -> None:
    to, a, b, condition = instruction.operands
    kind = instruction.type
    s.put(to, np.where(s.predicate(condition), s.value(a, kind), s.value(b, kind)), mask)


def _bit_field(s: State, instruction: Instruction, mask: Mask) -> None:
    """``bfe``: some bits of a word."""
    to, a, begin, count = instruction.operands
    x, bits = s.value(a, instruction.type), 8 * width(instruction.type)
    at, length = (np.minimum(s.value(operand, "u32") & 0xFF, bits) for operand in (begin, count))
    length = np.minimum(length, bits - np.minimum(at, bits))
    raised = _shift(x, (bits - at - length).astype(np.uint32), left=True)
    s.put(to, np.where(length == 0, x.dtype.type(0), _shift(raised, (bits - length).astype(np.uint32), left=False)), mask)


def _insert_bits(s: State, instruction: Instruction, mask: Mask) -> None:
    """``bfi``: the low bits of one word in the place of some bits of another."""
    to, bits, into, begin, length = instruction.operands
    if instruction.operation[-1] != "b32":
        raise PtxError(f"unknown instruction: {instruction.text}")
    first, count = (s.value(operand, "u32").astype(np.uint64) & np.uint64(0xFF) for operand in (begin, length))
    ones = ((np.uint64(1) << np.minimum(count, 32)) - np.uint64(1)) << np.minimum(first, 32)
    placed = (s.value(bits, "u32").astype(np.uint64) << np.minimum(first, 32)) & ones
    s.put(to, ((s.value(into, "u32").astype(np.uint64) & ~ones) | placed).astype(np.uint32), mask)


def _permute(s: State, instruction: Instruction, mask: Mask) -> None:
    """``prmt``: four bytes of eight."""
    to, a, b, choice = instruction.operands
    if instruction.operation[-1] != "b32":
        raise PtxError(f"unknown instruction: {instruction.text}")
    both = s.value(a, "u32").astype(np.uint64) | s.value(b, "u32").astype(np.uint64) << np.uint64(32)
    picks = s.value(choice, "u32")
    result = np.zeros(s.n, np.uint32)
    for number in range(4):
        pick = picks >> np.uint32(4 * number)
        byte = (both >> ((pick & 7).astype(np.uint64) * np.uint64(8))) & np.uint64(0xFF)
        byte = np.where(pick & 8, np.where(byte & np.uint64(0x80), np.uint64(0xFF), np.uint64(0)), byte)
        result |= byte.astype(np.uint32) << np.uint32(8 * number)
    s.put(to, result, mask)


def _leading_zeros(x: Values) -> Values:
    bits = 8 * x.dtype.itemsize
    return np.array([bits - int(value).bit_length() for value in x.tolist()], np.uint32)


def _reciprocal(x: Values) -> Values:
    return np.asarray(1, x.dtype) / x


_UNARY: Final[dict[str, Callable[[Values], Values]]] = {
    "neg": np.negative,
    "abs": np.abs,
    "not": np.invert,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: _reciprocal(np.sqrt(x)),
    "rcp": _reciprocal,
    "ex2": np.exp2,
    "lg2": np.log2,
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
    "popc": lambda x: np.bitwise_count(x).astype(np.uint32),
    "clz": _leading_zeros,
}


def _unary(s: State, instruction: Instruction, mask: Mask) -> None:
    to, a = instruction.operands
    name, kind = instruction.operation[0], instruction.type
    if kind == "pred":
        s.put(to, ~_flags(s, a), mask)
        return
    if kind in ("bf16", "bf16x2"):
        raise PtxError(f"unknown instruction: {instruction.text}")
    result = _UNARY[name](s.value(a, kind))
    s.put(to, _flushed(result, instruction) if is_float(kind) else result, mask)


def _copysign(s: State, instruction: Instruction, mask: Mask) -> None:
    """``copysign d, a, b``: the magnitude of b with the sign of a."""
    to, a, b = instruction.operands
    kind = instruction.type
    s.put(to, np.copysign(s.value(b, kind), s.value(a, kind)), mask)


def _by_halves(handler: Callable[[State, Instruction, Mask], None]) -> Callable[[State, Instruction, Mask], None]:
    """The operation on pairs of float16, too: on the lower halves, then on the upper ones."""

    def run(s: State, instruction: Instruction, mask: Mask) -> None:
        if instruction.type != "f16x2" or instruction.operation[0] in ("cvt", "mov"):
            handler(s, instruction, mask)
            return
        to, *operands = instruction.operands
        halves = []
        for half in (0, 16):
            for number, operand in enumerate(operands, 1):
                part = (s.value(operand, "u32") >> np.uint32(half)).astype(np.uint16)
                s.put(PAIRS[number], part, np.ones(s.n, np.bool_))
            single = Instruction((*instruction.operation[:-1], "f16"), tuple(PAIRS[: len(operands) + 1]), None, instruction.text)
            handler(s, single, np.ones(s.n, np.bool_))
            halves.append(s.value(PAIRS[0], "u16").astype(np.uint32))
        s.put(to, halves[0] | halves[1] << np.uint32(16), mask)

    return run


_EVERY: Final = {
    **dict.fromkeys(("add", "sub", "and", "or", "xor", "div", "rem"), _binary),
    **dict.fromkeys(("min", "max"), _extremum),
    **dict.fromkeys(("shl", "shr"), _shifted),
    **dict.fromkeys(("mul", "mad"), _multiply),
    **dict.fromkeys(_UNARY, _unary),
    "shf": _funnel,
    "fma": _multiply_add,
    "mov": _move,
    "cvt": _convert,
    "setp": _set_predicate,
    "selp": _select,
    "bfe": _bit_field,
    "bfi": _insert_bits,
    "prmt": _permute,
    "copysign": _copysign,
}

HANDLERS: Final = {name: _by_halves(handler) for name, handler in _EVERY.items()}
