"""The naive program: every tensor's loops exactly as written, serial, scalar, one thread.

It needs no schedule, so there is always an answer; it is what speed-ups are told against and what other programs'
outputs are checked with.
"""

from __future__ import annotations

from ansorlite.analysis.constants import constant_stages
from ansorlite.loops.arguments import argument
from ansorlite.loops.nodes import Alloc, Buffer, For, Function, Load, LoopKind, Role, Scope, Stmt, Store, block, index
from ansorlite.te.dag import ComputeDAG
from ansorlite.te.expr import Axis, Expr, Read, Reduce, Var
from ansorlite.te.reductions import combine, identity
from ansorlite.te.tensor import Tensor
from ansorlite.te.traversal import rewrite


def lower_naive(dag: ComputeDAG) -> Function:
    """The loop IR of ``dag`` as written."""
    buffers = {t: argument(t) for t in (*dag.inputs, *dag.outputs)}
    temporaries = [t for t in dag.computes if t not in buffers]
    constant = constant_stages(dag)
    buffers |= {t: Buffer(t.name, t.shape, t.dtype, Scope.PREPARED if t in constant else Scope.GLOBAL) for t in temporaries}
    body = block(*(_loops(t, buffers) for t in dag.computes))
    for tensor in reversed(temporaries):
        body = Alloc(buffers[tensor], body)
    return Function("kernel", tuple(buffers[t] for t in (*dag.inputs, *dag.outputs)), len(dag.outputs), body)


def _loops(tensor: Tensor, buffers: dict[Tensor, Buffer]) -> Stmt:
    assert tensor.body is not None
    fresh = {axis: Var(axis.name) for axis in tensor.axes + tensor.reduce_axes}

    def on_buffers(expr: Expr) -> Expr:
        def rule(node: Expr) -> Expr | None:
            if isinstance(node, Axis):
                return fresh[node]
            return Load(buffers[node.tensor], node.indices, node.dtype) if isinstance(node, Read) else None

        return rewrite(expr, rule)

    out, indices = buffers[tensor], tuple(fresh[axis] for axis in tensor.axes)
    if isinstance(tensor.body, Reduce):
        op, dtype = tensor.body.op, tensor.dtype
        start = Store(out, indices, identity(op, dtype), tensor.name, Role.INIT)
        step = Store(out, indices, combine(op, Load(out, indices, dtype), on_buffers(tensor.body.body)), tensor.name, Role.UPDATE)
        inner = block(start, _nest(tensor.body.axes, fresh, step))
    else:
        inner = Store(out, indices, on_buffers(tensor.body), tensor.name, Role.COMPUTE)
    return _nest(tensor.axes, fresh, inner)


def _nest(axes: tuple[Axis, ...], fresh: dict[Axis, Var], body: Stmt) -> Stmt:
    for axis in reversed(axes):
        body = For(fresh[axis], index(axis.extent), LoopKind.SERIAL, body)
    return body
