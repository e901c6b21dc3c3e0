"""All operators that are drawn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tests.fuzz.graphs.operators.contractions import CONTRACTIONS
from tests.fuzz.graphs.operators.elementwise import ELEMENTWISE, Maker
from tests.fuzz.graphs.operators.indexing import INDEXING
from tests.fuzz.graphs.operators.networks import NETWORKS
from tests.fuzz.graphs.operators.reductions import REDUCTIONS
from tests.fuzz.graphs.operators.shapes import SHAPES

#: Name → how to draw a node.
MAKERS: Final[Mapping[str, Maker]] = {**ELEMENTWISE, **REDUCTIONS, **CONTRACTIONS, **SHAPES, **INDEXING, **NETWORKS}

#: Operators of which a perturbed input gives the same result, or one that is perturbed as the input is: their results must be
#: the same to the last bit.
EXACT: Final = frozenset(
    (
        "Abs", "And", "ArgMax", "ArgMin", "BitShift", "BitwiseAnd", "BitwiseNot", "BitwiseOr", "BitwiseXor", "Cast",
        "CastLike", "Ceil", "CenterCropPad", "Clip", "Compress", "Concat", "ConstantOfShape", "DepthToSpace", "Dropout",
        "Equal", "Expand", "EyeLike", "Flatten", "Floor", "Gather", "GatherElements", "GatherND", "GlobalMaxPool", "Greater",
        "GreaterOrEqual", "Hardmax", "Identity", "IsInf", "IsNaN", "Less", "LessOrEqual", "Max", "MaxPool", "Min", "Mod",
        "Neg", "NonZero", "Not", "OneHot", "Or", "Pad", "Range", "ReduceMax", "ReduceMin", "Relu", "Reshape",
        "ReverseSequence", "Round", "Shape", "Sign", "Size", "Slice", "SpaceToDepth", "Split", "Squeeze",
        "Tile", "TopK", "Transpose", "Trilu", "Unique", "Unsqueeze", "Where", "Xor",
    )
)  # fmt: skip

#: Operators that subtract what may be nearly the same, as ``exp(x) - 1``: where that is done by the definition, as ONNX's own is
#: written, a result is as precise as 1 is, and not as itself.
CANCELLING: Final = frozenset(
    (
        "Attention", "Celu", "Elu", "GRU", "GroupNormalization", "InstanceNormalization", "LSTM", "LayerNormalization",
        "LogSoftmax", "MeanVarianceNormalization", "NegativeLogLikelihoodLoss", "RNN", "ReduceLogSumExp", "Selu", "Shrink",
        "Sigmoid", "SoftmaxCrossEntropyLoss", "Swish",
    )
)  # fmt: skip

#: Those of :data:`CANCELLING` whose definitions round to the data's own dtype between their stages.
STAGED: Final = frozenset(
    (
        "Attention", "GRU", "GroupNormalization", "InstanceNormalization", "LSTM", "LayerNormalization",
        "MeanVarianceNormalization", "NegativeLogLikelihoodLoss", "RNN", "Shrink", "SoftmaxCrossEntropyLoss",
    )
)  # fmt: skip

#: Those of :data:`CANCELLING` whose cancelling terms are as large as their scale and bias.
NORMALIZING: Final = frozenset(("GroupNormalization", "InstanceNormalization", "LayerNormalization"))

#: Operators that multiply what :data:`CANCELLING` ones give by the element itself, as ``x * tanh(softplus(x))``.
SCALED: Final = frozenset(("Gelu", "HardSwish", "Mish"))

#: Operators whose definition, or whose witness, computes in part in float32 whatever the data is: of float64, too, they are as
#: precise as float32.
SINGLE: Final = frozenset(("Erf", "Gelu", "GridSample", "GroupNormalization", "HardSwish", "LRN", "Resize", "Shrink", "Upsample"))

#: Operators that work out places in their data: these are as precise as float32, and results by as much of what lies around.
PLACED: Final = frozenset(("GridSample", "Resize", "Upsample"))
