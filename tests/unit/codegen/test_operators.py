"""Every operation on every dtype against numpy, in vectors with tails and in scalars, special values among them."""

from typing import Any

import numpy as np
import pytest

from ansorlite.loops.nodes import Buffer, Function, LoopKind, Stmt, block
from ansorlite.target import host
from ansorlite.te import dtypes
from ansorlite.te.expr import Binary, Cast, Expr, Unary, Var, binary, const
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
        return block(*(store(z, (i,), Binary(op, *operands(op, i), z.dtype)) for op, z in zip(ops, outputs, strict=True)))

    def operands(op: BinaryOp, i: Var) -> tuple[Expr, Expr]:
        # numpy refuses negative exponents of integers.
        return load(x, i), const(3, dtype) if op is BinaryOp.POW and kind(dtype) == "i" else load(y, i)

    function = Function("f", (x, y, *outputs), len(outputs), loop("i", n, body, LoopKind.VECTORIZED, lanes))
    for op, found in zip(ops, compiled(function, a, b), strict=True):
        with np.errstate(all="ignore"):
            expected = BINARY[op].numpy(a, a.dtype.type(3) if op is BinaryOp.POW and kind(dtype) == "i" else b)
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
            expected = UNARY[op].numpy(a).astype(a.dtype)
        assert_same(found, expected, APPROXIMATE.get(op, 0))


@pytest.mark.parametrize("lanes", [1, 16])
@pytest.mark.parametrize("source", ALL)
def test_cast(source: str, lanes: int) -> None:
    n = 67
    a = samples(source, n, np.random.default_rng(n))
    # Beyond an integer's range numpy itself has no defined answer, so integers are made from small numbers.
    small = np.clip(np.nan_to_num(a.astype(np.float64)), 0, 100).astype(a.dtype) if kind(source) == "f" else a
    x, s = argument("X", n, dtype=source), argument("S", n, dtype=source)
    outputs = [argument(target, n, dtype=target) for target in ALL]

    def body(i: Var) -> Stmt:
        return block(*(store(z, (i,), Cast(load(s if kind(z.dtype) == "i" else x, i), z.dtype)) for z in outputs))

    function = Function("f", (x, s, *outputs), len(outputs), loop("i", n, body, LoopKind.VECTORIZED, lanes))
    for target, found in zip(ALL, compiled(function, a, small), strict=True):
        with np.errstate(all="ignore"):
            expected = (small if kind(target) == "i" else a).astype(dtypes.NUMPY[target])
        assert_same(found, expected)


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
