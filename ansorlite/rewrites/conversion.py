"""Factors converted once, into copies."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ansorlite.analysis.conversion import Conversion
from ansorlite.analysis.dot import places
from ansorlite.te.dag import ComputeDAG
from ansorlite.te.expr import Axis, Binary, Expr, Read, Reduce, Var
from ansorlite.te.rewriting import rebuilt, redirected, tensor_named, with_body
from ansorlite.te.tensor import Tensor
from ansorlite.te.traversal import rewrite, substitute


def convert_once(dag: ComputeDAG, stage: str, factors: Sequence[Conversion], names: Sequence[str]) -> ComputeDAG:
    """A sum of products over copies of factors::

        C[i] = sum(float32(A[i, k]) * B[k], k)
        ->
        A_c[i, k] = float32(A[i, k])
        C[i] = sum(A_c[i, k] * B[k], k)

    The copies have the dtype in which they are multiplied.
    """
    target = tensor_named(dag, stage)
    body = target.body
    assert isinstance(body, Reduce)
    assert isinstance(body.body, Binary)
    product = body.body

    def change(tensor: Tensor, redirect: Callable[[Expr], Expr]) -> Tensor:
        if tensor is not target:
            return redirected(tensor, redirect)
        made: dict[Expr, Expr] = {
            factor.value: Read(_converted(factor, name, redirect), factor.read.indices, factor.value.dtype)
            for factor, name in zip(factors, names, strict=True)
        }
        a, b = (made[value] if value in made else redirect(value) for value in (product.a, product.b))
        return with_body(target, Reduce(body.op, Binary(product.op, a, b, product.dtype), body.axes, body.dtype))

    return rebuilt(dag, change)


def _converted(factor: Conversion, name: str, redirect: Callable[[Expr], Expr]) -> Tensor:
    """The stage that computes the factor for each element of the tensor that it reads."""
    source = factor.read.tensor
    axes = tuple(Axis(f"d{d}", extent=extent) for d, extent in enumerate(source.shape))
    element = Var("element", source.dtype)
    open_ = rewrite(factor.value, lambda node: element if node is factor.read else None)
    at: dict[Var, Expr] = {own: axes[dim] for own, dim in places(factor.read).items()}
    value = substitute(open_, {**at, element: Read(source, axes, source.dtype)})
    return Tensor(name, source.shape, factor.value.dtype, axes, redirect(value))
