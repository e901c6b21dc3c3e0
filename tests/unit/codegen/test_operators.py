"""Every operation on every dtype against numpy, in vectors with tails and in scalars, special values among them."""

from typing import Any

import numpy as np
import pytest

from ansorlite.codegen import assembly
from ansorlite.loops.nodes import Buffer, Function, LoopKind, Stmt, block
from ansorlite.platforms import build
from ansorlite.target import LEVELS, host
from ansorlite.te import dtypes
from ansorlite.te.expr import Binary, Cast, Unary, Var, binary, const
from ansorlite.te.numeric import apply, convert
from ansorlite.te.ops import BINARY, UNARY, BinaryOp, UnaryOp
from tests.running import called, run
from tests.unit.loops.build import argument, load, loop, store

TARGET = host(threads=1)
ALL = list(dtypes.NUMPY)

#: The functions that are not correctly rounded -> how many units in the last place they may be off.
APPROXIMATE = {
    UnaryOp.EXP: 4,
    UnaryOp.LOG: 4,
    UnaryOp.TANH: 4,
    UnaryOp.SIGMOID: 4,
    UnaryOp.ERF: 4,
    BinaryOp.POW: 4,
}


def kind(dtype: str) -> str:
    return "b" if dtype == "bool" else "f" if dtypes.is_float(dtype) else "i"


def special(dtype: str) -> list[float]:
    if dtype == "bool":
        return [False, True]
    if dtypes.is_float(dtype):
        info = np.finfo(np.float32) if dtype == "bfloat16" else np.finfo(dtype)
        return [0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, np.inf, -np.inf, np.nan, float(info.max), float(info.tiny)]
    info_int = np.iinfo(dtype)
    return [0, 1, 2, 3, info_int.max, info_int.max - 1, info_int.min, info_int.min + 1, 7 if info_int.min == 0 else -7]


def samples(dtype: str, n: int, rng: np.random.Generator) -> np.ndarray:
    """``n`` numbers: special ones and ordinary ones, in random order."""
    if dtype == "bool":
        return rng.integers(0, 2, n).astype(bool)
    if dtypes.is_float(dtype):
        plain = rng.standard_normal(n) * np.exp(rng.uniform(-3, 3, n))
    else:
        plain = rng.integers(0 if dtype.startswith("u") else -50, 50, n)
    chosen = np.array(special(dtype), dtypes.NUMPY[dtype])
    values = plain.astype(dtypes.NUMPY[dtype])
    picks = rng.random(n) < 0.3
    values[picks] = rng.choice(chosen, n)[picks]
    return values


def compiled(function: Function, *arrays: np.ndarray, out: list[np.ndarray] | None = None) -> Any:
    if out is None:
        return called(function, TARGET, *arrays)
    run(function, TARGET, *arrays, *out)


def assert_same(found: np.ndarray, expected: np.ndarray, ulps: int = 0) -> None:
    """Equal, NaN as NaN; floats within ``ulps`` units in the last place."""
    assert found.dtype == expected.dtype
    if kind(expected.dtype.name) != "f":
        np.testing.assert_array_equal(found, expected)
        return
    wide = expected.astype(np.float64)  # numpy itself does not see that bfloat16 has NaN
    finite = np.isfinite(wide)
    np.testing.assert_array_equal(found[~finite].astype(np.float64), wide[~finite])
    bits = {"float16": 10, "bfloat16": 7, "float32": 23, "float64": 52}[expected.dtype.name]
    tiny = {"float16": 2.0**-14, "bfloat16": 2.0**-126, "float32": 2.0**-126, "float64": 2.0**-1022}[expected.dtype.name]
    ulp = np.maximum(np.abs(wide[finite]), tiny) * 2.0**-bits
    assert (np.abs(found[finite].astype(np.float64) - wide[finite]) <= ulps * ulp).all()


