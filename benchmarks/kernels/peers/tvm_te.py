"""Tensor expressions in TVM's words. Importing this imports TVM, which takes seconds."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any, Final

from tvm import te as tvm_te
from tvm import tirx

from ansorlite.te import dtypes
from ansorlite.te.dag import ComputeDAG
from ansorlite.te.expr import Axis, Binary, Cast, Const, Expr, Read, Reduce, Select, Unary
from ansorlite.te.ops import BinaryOp, ReduceOp, UnaryOp
from ansorlite.te.tensor import Tensor

#: Of operands of equal dtypes. Dot products of words are not here: they come from a rule of ours, no user writes them.
_BINARY: Final[Mapping[BinaryOp, Callable[[Any, Any], Any]]] = {
    BinaryOp.ADD: operator.add,
    BinaryOp.SUB: operator.sub,
    BinaryOp.MUL: operator.mul,
    BinaryOp.DIV: operator.truediv,
    BinaryOp.FLOORDIV: tvm_te.floordiv,
    BinaryOp.MOD: tvm_te.floormod,
    BinaryOp.POW: tvm_te.power,
    BinaryOp.MIN: tvm_te.min,
    BinaryOp.MAX: tvm_te.max,
    BinaryOp.EQ: tirx.EQ,
    BinaryOp.NE: tirx.NE,
    BinaryOp.LT: operator.lt,
    BinaryOp.LE: operator.le,
    BinaryOp.GT: operator.gt,
    BinaryOp.GE: operator.ge,
    BinaryOp.AND: tirx.And,
    BinaryOp.OR: tirx.Or,
    BinaryOp.BITAND: operator.and_,
    BinaryOp.BITOR: operator.or_,
    BinaryOp.BITXOR: operator.xor,
    BinaryOp.SHL: operator.lshift,
    BinaryOp.SHR: operator.rshift,
}

_UNARY: Final[Mapping[UnaryOp, Callable[[Any], Any]]] = {
    UnaryOp.NEG: operator.neg,
    UnaryOp.NOT: tirx.Not,
    UnaryOp.ABS: tvm_te.abs,
    UnaryOp.EXP: tvm_te.exp,
    UnaryOp.LOG: tvm_te.log,
    UnaryOp.SQRT: tvm_te.sqrt,
    UnaryOp.RSQRT: tvm_te.rsqrt,
    UnaryOp.TANH: tvm_te.tanh,
    UnaryOp.SIGMOID: tvm_te.sigmoid,
    UnaryOp.ERF: tvm_te.erf,
    UnaryOp.FLOOR: tvm_te.floor,
    UnaryOp.CEIL: tvm_te.ceil,
    UnaryOp.ROUND: tvm_te.nearbyint,
}

_PROD: Final = tvm_te.comm_reducer(operator.mul, lambda dtype: tirx.const(1, dtype), name="prod")

_REDUCE: Final[Mapping[ReduceOp, Callable[..., Any]]] = {
    ReduceOp.SUM: tvm_te.sum,
    ReduceOp.PROD: _PROD,
    ReduceOp.MAX: tvm_te.max,
    ReduceOp.MIN: tvm_te.min,
}


def prim_func(dag: ComputeDAG) -> Any:
    """``dag`` as a function of TVM's, with ``dag``'s inputs and outputs as its parameters."""
    known: dict[Tensor, Any] = {}
    for tensor in dag.tensors:
        known[tensor] = _tensor(tensor, known)
    return tvm_te.create_prim_func([known[tensor] for tensor in (*dag.inputs, *dag.outputs)])


def _tensor(tensor: Tensor, known: Mapping[Tensor, Any]) -> Any:
    """``tensor``, of those that are known."""
    shape = [_index(extent) for extent in tensor.shape]
    body = tensor.body
    if body is None:
        return tvm_te.placeholder(shape, tensor.dtype, tensor.name)
    reduced = {axis: tvm_te.reduce_axis((_index(0), _index(axis.extent)), axis.name) for axis in tensor.reduce_axes}

    def element(*axes: Any) -> Any:
        return _Translator(known, dict(zip(tensor.axes, axes, strict=True)) | reduced).of(body)

    return tvm_te.compute(shape, element, tensor.name)


class _Translator:
    """Expressions over ``axes``; equal ones are translated once."""

    def __init__(self, known: Mapping[Tensor, Any], axes: Mapping[Axis, Any]) -> None:
        self._known = known
        self._axes = axes
        self._done: dict[Expr, Any] = {}

    def of(self, node: Expr) -> Any:
        if node not in self._done:
            self._done[node] = self._new(node)
        return self._done[node]

    def _new(self, node: Expr) -> Any:
        match node:
            case Axis():
                return self._axes[node] if not node.reduce else self._axes[node].var
            case Const():
                return tirx.const(node.value, node.dtype)
            case Read():
                return self._known[node.tensor](*map(self.of, node.indices))
            case Binary():
                return _BINARY[node.op](self.of(node.a), self.of(node.b))
            case Unary():
                return _UNARY[node.op](self.of(node.a))
            case Select():
                return tvm_te.if_then_else(self.of(node.cond), self.of(node.then), self.of(node.otherwise))
            case Cast():
                return self.of(node.a).astype(node.dtype)
            case Reduce():
                return _REDUCE[node.op](self.of(node.body), axis=[self._axes[axis] for axis in node.axes])
        raise TypeError(f"{type(node).__name__} is no part of a tensor expression")


def _index(value: int) -> Any:
    return tirx.IntImm(dtypes.INDEX, value)
