"""A program of every operation on one dtype, and whether what a device makes of it is what numpy does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ansorlite.loops.nodes import Function, Stmt, block
from ansorlite.te.expr import Binary, Expr, Unary
from ansorlite.te.numeric import apply
from ansorlite.te.ops import BINARY, UNARY, UnaryOp
from tests.unit.codegen.test_operators import APPROXIMATE, assert_same, kind, samples
from tests.unit.loops.build import argument, load, store

_COUNT = 100


def every_operation(
    dtype: str, elements: Callable[[int, Callable[[Expr], Stmt]], Stmt], run: Callable[[Function, list[np.ndarray]], object]
) -> None:
    """
    Args:
        elements: a loop over so many elements, with this body.
        run: runs a function on inputs and outputs, which it writes.

    Raises:
        AssertionError: some are wrong; which.
    """
    rng = np.random.default_rng(2)
    a, b = samples(dtype, _COUNT, rng), samples(dtype, _COUNT, rng)
    binaries = [op for op, info in BINARY.items() if kind(dtype) in info.kinds and not (info.to_float and kind(dtype) == "i")]
    unaries = [op for op, info in UNARY.items() if kind(dtype) in info.kinds]
    whole = (UnaryOp.FLOOR, UnaryOp.CEIL, UnaryOp.ROUND)
    unaries = [op for op in unaries if kind(dtype) == "f" or not (UNARY[op].to_float or op in whole)]
    x, y = argument("X", _COUNT, dtype=dtype), argument("Y", _COUNT, dtype=dtype)
    results = [argument(op.name, _COUNT, dtype="bool" if BINARY[op].boolean else dtype) for op in binaries]
    others = [argument(op.name, _COUNT, dtype=dtype) for op in unaries]

    def body(i: Expr) -> Stmt:
        first = (store(z, (i,), Binary(op, load(x, i), load(y, i), z.dtype)) for op, z in zip(binaries, results, strict=True))
        return block(*first, *(store(z, (i,), Unary(op, load(x, i), dtype)) for op, z in zip(unaries, others, strict=True)))

    outputs = [*results, *others]
    function = Function("f", (x, y, *outputs), len(outputs), elements(_COUNT, body))
    found = [np.zeros(_COUNT, z.dtype if z.dtype != "bfloat16" else a.dtype) for z in outputs]
    run(function, [a, b, *found])
    with np.errstate(all="ignore"):
        wanted: list[Any] = [apply(op, (a, b), dtype, z.dtype) for op, z in zip(binaries, results, strict=True)]
        wanted += [apply(op, (a,), dtype, dtype) for op in unaries]
    wrong = []
    for op, got, expected in zip([*binaries, *unaries], found, wanted, strict=True):
        try:
            assert_same(got, expected, APPROXIMATE.get(op, 0))
        except AssertionError as error:
            wrong.append(f"{op}: {error}")
    assert not wrong, "\n".join(wrong)