@pytest.mark.parametrize("lanes", [1, 16])
@pytest.mark.parametrize("dtype", ALL)
def test_binary(dtype: str, lanes: int) -> None:
    n = 67
    rng = np.random.default_rng(n)
    a, b = samples(dtype, n, rng), samples(dtype, n, rng)
    ops = [op for op, info in BINARY.items() if kind(dtype) in info.kinds and not (info.to_float and kind(dtype) == "i")]
    x, y = argument("X", n, dtype=dtype), argument("Y", n, dtype=dtype)
    outputs = [argument(op.name, n, dtype="bool" if BINARY[op].boolean else dtype) for op in ops]

    def body(i: Var) -> Stmt:
        return block(*(store(z, (i,), Binary(op, load(x, i), load(y, i), z.dtype)) for op, z in zip(ops, outputs, strict=True)))

    function = Function("f", (x, y, *outputs), len(outputs), loop("i", n, body, LoopKind.VECTORIZED, lanes))
    for op, found in zip(ops, compiled(function, a, b), strict=True):
        with np.errstate(all="ignore"):
            expected = apply(op, (a, b), dtype, "bool" if BINARY[op].boolean else dtype)
        assert_same(found, expected, APPROXIMATE.get(op, 0))


@pytest.mark.parametrize("lanes", [1, 16])
@pytest.mark.parametrize("dtype", ALL)
def test_unary(dtype: str, lanes: int) -> None:
    n = 67
    a = samples(dtype, n, np.random.default_rng(n))
    rounding = (UnaryOp.FLOOR, UnaryOp.CEIL, UnaryOp.ROUND)
    ops = [op for op, info in UNARY.items() if kind(dtype) in info.kinds]
    ops = [op for op in ops if kind(dtype) == "f" or not (UNARY[op].to_float or op in rounding)]
    x = argument("X", n, dtype=dtype)
    outputs = [argument(op.name, n, dtype=dtype) for op in ops]

    def body(i: Var) -> Stmt:
        return block(*(store(z, (i,), Unary(op, load(x, i), dtype)) for op, z in zip(ops, outputs, strict=True)))

    function = Function("f", (x, *outputs), len(outputs), loop("i", n, body, LoopKind.VECTORIZED, lanes))
    results = compiled(function, a)
    for op, found in zip(ops, results if len(ops) > 1 else (results,), strict=True):
        with np.errstate(all="ignore"):
            expected = apply(op, (a,), dtype, dtype)
        assert_same(found, expected, APPROXIMATE.get(op, 0))


@pytest.mark.parametrize("lanes", [1, 16])
@pytest.mark.parametrize("source", ALL)
def test_cast(source: str, lanes: int) -> None:
    n = 67
    a = np.concatenate([samples(source, n, np.random.default_rng(n)), borders(source)])
    x = argument("X", a.size, dtype=source)
    outputs = [argument(target, a.size, dtype=target) for target in ALL]

    def body(i: Var) -> Stmt:
        return block(*(store(z, (i,), Cast(load(x, i), z.dtype)) for z in outputs))

    function = Function("f", (x, *outputs), len(outputs), loop("i", a.size, body, LoopKind.VECTORIZED, lanes))
    for target, found in zip(ALL, compiled(function, a), strict=True):
        with np.errstate(all="ignore"):
            assert_same(found, convert(a, target))


def borders(dtype: str) -> np.ndarray:
    """What an integer dtype just holds, or just does not."""
    if kind(dtype) != "f":
        return np.zeros(0, dtypes.NUMPY[dtype])
    edges = np.array([sign * 2.0**power for power in (7, 8, 15, 16, 31, 32, 63, 64) for sign in (-1, 1)])
    if dtype == "bfloat16":
        return np.concatenate([edges * factor for factor in (1 - 2.0**-8, 1.0, 1 + 2.0**-7)]).astype(dtypes.NUMPY[dtype])
    with np.errstate(over="ignore"):
        exact = np.concatenate([edges - 1, edges - 0.5, edges, edges + 0.5, edges + 1]).astype(dtypes.NUMPY[dtype])
    return np.concatenate([np.nextafter(exact, exact.dtype.type(-np.inf)), exact, np.nextafter(exact, exact.dtype.type(np.inf))])


