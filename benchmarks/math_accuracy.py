"""The largest error of each vector function, over all float32 values (or every n-th) and many float64 values.

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

from ansorlite.codegen import build
from ansorlite.loops.nodes import Buffer, For, Function, Load, LoopKind, Scope, Store, index
from ansorlite.runtime.kernel import Kernel
from ansorlite.target import host
from ansorlite.te.expr import Unary, Var
from ansorlite.te.ops import UnaryOp

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


def _kernel(op: UnaryOp, dtype: str) -> Kernel:
    target = host(threads=1)
    x, z = Buffer("X", (_BLOCK,), dtype, Scope.ARGUMENT), Buffer("Z", (_BLOCK,), dtype, Scope.ARGUMENT)
    i = Var("i")
    body = For(i, index(_BLOCK), LoopKind.VECTORIZED, Store(z, (i,), Unary(op, Load(x, (i,), dtype), dtype)), target.lanes(dtype))
    function = Function(op.value, (x, z), 1, body)
    return Kernel(build(function, target), function.params, target)


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
    kernel = _kernel(op, dtype)
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stride", type=int, default=1, help="look at every n-th float32 value")
    stride = parser.parse_args().stride
    for dtype in ("float32", "float64"):
        for op in _FUNCTIONS:
            worst, where = largest(op, dtype, stride)
            print(f"{dtype:8} {op.value:8} {worst:10.3f} ulp at {where!r}", flush=True)


if __name__ == "__main__":
    main()
