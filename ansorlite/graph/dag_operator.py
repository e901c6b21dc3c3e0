"""Operators that are given by what they compute, for nodes that no function of ``topi`` says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ansorlite.analysis.access import axes_of
from ansorlite.te.dag import ComputeDAG
from ansorlite.te.expr import Axis
from ansorlite.te.rewriting import translated
from ansorlite.te.tensor import Tensor


@dataclass(frozen=True)
class DagOperator:
    """A function from tensors to a tensor. Those that compute the same are equal. Make one with :meth:`of`.

    Attributes:
        key: what it computes.
        inputs: placeholders for its arguments.
        result: the computation on these.
    """

    key: str
    inputs: tuple[Tensor, ...] = field(compare=False, repr=False)
    result: Tensor = field(compare=False, repr=False)

    @staticmethod
    def of(inputs: Sequence[Tensor], result: Tensor) -> DagOperator:
        """The operator that makes ``result`` of ``inputs``, its placeholders."""
        return DagOperator(ComputeDAG.of([*inputs, result]).key, tuple(inputs), result)

    @property
    def __name__(self) -> str:
        """What people call it."""
        return self.result.name

    def __call__(self, *arguments: Tensor) -> Tensor:
        """The computation on these arguments, with axes of its own."""
        made = dict(zip(self.inputs, arguments, strict=True))
        for tensor in ComputeDAG.of([*self.inputs, self.result]).computes:
            made[tensor] = _copied(tensor, made)
        return made[self.result]


def _copied(tensor: Tensor, made: Mapping[Tensor, Tensor]) -> Tensor:
    """``tensor`` over axes of its own, reading what ``made`` says."""
    assert tensor.body is not None
    fresh = {axis: Axis(axis.name, extent=axis.extent, reduce=axis.reduce) for axis in axes_of(tensor)}
    body = translated(tensor.body, fresh, made)
    return Tensor(tensor.name, tensor.shape, tensor.dtype, tuple(fresh[axis] for axis in tensor.axes), body)
