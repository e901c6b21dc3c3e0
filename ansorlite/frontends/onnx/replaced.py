"""Operators that the reference which comes with ONNX gets wrong, or does not take all dtypes of: as the standard has them."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from onnx.reference.op_run import OpRun
from onnx.reference.ops.op_one_hot import OneHot as ReferenceOneHot

from ansorlite.te import dtypes

Array = np.ndarray[Any, Any]


class Unique(OpRun):  # type: ignore[misc]
    """The reference's own forgets ``sorted=0`` where one result is wanted, and else takes from the wrong dimension."""

    op_domain = ""

    def _run(self, x: Array, axis: int | None = None, sorted: int = 1) -> tuple[Array, ...]:
        values, first, inverse, counts = np.unique(x, True, True, True, axis=axis)
        # numpy's versions differ in the shape of this one.
        inverse = inverse.reshape(-1)
        if not sorted:
            order = np.argsort(first)
            place = np.empty_like(order)
            place[order] = np.arange(order.size)
            values, first, inverse, counts = np.take(values, order, axis=axis or 0), first[order], place[inverse], counts[order]
        found = (values, *(indices.astype(np.int64) for indices in (first, inverse, counts)))
        return found[: len(self.onnx_node.output)]


class Det(OpRun):  # type: ignore[misc]
    """numpy has no determinant of floats of two bytes."""

    op_domain = ""

    def _run(self, x: Array) -> tuple[Array]:
        wide = x if dtypes.size(x.dtype.name) >= 4 else x.astype(np.float32)
        return (np.asarray(np.linalg.det(wide)).astype(x.dtype),)


class OneHot(ReferenceOneHot):  # type: ignore[misc]
    """The reference's own takes a depth that is a scalar only, and not a vector of one element."""

    op_domain = ""

    def _run(self, indices: Array, depth: Array, values: Array, axis: int | None = None) -> tuple[Array]:
        result: tuple[Array] = super()._run(indices, np.asarray(depth).reshape(()), values, axis=axis)
        return result


REPLACED: Final[tuple[type[OpRun], ...]] = (Unique, Det, OneHot)
