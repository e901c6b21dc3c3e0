"""The native code that evaluates a forest. Compiled once a process; the forest is data.

Written for 16 programs at a time, in LLVM's generic vectors: one AVX-512 register, or two of AVX2, or four of NEON.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Final

import numpy as np
from llvmlite import ir
from numpy.typing import NDArray

from ansorlite.native import F32, F64, I32, I64, PTR, compiled, declare, gather, load, loop, splat

#: The most leaves that a tree may have: one bit each.
LEAVES: Final = 32
_LANES: Final = 16

_ARGUMENTS: Final = (
    ("features", PTR),
    ("programs", I64),
    ("statements", I64),
    ("program_stride", I64),
    ("statement_stride", I64),
    ("feature_stride", I64),
    ("used", PTR),
    ("n_used", I64),
    ("n_trees", I64),
    ("first", PTR),
    ("feature", PTR),
    ("threshold", PTR),
    ("mask", PTR),
    ("leaves", PTR),
    ("columns", PTR),
    ("scores", PTR),
)


def sum_of_trees(
    features: NDArray[np.float64],
    used: NDArray[np.int64],
    first: NDArray[np.int64],
    feature: NDArray[np.int64],
    threshold: NDArray[np.float32],
    mask: NDArray[np.uint32],
    leaves: NDArray[np.float64],
) -> NDArray[np.float64]:
    """``(n, statements, features)`` to ``(n,)``; the other arrays are those of :class:`ansorlite.cost_model.forest.Forest`."""
    n, statements, _ = features.shape
    scores = np.zeros(-(-n // _LANES) * _LANES)
    columns = np.empty((max(1, len(used)), _LANES), np.float32)
    if n:
        strides = [stride // features.itemsize for stride in features.strides]
        arrays = [array.ctypes.data for array in (first, feature, threshold, mask, leaves, columns, scores)]
        _, function = _compiled()
        function(features.ctypes.data, n, statements, *strides, used.ctypes.data, len(used), len(first) - 1, *arrays)
    return scores[:n]


@cache
def _compiled() -> tuple[Any, Callable[..., None]]:
    """The engine that owns the code, and the function in it."""
    return compiled(_function())


def _function() -> ir.Function:
    function, a = declare("sum_of_trees", _ARGUMENTS)
    b = ir.IRBuilder(function.append_basic_block("entry"))
    lane_numbers = ir.Constant(ir.VectorType(I64, _LANES), list(range(_LANES)))
    last = splat(b, b.sub(a["programs"], I64(1)), _LANES)
    with loop(b, I64(0), a["programs"], _LANES) as base:
        lanes = b.add(splat(b, base, _LANES), lane_numbers)
        programs = b.select(b.icmp_signed("<", lanes, last), lanes, last)  # the lanes past the end repeat the last program
        offsets = b.mul(programs, splat(b, a["program_stride"], _LANES))
        into = b.gep(a["scores"], [base], source_etype=F64)
        with loop(b, I64(0), a["statements"]) as statement:
            start = b.mul(statement, a["statement_stride"])
            with loop(b, I64(0), a["n_used"]) as position:
                column = b.mul(load(b, a["used"], position, I64), a["feature_stride"])
                values = gather(b, a["features"], b.add(offsets, splat(b, b.add(start, column), _LANES)), F64)
                narrow = b.fptrunc(values, ir.VectorType(F32, _LANES))
                b.store(narrow, b.gep(a["columns"], [b.mul(position, I64(_LANES))], source_etype=F32), align=4)
            _trees(b, a, into)
    b.ret_void()
    return function


def _trees(b: ir.IRBuilder, a: dict[str, ir.Value], into: ir.Value) -> None:
    """Add the value of every tree to the 16 scores at ``into``."""
    bits_type, sum_type = ir.VectorType(I32, _LANES), ir.VectorType(F64, _LANES)
    bits = _entry_slot(b, bits_type)
    count = ir.Function(b.module, ir.FunctionType(bits_type, [bits_type, ir.IntType(1)]), f"llvm.cttz.v{_LANES}i32")
    with loop(b, I64(0), a["n_trees"]) as tree:
        b.store(ir.Constant(bits_type, [-1] * _LANES), bits)
        begin, end = (load(b, a["first"], b.add(tree, I64(step)), I64) for step in (0, 1))
        with loop(b, begin, end) as split:
            where = b.mul(load(b, a["feature"], split, I64), I64(_LANES))
            column = b.load(b.gep(a["columns"], [where], source_etype=F32), typ=ir.VectorType(F32, _LANES), align=4)
            right = b.fcmp_ordered(">", column, splat(b, load(b, a["threshold"], split, F32), _LANES))
            before = b.load(bits, typ=bits_type)
            cleared = b.and_(before, splat(b, load(b, a["mask"], split, I32), _LANES))
            b.store(b.select(right, cleared, before), bits)
        leaf = b.zext(b.call(count, [b.load(bits, typ=bits_type), ir.Constant(ir.IntType(1), 1)]), ir.VectorType(I64, _LANES))
        value = gather(b, a["leaves"], b.add(leaf, splat(b, b.mul(tree, I64(LEAVES)), _LANES)), F64)
        b.store(b.fadd(b.load(into, typ=sum_type, align=8), value), into, align=8)


def _entry_slot(b: ir.IRBuilder, kind: ir.Type) -> ir.Value:
    with b.goto_entry_block():
        return b.alloca(kind)
