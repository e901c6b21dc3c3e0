"""The largest error of each vector function, over all float32 values (or every n-th) and many float64 values, and of powers
over many pairs.

Errors are in units in the last place of the exact result; the reference is float64 for float32, and long double where
there is one for float64. Denormal results count in units of the smallest denormal number.

    python benchmarks/math_accuracy.py [--stride 1]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy import special

from ansorlite.loops.nodes import Buffer, For, Function, Load, LoopKind, Scope, Store, index
from ansorlite.platforms import build
from ansorlite.runtime.kernel import Kernel
from ansorlite.target import host
from ansorlite.te.expr import Binary, Expr, Unary, Var, const
from ansorlite.te.ops import BinaryOp, UnaryOp

_BLOCK = 1 << 20
_MANTISSA = {"float32": 23, "float64": 52}
_SMALLEST = {"float32": -126, "float64": -1022}


def _sigmoid(x: Any) -> Any:
    z = np.exp(-np.abs(x))
    return np.where(x >= 0, 1, z) / (1 + z)


_FUNCTIONS: dict[UnaryOp, Callable[[Any], Any]] = {
    UnaryOp.EXP: np.exp,
    UnaryOp.LOG: np.log,
    UnaryOp.TANH: np.tanh,
    UnaryOp.SIGMOID: _sigmoid,
    UnaryOp.ERF: special.erf,
    UnaryOp.SQRT: np.sqrt,
    UnaryOp.RSQRT: lambda x: 1 / np.sqrt(x),
}


#: Exponents that are products and square roots, and ones that are not.
_EXPONENTS = (-3.25, -2.0, -1.75, -1.0, -0.75, -0.5, 0.25, 0.5, 0.75, 1.5, 2.5, 3.0, 4.0, 0.6, 5.0)


def _kernel(value: Callable[..., Expr], inputs: int, dtype: str) -> Kernel:
    """``value`` of as many arrays, element by element."""
    target = host(threads=1)
    buffers = [Buffer(f"X{n}", (_BLOCK,), dtype, Scope.ARGUMENT) for n in range(inputs)]
    z = Buffer("Z", (_BLOCK,), dtype, Scope.ARGUMENT)
    i = Var("i")
    store = Store(z, (i,), value(*(Load(x, (i,), dtype) for x in buffers)))
    function = Function("f", (*buffers, z), 1, For(i, index(_BLOCK), LoopKind.VECTORIZED, store, target.lanes(dtype)))
    return Kernel(build(function, target), function.params, target)


def _pairs(dtype: str) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Bases and exponents whose powers are mostly in range: any bits, all sizes of results, and bases near 1."""
    rng = np.random.default_rng(0)
    integer, bits, range_ = ("uint32", 32, 150.0) if dtype == "float32" else ("uint64", 64, 1080.0)
    for _ in range(4):
        yield tuple(rng.integers(0, 1 << bits, _BLOCK, dtype=integer).view(dtype) for _ in range(2))  # type: ignore[misc]
    for spread in (1e-6, 1e-3, 0.1, 1.0, 10.0, range_ * 0.95):
        for _ in range(4):
            base = np.exp2(rng.uniform(-spread, spread, _BLOCK)).astype(dtype)
            with np.errstate(all="ignore"):
                exponent = rng.uniform(-range_, range_, _BLOCK) / np.log2(base.astype(np.float64))
                yield base, exponent.astype(dtype)


def _all_float32(stride: int) -> Iterator[np.ndarray]:
    step = _BLOCK * stride
    for start in range(0, 1 << 32, step):
        yield (np.arange(start, start + step, stride, dtype=np.uint64) & 0xFFFFFFFF).astype(np.uint32).view(np.float32)


def _many_float64() -> Iterator[np.ndarray]:
    rng = np.random.default_rng(0)
    for _ in range(4):
        yield rng.integers(0, 1 << 64, _BLOCK, dtype=np.uint64).view(np.float64)
    for scale in (1e-3, 0.1, 1, 10, 100, 400):
        yield rng.uniform(-scale, scale, _BLOCK)


def errors(found: np.ndarray, exact: np.ndarray, dtype: str) -> np.ndarray:
    """In units in the last place; infinite where one is NaN or infinite and the other is not (after rounding)."""
    rounded = exact.astype(dtype)
    finite = np.isfinite(rounded) & np.isfinite(found)
    same = (rounded == found) | (np.isnan(rounded) & np.isnan(found))
    exponent = np.maximum(np.frexp(np.abs(exact[finite]))[1] - 1, _SMALLEST[dtype])
    result = np.where(same, 0.0, np.inf)
    result[finite] = np.abs(found[finite] - exact[finite]) / np.ldexp(np.ones_like(exact[finite]), exponent - _MANTISSA[dtype])
    return result


def largest(op: UnaryOp, dtype: str, stride: int) -> tuple[float, float]:
    """(largest error, the argument it is at)."""
    kernel = _kernel(lambda x: Unary(op, x, dtype), 1, dtype)
    wide = np.float64 if dtype == "float32" else np.longdouble
    worst, where = 0.0, 0.0
    with np.errstate(all="ignore"):
        for x in _all_float32(stride) if dtype == "float32" else _many_float64():
            exact = _FUNCTIONS[op](x if op is UnaryOp.ERF and dtype == "float64" else x.astype(wide))
            e = errors(kernel(x), exact, dtype)
            at = int(np.argmax(e))
            if e[at] > worst:
                worst, where = float(e[at]), float(x[at])
    return worst, where


def largest_power(dtype: str, exponent: float | None) -> tuple[float, tuple[float, float]]:
    """(largest error, the base and the exponent it is at), with all exponents or a literal one."""

    def value(x: Expr, *y: Expr) -> Expr:
        return Binary(BinaryOp.POW, x, y[0] if exponent is None else const(exponent, dtype), dtype)

    kernel = _kernel(value, 2 if exponent is None else 1, dtype)
    wide = np.float64 if dtype == "float32" else np.longdouble
    worst, where = 0.0, (0.0, 0.0)
    with np.errstate(all="ignore"):
        for x, y in _pairs(dtype):
            if exponent is not None:
                y = np.full_like(y, exponent)
            e = errors(kernel(x, y) if exponent is None else kernel(x), np.power(x.astype(wide), y.astype(wide)), dtype)
            at = int(np.argmax(e))
            if e[at] > worst:
                worst, where = float(e[at]), (float(x[at]), float(y[at]))
    return worst, where


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stride", type=int, default=1, help="look at every n-th float32 value")
    stride = parser.parse_args().stride
    for dtype in ("float32", "float64"):
        for op in _FUNCTIONS:
            worst, where = largest(op, dtype, stride)
            print(f"{dtype:8} {op.value:8} {worst:10.3f} ulp at {where!r}", flush=True)
        for exponent in (None, *_EXPONENTS):
            worst, pair = largest_power(dtype, exponent)
            print(f"{dtype:8} power {'any' if exponent is None else exponent:>5} {worst:7.3f} ulp at {pair!r}", flush=True)


if __name__ == "__main__":
    main()