@pytest.mark.parametrize("lanes", [1, 3, 4, 16, 32])
@pytest.mark.parametrize("target", [dtype for dtype in ALL if kind(dtype) == "i"])
@pytest.mark.parametrize("source", ["float32", "float64", "float16"])
@pytest.mark.parametrize("rounded", [False, True], ids=["cut off", "rounded"])
def test_cast_of_what_is_limited(source: str, target: str, lanes: int, rounded: bool) -> None:
    """Limits that are seen spare the conversion its own, which may round as well; NaN still becomes 0."""
    a = np.concatenate([samples(source, 67, np.random.default_rng(1)), borders(source)])
    x, out = argument("X", a.size, dtype=source), argument("O", a.size, dtype=target)
    info = np.iinfo(target)
    # Of wide integers, the greatest float that they hold.
    high = float(info.max) if float(info.max) <= info.max else float(np.nextafter(np.float32(info.max), np.float32(0)))
    low = float(info.min)
    if source == "float16":
        low, high = max(low, -65504.0), min(high, 65504.0)
    bounds = const(low, source), const(high, source)

    def body(i: Var) -> Stmt:
        raised = Binary(BinaryOp.MAX, load(x, i), bounds[0], source)
        limited = Binary(BinaryOp.MIN, raised, bounds[1], source)
        return store(out, (i,), Cast(Unary(UnaryOp.ROUND, limited, source) if rounded else limited, target))

    function = Function("f", (x, out), 1, loop("i", a.size, body, LoopKind.VECTORIZED, lanes))
    low_value, high_value = (a.dtype.type(bound.value) for bound in bounds)
    with np.errstate(all="ignore"):
        limited = np.minimum(np.maximum(a, low_value), high_value)
        assert_same(compiled(function, a), convert(np.rint(limited) if rounded else limited, target))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "uint16", "int32", "int64", "bool", "float16"])
@pytest.mark.parametrize("lanes", [4, 16, 64])
def test_tails(dtype: str, lanes: int) -> None:
    """A copy of every length is right, and writes nothing beyond its end."""
    lengths = [*range(1, 20), 31, 33, 48, 63, 64, 65, 67]
    inputs = [argument(f"X{n}", n, dtype=dtype) for n in lengths]
    outputs = [argument(f"Z{n}", n, dtype=dtype) for n in lengths]

    def copy(x: Buffer, z: Buffer) -> Stmt:
        return loop("i", x.size, lambda i: store(z, (i,), load(x, i)), LoopKind.VECTORIZED, lanes)

    function = Function("copies", (*inputs, *outputs), len(lengths), block(*map(copy, inputs, outputs)))
    arrays = [samples(dtype, n, np.random.default_rng(n)) for n in lengths]
    rooms = [np.zeros(n + 64, arrays[0].dtype) for n in lengths]
    compiled(function, *arrays, out=[room[:n] for room, n in zip(rooms, lengths, strict=True)])
    for n, array, room in zip(lengths, arrays, rooms, strict=True):
        assert_same(room[:n], array)
        assert not room[n:].any()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_element_by_element_every_operation_is_rounded(dtype: str) -> None:
    """A product and a sum that were fused would differ in the last place from what models' authors see elsewhere."""
    n, rng = 1003, np.random.default_rng(0)
    x, y = argument("X", n, dtype=dtype), argument("Y", n, dtype=dtype)
    out = argument("O", n, dtype=dtype)

    def body(i: Var) -> Stmt:
        product = binary(BinaryOp.MUL, load(x, i), load(y, i))
        return store(out, (i,), binary(BinaryOp.SUB, binary(BinaryOp.ADD, product, load(x, i)), product))

    function = Function("chain", (x, y, out), 1, loop("i", n, body, LoopKind.VECTORIZED, 16))
    a, b = (rng.uniform(-1, 1, n).astype(dtype) for _ in range(2))
    np.testing.assert_array_equal(called(function, TARGET, a, b), a * b + a - a * b)


@pytest.mark.parametrize("machine", ["x86-64-v2", "x86-64-v3", "x86-64-v4"])
def test_a_maximum_of_what_may_be_nan_is_an_instruction_and_a_test(machine: str) -> None:
    x, y = argument("X", 64), argument("Y", 16)

    def body(i: Var) -> Stmt:
        return store(y, (i,), Binary(BinaryOp.MAX, load(x, i), load(y, i), "float32"))

    function, target = Function("f", (x, y), 1, loop("i", 16, body, LoopKind.VECTORIZED, 16)), LEVELS[machine]
    code = assembly(build(function, target), target)
    assert "maxps" in code
    assert "cmpltps" not in code
