"""Computations rewritten: pure functions ``ComputeDAG -> ComputeDAG``. Tensors that need not change stay the same objects.

Stages are known by their tensors' names, which :func:`with_unique_names` makes unique.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from ansorlite.te.dag import ComputeDAG
from ansorlite.te.expr import Axis, Expr, Read, Reduce, Var
from ansorlite.te.tensor import Tensor
from ansorlite.te.traversal import rewrite, substitute


def unused_name(dag: ComputeDAG, name: str) -> str:
    """``name``, longer if a tensor has it already."""
    while any(tensor.name == name for tensor in dag.tensors):
        name += "_"
    return name


def tensor_named(dag: ComputeDAG, name: str) -> Tensor:
    return next(t for t in dag.tensors if t.name == name)


def rebuilt(dag: ComputeDAG, change: Callable[[Tensor, Callable[[Expr], Expr]], Tensor]) -> ComputeDAG:
    """``dag`` with every tensor passed through ``change``, producers first.

    ``change`` is given the tensor and a function that redirects an expression's reads to the changed producers; it
    may return a tensor of another shape only if it redirects the readers itself.
    """
    new: dict[Tensor, Tensor] = {}

    def redirect(expr: Expr) -> Expr:
        def rule(node: Expr) -> Expr | None:
            if isinstance(node, Read) and new[node.tensor] is not node.tensor:
                return Read(new[node.tensor], node.indices, node.dtype)
            return None

        return rewrite(expr, rule)

    for tensor in dag.tensors:
        new[tensor] = change(tensor, redirect)
    order = [new[t] for t in (*dag.inputs, *dag.outputs)]
    return ComputeDAG.of(order)


def with_body(tensor: Tensor, body: Expr | None) -> Tensor:
    """``tensor`` with another body over the same axes."""
    return Tensor(tensor.name, tensor.shape, tensor.dtype, tensor.axes, body, tensor.constant)


def redirected(tensor: Tensor, redirect: Callable[[Expr], Expr]) -> Tensor:
    """``tensor`` reading the changed producers; itself when nothing changed."""
    if tensor.body is None:
        return tensor
    body = redirect(tensor.body)
    return tensor if body is tensor.body else with_body(tensor, body)


def with_constants(dag: ComputeDAG, which: Sequence[bool]) -> ComputeDAG:
    """``dag`` with those inputs constant that ``which`` says, one flag for each."""

    def change(tensor: Tensor, redirect: Callable[[Expr], Expr]) -> Tensor:
        return replace(tensor, constant=constant[tensor]) if tensor.body is None else redirected(tensor, redirect)

    constant = dict(zip(dag.inputs, which, strict=True))
    return rebuilt(dag, change)


def with_unique_names(dag: ComputeDAG) -> ComputeDAG:
    """Names that are identifiers: of one stage each, and of one axis each within a stage; one met again gets a number."""
    taken: set[str] = set()
    names = {tensor: unused(tensor.name, taken) for tensor in dag.tensors}

    def change(tensor: Tensor, redirect: Callable[[Expr], Expr]) -> Tensor:
        fresh = redirected(tensor, redirect)
        own: set[str] = set()
        axes = {axis: unused(axis.name, own) for axis in fresh.axes + fresh.reduce_axes}
        if fresh.name == names[tensor] and all(axis.name == name for axis, name in axes.items()):
            return fresh
        renamed = {a: Axis(name, extent=a.extent, reduce=a.reduce) for a, name in axes.items()}
        body = None if fresh.body is None else _with_axes(fresh.body, renamed)
        axes_ = tuple(renamed[a] for a in fresh.axes)
        return Tensor(names[tensor], fresh.shape, fresh.dtype, axes_, body, fresh.constant)

    return rebuilt(dag, change)


def unused(name: str, taken: set[str]) -> str:
    """``name`` as an identifier that is not ``taken``, which it joins; numbered if need be."""
    base = "".join(c if c.isalnum() or c == "_" else "_" for c in name) or "t"
    candidate, number = base, 1
    while candidate in taken:
        number += 1
        candidate = f"{base}_{number}"
    taken.add(candidate)
    return candidate


def _with_axes(body: Expr, renamed: Mapping[Axis, Axis]) -> Expr:
    """``body`` over other axes, reduce axes included."""
    values: dict[Var, Expr] = {axis: fresh for axis, fresh in renamed.items()}  # noqa: C416
    if isinstance(body, Reduce):
        return Reduce(body.op, substitute(body.body, values), tuple(renamed[a] for a in body.axes), body.dtype)
    return substitute(body, values)


def translated(body: Expr, axes: Mapping[Axis, Axis], tensors: Mapping[Tensor, Tensor]) -> Expr:
    """``body`` over other axes, reduce axes included, reading other tensors; there is one for each of its own."""

    def rule(node: Expr) -> Expr | None:
        match node:
            case Axis():
                return axes[node]
            case Read(tensor, indices, dtype):
                return Read(tensors[tensor], indices, dtype)
            case Reduce(op, value, reduced, dtype):
                return Reduce(op, value, tuple(axes[axis] for axis in reduced), dtype)
        return None

    return rewrite(body, rule)


def inline(dag: ComputeDAG, stage: str) -> ComputeDAG:
    """Every read of ``stage`` replaced by its body::

    B[i] = A[i] + 1; C[i] = B[i] * 2      ->      C[i] = (A[i] + 1) * 2
    """
    target = tensor_named(dag, stage)
    assert target.body is not None
    assert not target.reduce_axes
    assert target not in dag.outputs

    def change(tensor: Tensor, redirect: Callable[[Expr], Expr]) -> Tensor:
        if tensor.body is None or tensor is target:
            return tensor

        def rule(node: Expr) -> Expr | None:
            if isinstance(node, Read) and node.tensor is target:
                assert target.body is not None
                return substitute(target.body, dict(zip(target.axes, node.indices, strict=True)))
            return None

        body = rewrite(tensor.body, rule)
        return redirected(tensor if body is tensor.body else with_body(tensor, body), redirect)

    return rebuilt(dag, change)
