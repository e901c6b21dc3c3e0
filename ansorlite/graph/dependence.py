"""Which places of its inputs a place of an operator's result depends on, read off its tensor expression."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

from ansorlite import te
from ansorlite.analysis.access import accesses
from ansorlite.analysis.predicates import has_data_reuse
from ansorlite.graph.describe import Operator, Value, applied
from ansorlite.te.dag import ComputeDAG
from ansorlite.te.expr import Reduce
from ansorlite.te.traversal import bare_axes


@lru_cache(maxsize=4096)
def dimensions_in_step(
    operator: Operator, inputs: tuple[Value, ...], attributes: tuple[tuple[str, Any], ...], dimension: int
) -> tuple[int | None, ...] | None:
    """For each input the dimension that is walked in step with ``dimension`` of the result; ``None`` for an input that is the
    same along it. In all ``None``, if places along it depend on others, or on where they are.

    A product of two matrices: rows of the result are rows of the first factor. A softmax: whole rows of its input.
    """
    tensors, result = applied(operator, inputs, attributes)
    dag = ComputeDAG.of([*tensors, result])
    walked: dict[te.Tensor, set[int | None]] = {tensor: set() for tensor in dag.tensors}
    walked[result] = {dimension}
    # Consumers come before producers here, so that all reads of a tensor are known when its turn comes.
    for tensor in reversed(dag.computes):
        if len(walked[tensor]) != 1:
            return None
        (own,) = walked[tensor]
        axis = None if own is None else tensor.axes[own]
        assert tensor.body is not None
        if axis is not None and axis in bare_axes(tensor.body):
            return None
        for access in accesses(tensor):
            depends = axis is not None and axis in access.axes
            places = [d for d, form in enumerate(access.dims) if depends and (form is None or axis in form.variables)]
            if not places:
                walked[access.tensor].add(None)
                continue
            (place, *others), form = places, access.dims[places[0]]
            if others or axis is None or form is None or form.plain is not axis or access.tensor.shape[place] != axis.extent:
                return None
            walked[access.tensor].add(place)
    if any(len(walked[tensor]) > 1 for tensor in tensors):
        return None
    return tuple(next(iter(walked[tensor]), None) for tensor in tensors)


@lru_cache(maxsize=4096)
def terms(operator: Operator, inputs: tuple[Value, ...], attributes: tuple[tuple[str, Any], ...]) -> int:
    """Of how many terms the longest fold in the operator is; 1 where there is none."""
    tensors, result = applied(operator, inputs, attributes)
    bodies = (stage.body for stage in ComputeDAG.of([*tensors, result]).computes)
    folds = (body.axes for body in bodies if isinstance(body, Reduce))
    return max((math.prod(axis.extent for axis in axes) for axes in folds), default=1)


@lru_cache(maxsize=4096)
def reuses_data(operator: Operator, inputs: tuple[Value, ...], attributes: tuple[tuple[str, Any], ...]) -> bool:
    """Whether a stage of the operator reads elements again and again: a product, a convolution."""
    tensors, result = applied(operator, inputs, attributes)
    return any(has_data_reuse(stage) for stage in ComputeDAG.of([*tensors, result]).computes)
