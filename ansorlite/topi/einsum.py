"""Sums of products by Einstein's convention."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from ansorlite import te
from ansorlite.errors import ExpressionError
from ansorlite.te import dtypes
from ansorlite.te.expr import Axis, Expr
from ansorlite.te.tensor import Tensor
from ansorlite.topi.wide import narrow, wide


def einsum(*tensors: Tensor, inputs: Sequence[str], output: str, result: str | None = None) -> Tensor:
    """``numpy.einsum`` with one letter for each dimension: those of each tensor in ``inputs``, of the result in ``output``.

    Letters that are not in ``output`` are summed over. A dimension of extent 1 is broadcast to that of others with its letter.

    Args:
        result: its dtype; by default that of the tensors.

    Raises:
        ExpressionError: letters that do not fit the tensors, or extents that differ.
    """
    extents: dict[str, int] = {}
    for letters, tensor in zip(inputs, tensors, strict=True):
        if len(letters) != tensor.ndim:
            raise ExpressionError(f"einsum: {letters!r} does not name the dimensions of {tensor.shape}")
        for letter, extent in zip(letters, tensor.shape, strict=True):
            known = extents.get(letter, 1)
            if known != extent and 1 not in (known, extent):
                raise ExpressionError(f"einsum: {letter!r} has the extents {known} and {extent}")
            extents[letter] = max(known, extent)
    if len(set(output)) != len(output) or not set(output) <= set(extents):
        raise ExpressionError(f"einsum: the result {output!r} needs letters of the inputs, each once")
    folded: dict[str, Axis] = {x: te.reduce_axis(extent, name=x) for x, extent in extents.items() if x not in output}

    def element(*axes: Expr) -> Expr:
        places: dict[str, Expr] = {**dict(zip(output, axes, strict=True)), **folded}
        product: Expr | None = None
        for letters, tensor in zip(inputs, tensors, strict=True):
            factor = tensor[tuple(0 if e == 1 else places[x] for x, e in zip(letters, tensor.shape, strict=True))]
            factor = wide(factor) if folded else factor
            product = factor if product is None else product * factor
        assert product is not None
        return te.sum(product, axis=list(folded.values())) if folded else product

    total = te.compute([extents[x] for x in output], element, name="einsum")
    return narrow(total, result or reduce(dtypes.promote, (tensor.dtype for tensor in tensors)))
