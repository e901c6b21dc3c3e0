"""An operator whose weights are constants of the task, as in a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from onnx import NodeProto

from ansorlite import te
from ansorlite.te.dag import ComputeDAG
from ansorlite.te.rewriting import with_constants
from benchmarks.kernels.operators.operator import Array, Operator


@dataclass(frozen=True)
class ConstantWeights(Operator):
    """``operator``, its weights prepared before the first call; to be held against peers that do so too."""

    operator: Operator

    @property
    def weights(self) -> tuple[int, ...]:  # type: ignore[override]
        return self.operator.weights

    def tensors(self) -> list[te.Tensor]:
        dag = ComputeDAG.of(self.operator.tensors())
        constant = with_constants(dag, [position in self.weights for position in range(len(dag.inputs))])
        return [*constant.inputs, *constant.outputs]

    def numpy(self, *x: Array) -> Array:
        return self.operator.numpy(*x)

    def torch(self, torch: Any, *x: Any) -> Any:
        return self.operator.torch(torch, *x)

    def nodes(self) -> list[NodeProto]:
        return self.operator.nodes()
