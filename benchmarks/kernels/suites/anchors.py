"""Workloads for which figures of Ansor (TVM 0.14) and MetaSchedule (TVM 0.27) are on record.

They were measured on a machine of two Cascade Lake cores, in one run with PyTorch 2.13, and are kept as ratios to PyTorch,
which carry over to another machine of that kind. Ansor's worker pool had been patched to stay alive: stock Ansor needs
3.6 times as long for a trial.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from benchmarks.kernels.operators.conv import Conv, Epilogue
from benchmarks.kernels.operators.conv_transpose import ConvTranspose
from benchmarks.kernels.operators.matmul import Activation, Dense, Matmul
from benchmarks.kernels.operators.reduction import SumOfSquares
from benchmarks.kernels.operators.softmax import LayerNorm, Softmax
from benchmarks.kernels.suites.case import Case


@dataclass(frozen=True)
class Recorded:
    """What another tuner reached.

    Attributes:
        ratios: how many times as fast as PyTorch, by number of trials.
        seconds: wall-clock time of tuning for the largest of them; ``None`` where it was not noted.
    """

    ratios: dict[int, float]
    seconds: float | None = None

    @property
    def trials(self) -> int:
        return max(self.ratios)

    @property
    def best(self) -> float:
        """The ratio reached with any number of trials."""
        return max(self.ratios.values())


@dataclass(frozen=True)
class Anchor:
    """One workload: its case, and what is on record of it."""

    case: Case
    ansor: Recorded | None = None
    metaschedule: Recorded | None = None


def _conv(channels: int, size: int, outputs: int, kernel: int, stride: int, epilogue: Epilogue) -> Conv:
    return Conv(1, channels, (size, size), outputs, kernel, stride, kernel // 2, epilogue=epilogue)


ANCHORS: Final = (
    Anchor(Case("W1 matmul 512^3", Matmul(512, 512, 512)), Recorded({64: 0.52, 192: 0.61}, 240), Recorded({64: 0.59, 192: 0.71})),
    Anchor(Case("W2 matmul 1024^3", Matmul(1024, 1024, 1024)), Recorded({64: 0.37, 192: 0.47}, 464), Recorded({64: 0.67})),
    Anchor(
        Case("W3 matmul 128x3072x768 bias relu", Dense(128, 3072, 768, Activation.RELU)),
        Recorded({64: 0.39, 192: 0.70}, 243),
        Recorded({64: 0.55}),
    ),
    Anchor(Case("W4 batch matmul 12x128x64x128", Matmul(128, 128, 64, (12,))), Recorded({64: 0.95})),
    Anchor(Case("W5 matmul 1x1000x2048", Matmul(1, 1000, 2048)), Recorded({64: 0.88})),
    Anchor(
        Case("W6 conv 64x56x56 k3 -> 64 bias relu", _conv(64, 56, 64, 3, 1, Epilogue.BIAS_RELU)),
        Recorded({64: 0.27, 192: 0.79}, 542),
        Recorded({64: 0.50}),
    ),
    Anchor(
        Case("W7 conv 128x28x28 k3 -> 128 relu", _conv(128, 28, 128, 3, 1, Epilogue.RELU)),
        Recorded({64: 0.47}),
        Recorded({64: 0.45}),
    ),
    Anchor(
        Case("W8 conv 512x7x7 k3 -> 512", _conv(512, 7, 512, 3, 1, Epilogue.NONE)),
        Recorded({64: 0.67, 192: 0.59}, 364),
        Recorded({64: 0.34}),
    ),
    Anchor(Case("W9 conv 3x224x224 k7 s2 -> 64", _conv(3, 224, 64, 7, 2, Epilogue.NONE))),
    Anchor(
        Case("W10 depthwise 96x56x56 k3", Conv(1, 96, (56, 56), 96, 3, 1, 1, groups=96)),
        Recorded({64: 2.26}, 197),
        Recorded({64: 1.94}),
    ),
    Anchor(Case("W11 softmax 1536x128", Softmax((1536, 128))), Recorded({64: 0.22}, 91)),
    Anchor(Case("W12 layer norm 128x768", LayerNorm(128, 768)), Recorded({64: 1.6}, 79)),
    Anchor(Case("W13 sum of squares of 2^20", SumOfSquares(1 << 20)), Recorded({64: 1.7, 192: 1.65}, 94), Recorded({64: 1.69})),
    Anchor(Case("W13 sum of squares of 2^20 (dot)", SumOfSquares(1 << 20, dot=True)), Recorded({192: 0.57}, 94)),
    Anchor(
        Case("W14 transposed conv 256x8x8 k4 s2 -> 128", ConvTranspose(1, 256, 8, 128, 4, 2, 1)),
        Recorded({64: 0.13}, 197),
        Recorded({64: 0.22}),
    ),
)
