"""What networks consist of: Ansor's two subgraphs, the layers of BERT (base, 128 tokens) and of ResNet-50 at 224 x 224."""

from __future__ import annotations

from typing import Final

from benchmarks.kernels.operators.constant import ConstantWeights
from benchmarks.kernels.operators.conv import Conv, Epilogue
from benchmarks.kernels.operators.elementwise import BiasGelu, ScaleShiftAddRelu
from benchmarks.kernels.operators.matmul import Activation, AttentionWeights, Dense, Matmul
from benchmarks.kernels.operators.softmax import LayerNorm, Softmax
from benchmarks.kernels.suites.case import Case

#: (size, channels, outputs, kernel, stride, pad)
_CONVS: Final = ((224, 3, 64, 7, 2, 3), (56, 64, 64, 3, 1, 1), (28, 128, 256, 1, 2, 0), (7, 512, 512, 3, 1, 1))
#: (length, heads, width)
_HEADS: Final = ((128, 12, 64), (128, 16, 64), (64, 12, 128), (128, 12, 128))


def _subgraphs(batch: int) -> tuple[Case, ...]:
    norm = Epilogue.BIAS_NORM_RELU
    return (
        *(
            Case(f"conv+bn+relu {s}^2x{c}->{o} k{k} s{t} batch {batch}", Conv(batch, c, (s, s), o, k, t, p, epilogue=norm))
            for s, c, o, k, t, p in _CONVS
        ),
        *(Case(f"q k^T softmax {n}x{h}x{d} batch {batch}", AttentionWeights(batch, n, h, d)) for n, h, d in _HEADS),
    )


SUBGRAPH: Final = _subgraphs(1) + _subgraphs(16)

BERT: Final = (
    Case("projection 128x768x768", Dense(128, 768, 768)),
    Case("feed-forward up 128x3072x768 gelu", Dense(128, 3072, 768, Activation.GELU)),
    Case("feed-forward down 128x768x3072", Dense(128, 768, 3072)),
    Case("attention weights 12 heads", AttentionWeights(1, 128, 12, 64)),
    Case("mix values 12x128x64x128", Matmul(128, 64, 128, (12,))),
    Case("softmax 1536x128", Softmax((1536, 128))),
    Case("layer norm 128x768", LayerNorm(128, 768)),
    Case("bias gelu 128x3072", BiasGelu(128, 3072)),
    Case("classifier 1x1000x768", Dense(1, 1000, 768)),
)

#: (size, channels, outputs, kernel, stride): the distinct convolutions of ResNet-50.
_RESNET: Final = (
    (224, 3, 64, 7, 2),
    (56, 64, 64, 1, 1),
    (56, 64, 64, 3, 1),
    (56, 64, 256, 1, 1),
    (56, 256, 128, 1, 2),
    (28, 128, 128, 3, 1),
    (28, 128, 512, 1, 1),
    (28, 512, 256, 1, 2),
    (14, 256, 256, 3, 1),
    (14, 256, 1024, 1, 1),
    (14, 1024, 512, 1, 2),
    (7, 512, 512, 3, 1),
    (7, 512, 2048, 1, 1),
)

RESNET: Final = (
    *(
        Case(f"conv {s}^2x{c}->{o} k{k} s{t} bias relu", Conv(1, c, (s, s), o, k, t, k // 2, epilogue=Epilogue.BIAS_RELU))
        for s, c, o, k, t in _RESNET
    ),
    Case("classifier 1x1000x2048", Dense(1, 1000, 2048)),
    Case("residual 3136x256", ScaleShiftAddRelu((3136, 256))),
)

#: The products of both networks as models have them.
CONSTANT: Final = tuple(
    Case(case.name, ConstantWeights(case.operator)) for case in (*BERT, *RESNET) if isinstance(case.operator, Conv | Dense)
)
