"""A second, slow meaning of a computation: plain Python loops over every point, lazily, one scalar at a time."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from ansorlite.te import dtypes
from ansorlite.te.dag import ComputeDAG
from ansorlite.te.expr import Axis, Binary, Cast, Const, Expr, Read, Reduce, Select, Unary
from ansorlite.te.ops import BINARY, COMBINE, UNARY, ReduceOp
from ansorlite.te.tensor import Tensor

Array = np.ndarray[Any, Any]


def run(dag: ComputeDAG, arrays: list[Array]) -> list[Array]:
    values = dict(zip(dag.inputs, arrays, strict=True))
    with np.errstate(all="ignore"):
        for tensor in dag.computes:
            out = np.empty(tensor.shape, dtypes.NUMPY[tensor.dtype])
            for place in np.ndindex(tensor.shape):
                out[place] = _element(tensor, dict(zip(tensor.axes, place, strict=True)), values)
            values[tensor] = out
    return [values[tensor] for tensor in dag.outputs]


def _element(tensor: Tensor, at: dict[Axis, int], values: dict[Tensor, Array]) -> Any:
    body = tensor.body
    if not isinstance(body, Reduce):
        return scalar(body, at, values)
    combine = BINARY[COMBINE[body.op]].numpy
    wide = np.float64 if dtypes.is_float(body.dtype) and body.op in (ReduceOp.SUM, ReduceOp.PROD) else None
    total = None
    for place in itertools.product(*(range(axis.extent) for axis in body.axes)):
        value = scalar(body.body, {**at, **dict(zip(body.axes, place, strict=True))}, values)
        value = value if wide is None else wide(value)
        total = value if total is None else combine(total, value)
    return total


def scalar(node: Expr, at: dict[Axis, int], values: dict[Tensor, Array]) -> Any:
    def of(operand: Expr) -> Any:
        return scalar(operand, at, values)

    kind = dtypes.NUMPY[node.dtype].type
    match node:
        case Const():
            return kind(node.value)
        case Axis():
            return np.int64(at[node])
        case Binary():
            return kind(BINARY[node.op].numpy(of(node.a), of(node.b)))
        case Unary():
            return kind(UNARY[node.op].numpy(of(node.a)))
        case Select():
            return of(node.then) if of(node.cond) else of(node.otherwise)
        case Cast():
            return np.asarray(of(node.a)).astype(kind)[()]
        case Read():
            place = tuple(int(of(index)) for index in node.indices)
            assert all(0 <= i < extent for i, extent in zip(place, node.tensor.shape, strict=True))
            return values[node.tensor][place]
    raise TypeError(node)
