"""The native code that evaluates a forest. Compiled once a process; the forest is data.

Written for 16 programs at a time, in LLVM's generic vectors: one AVX-512 register, or two of AVX2, or four of NEON.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, Final

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir
from numpy.typing import NDArray

#: The most leaves that a tree may have: one bit each.
LEAVES: Final = 32
_LANES: Final = 16

_i32, _i64, _f32, _f64, _ptr = ir.IntType(32), ir.IntType(64), ir.FloatType(), ir.DoubleType(), ir.PointerType()
_ARGUMENTS: Final = (
    ("features", _ptr),
    ("programs", _i64),
    ("statements", _i64),
    ("program_stride", _i64),
    ("statement_stride", _i64),
    ("feature_stride", _i64),
    ("used", _ptr),
    ("n_used", _i64),
    ("n_trees", _i64),
    ("first", _ptr),
    ("feature", _ptr),
    ("threshold", _ptr),
    ("mask", _ptr),
    ("leaves", _ptr),
    ("columns", _ptr),
    ("scores", _ptr),
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
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=2, jit=True
    )
    module = llvm.parse_assembly(str(_module()))
    module.verify()
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    options.loop_vectorization = options.slp_vectorization = False
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    types = [ctypes.c_void_p if kind is _ptr else ctypes.c_int64 for _, kind in _ARGUMENTS]
    return engine, ctypes.CFUNCTYPE(None, *types)(engine.get_function_address("sum_of_trees"))


def _module() -> ir.Module:
    module = ir.Module("forest")
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [kind for _, kind in _ARGUMENTS]), "sum_of_trees")
    function.attributes.add("nounwind")
    a = dict(zip((name for name, _ in _ARGUMENTS), function.args, strict=True))
    b = ir.IRBuilder(function.append_basic_block("entry"))
    lane_numbers = ir.Constant(ir.VectorType(_i64, _LANES), list(range(_LANES)))
    last = _splat(b, b.sub(a["programs"], _i64(1)))
    with _loop(b, _i64(0), a["programs"], _LANES) as base:
        lanes = b.add(_splat(b, base), lane_numbers)
        programs = b.select(b.icmp_signed("<", lanes, last), lanes, last)  # the lanes past the end repeat the last program
        offsets = b.mul(programs, _splat(b, a["program_stride"]))
        into = b.gep(a["scores"], [base], source_etype=_f64)
        with _loop(b, _i64(0), a["statements"]) as statement:
            start = b.mul(statement, a["statement_stride"])
            with _loop(b, _i64(0), a["n_used"]) as position:
                column = b.mul(_load(b, a["used"], position, _i64), a["feature_stride"])
                values = _gather(b, a["features"], b.add(offsets, _splat(b, b.add(start, column))), _f64)
                narrow = b.fptrunc(values, ir.VectorType(_f32, _LANES))
                b.store(narrow, b.gep(a["columns"], [b.mul(position, _i64(_LANES))], source_etype=_f32), align=4)
            _trees(b, a, into)
    b.ret_void()
    return module


def _trees(b: ir.IRBuilder, a: dict[str, ir.Value], into: ir.Value) -> None:
    """Add the value of every tree to the 16 scores at ``into``."""
    bits_type, sum_type = ir.VectorType(_i32, _LANES), ir.VectorType(_f64, _LANES)
    bits = _entry_slot(b, bits_type)
    count = ir.Function(b.module, ir.FunctionType(bits_type, [bits_type, ir.IntType(1)]), f"llvm.cttz.v{_LANES}i32")
    with _loop(b, _i64(0), a["n_trees"]) as tree:
        b.store(ir.Constant(bits_type, [-1] * _LANES), bits)
        begin, end = (_load(b, a["first"], b.add(tree, _i64(step)), _i64) for step in (0, 1))
        with _loop(b, begin, end) as split:
            where = b.mul(_load(b, a["feature"], split, _i64), _i64(_LANES))
            column = b.load(b.gep(a["columns"], [where], source_etype=_f32), typ=ir.VectorType(_f32, _LANES), align=4)
            right = b.fcmp_ordered(">", column, _splat(b, _load(b, a["threshold"], split, _f32)))
            before = b.load(bits, typ=bits_type)
            cleared = b.and_(before, _splat(b, _load(b, a["mask"], split, _i32)))
            b.store(b.select(right, cleared, before), bits)
        leaf = b.zext(b.call(count, [b.load(bits, typ=bits_type), ir.Constant(ir.IntType(1), 1)]), ir.VectorType(_i64, _LANES))
        value = _gather(b, a["leaves"], b.add(leaf, _splat(b, b.mul(tree, _i64(LEAVES)))), _f64)
        b.store(b.fadd(b.load(into, typ=sum_type, align=8), value), into, align=8)


def _load(b: ir.IRBuilder, array: ir.Value, index: ir.Value, kind: ir.Type) -> ir.Value:
    return b.load(b.gep(array, [index], source_etype=kind), typ=kind)


def _splat(b: ir.IRBuilder, value: ir.Value) -> ir.Value:
    vector = ir.VectorType(value.type, _LANES)
    one = b.insert_element(ir.Constant(vector, ir.Undefined), value, _i32(0))
    return b.shuffle_vector(one, ir.Constant(vector, ir.Undefined), ir.Constant(ir.VectorType(_i32, _LANES), [0] * _LANES))


def _gather(b: ir.IRBuilder, array: ir.Value, indices: ir.Value, kind: ir.Type) -> ir.Value:
    """``kind`` elements of ``array`` at 16 ``indices``."""
    result: ir.Value = ir.Constant(ir.VectorType(kind, _LANES), ir.Undefined)
    for lane in range(_LANES):
        result = b.insert_element(result, _load(b, array, b.extract_element(indices, _i32(lane)), kind), _i32(lane))
    return result


def _entry_slot(b: ir.IRBuilder, kind: ir.Type) -> ir.Value:
    with b.goto_entry_block():
        return b.alloca(kind)


@contextmanager
def _loop(b: ir.IRBuilder, begin: ir.Value, end: ir.Value, step: int = 1) -> Iterator[ir.Value]:
    """``for index in range(begin, end, step)`` around what the ``with`` block emits."""
    entered = b.block
    head, body, done = (b.function.append_basic_block(name) for name in ("head", "body", "done"))
    b.branch(head)
    b.position_at_end(head)
    index = b.phi(_i64)
    index.add_incoming(begin, entered)
    b.cbranch(b.icmp_signed("<", index, end), body, done)
    b.position_at_end(body)
    yield index
    index.add_incoming(b.add(index, _i64(step)), b.block)
    b.branch(head)
    b.position_at_end(done)
