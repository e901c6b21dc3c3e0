"""Powers against numpy: every pair of special numbers, all sizes of results, and literal exponents."""

import numpy as np
import pytest

from ansorlite.loops.nodes import Function, LoopKind
from ansorlite.te.expr import Binary, const
from ansorlite.te.ops import BinaryOp
from ansorlite.te.powers import has_products
from tests.unit.codegen.test_operators import assert_same, compiled
from tests.unit.loops.build import argument, load, loop, store

FLOATS = ["float32", "float64"]
#: What the next wider format says, where there is one.
WIDER = {"float32": np.float64, "float64": np.longdouble}


def special(dtype: str) -> np.ndarray:
    info = np.finfo(dtype)
    below, above = (
        np.nextafter(np.ones(1, dtype), np.zeros(1, dtype))[0],
        np.nextafter(np.ones(1, dtype), np.full(1, 2, dtype))[0],
    )
    big = [float(info.max), float(info.tiny), float(info.smallest_subnormal), 2.0**info.nmant + 1, 2.0 ** (info.nmant + 1) + 2]
    positive = [0.0, *big, 0.25, 0.5, 0.75, float(below), 1.0, float(above), 1.5, 2.0, 2.5, 3.0, 5.0, 1e10, np.inf]
    return np.array([np.nan, *positive, *(-x for x in positive)], dtype)


def powers(x: np.ndarray, y: np.ndarray | float, lanes: int = 16) -> np.ndarray:
    """``x ** y`` as compiled; a float ``y`` is a literal."""
    dtype, n = x.dtype.name, len(x)
    bases, exponents, result = (argument(name, n, dtype=dtype) for name in "XYZ")
    inputs = (bases, exponents) if isinstance(y, np.ndarray) else (bases,)
    body = loop(
        "i",
        n,
        lambda i: store(
            result,
            (i,),
            Binary(BinaryOp.POW, load(bases, i), load(exponents, i) if isinstance(y, np.ndarray) else const(y, dtype), dtype),
        ),
        LoopKind.VECTORIZED,
        lanes,
    )
    arrays = (x, y) if isinstance(y, np.ndarray) else (x,)
    found: np.ndarray = compiled(Function("f", (*inputs, result), 1, body), *arrays)
    return found


def expected(x: np.ndarray, y: np.ndarray | float) -> np.ndarray:
    """numpy's power of two arrays, which is C's; with the scalar 0.5 it is a square root, of -0 and -infinity too."""
    wide = WIDER[x.dtype.name]
    with np.errstate(all="ignore"):
        result: np.ndarray = np.power(x.astype(wide), np.full(x.shape, y, x.dtype).astype(wide)).astype(x.dtype)
    return result


def assert_signs(found: np.ndarray, wanted: np.ndarray) -> None:
    """Of zeros and infinities as well."""
    numbers = ~np.isnan(wanted)
    np.testing.assert_array_equal(np.signbit(found[numbers]), np.signbit(wanted[numbers]))


@pytest.mark.parametrize("lanes", [1, 16])
@pytest.mark.parametrize("dtype", FLOATS)
def test_special_numbers(dtype: str, lanes: int) -> None:
    values = special(dtype)
    x, y = (np.ascontiguousarray(grid.ravel()) for grid in np.meshgrid(values, values))
    found, wanted = powers(x, y, lanes), expected(x, y)
    assert_same(found, wanted, 2)
    assert_signs(found, wanted)


@pytest.mark.parametrize("dtype", FLOATS)
def test_all_sizes_of_results(dtype: str) -> None:
    rng = np.random.default_rng(0)
    n, largest = 20_000, {"float32": 150.0, "float64": 1080.0}[dtype]
    spread = 10.0 ** rng.uniform(-6, np.log10(largest * 0.9), n)
    x = np.exp2(rng.uniform(-spread, spread)).astype(dtype)
    with np.errstate(divide="ignore", over="ignore"):
        y = (rng.uniform(-largest, largest, n) / np.log2(x.astype(np.float64))).astype(dtype)
    found, wanted = powers(x, y), expected(x, y)
    assert_same(found, wanted, 2)
    assert np.isfinite(wanted[wanted > 0]).sum() > n // 2


@pytest.mark.parametrize("exponent", [-4.0, -2.75, -2.0, -1.0, -0.75, -0.5, 0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 3.75])
@pytest.mark.parametrize("dtype", FLOATS)
def test_literal_multiples_of_a_quarter(dtype: str, exponent: float) -> None:
    assert has_products(exponent)
    rng = np.random.default_rng(1)
    ordinary = np.exp2(rng.uniform(-300, 300, 1000)) if dtype == "float64" else np.exp2(rng.uniform(-140, 120, 1000))
    x = np.concatenate([special(dtype), ordinary.astype(dtype), -ordinary[:100].astype(dtype)])
    found, wanted = powers(x, exponent), expected(x, exponent)
    assert_same(found, wanted, 7)
    assert_signs(found, wanted)


@pytest.mark.parametrize("exponent", [0.6, 5.0, -7.5, float("inf"), float("nan")])
def test_other_literals(exponent: float) -> None:
    assert not has_products(exponent)
    x = special("float32")
    assert_same(powers(x, exponent), expected(x, exponent), 2)
