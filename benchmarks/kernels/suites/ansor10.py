"""The ten operators of the Ansor paper (Zheng et al., OSDI 2020, section 7.1): four shapes each, at batch 1 and 16.

Channels come first, as PyTorch and ONNX have them.
"""

from __future__ import annotations

from typing import Final

from benchmarks.kernels.operators.capsule import CapsuleConv
from benchmarks.kernels.operators.conv import Conv
from benchmarks.kernels.operators.conv_transpose import ConvTranspose
from benchmarks.kernels.operators.matmul import Matmul
from benchmarks.kernels.operators.reduction import MatrixNorm
from benchmarks.kernels.suites.case import Case

#: (length, channels, outputs, kernel, stride, pad)
_C1D: Final = ((256, 64, 128, 3, 2, 1), (128, 128, 256, 1, 2, 0), (64, 256, 256, 5, 1, 2), (32, 512, 512, 3, 1, 1))
#: (size, channels, outputs, kernel, stride, pad); C3D has 16 frames of each, DIL takes every second tap.
_C2D: Final = ((224, 3, 64, 7, 2, 3), (56, 64, 64, 1, 1, 0), (14, 256, 256, 3, 1, 1), (7, 512, 512, 3, 1, 1))
#: (m, n, k)
_GMM: Final = ((128, 128, 128), (512, 512, 32), (512, 512, 512), (1024, 1024, 1024))
#: (size, channels, outputs, kernel, stride, pad), in 4 groups
_GRP: Final = ((56, 64, 64, 1, 1, 0), (28, 128, 256, 1, 2, 0), (14, 256, 256, 3, 1, 1), (7, 512, 512, 3, 1, 1))
#: (size, channels, kernel, stride, pad)
_DEP: Final = ((112, 32, 3, 1, 1), (112, 64, 3, 2, 1), (14, 512, 3, 2, 1), (7, 1024, 3, 1, 1))
#: (size, channels, outputs, kernel, stride, pad)
_T2D: Final = ((4, 512, 256, 4, 2, 1), (8, 256, 128, 4, 2, 1), (16, 128, 64, 4, 2, 1), (32, 64, 3, 4, 2, 1))
#: (size, channels, outputs, kernel, stride, pad)
_CAP: Final = ((16, 32, 32, 3, 2, 1), (8, 32, 32, 3, 1, 1), (16, 8, 16, 3, 2, 1), (8, 16, 16, 3, 1, 1))
#: (m, n)
_NRM: Final = ((256, 256), (512, 512), (1024, 1024), (4096, 1024))


def _cases(batch: int) -> tuple[Case, ...]:
    end = f"batch {batch}"
    return (
        *(Case(f"C1D {s}x{c}->{o} k{k} s{t} {end}", Conv(batch, c, (s,), o, k, t, p)) for s, c, o, k, t, p in _C1D),
        *(Case(f"C2D {s}^2x{c}->{o} k{k} s{t} {end}", Conv(batch, c, (s, s), o, k, t, p)) for s, c, o, k, t, p in _C2D),
        *(Case(f"C3D 16x{s}^2x{c}->{o} k{k} s{t} {end}", Conv(batch, c, (16, s, s), o, k, t, p)) for s, c, o, k, t, p in _C2D),
        *(Case(f"GMM {m}x{n}x{k} {end}", Matmul(m, n, k, () if batch == 1 else (batch,))) for m, n, k in _GMM),
        *(Case(f"GRP {s}^2x{c}->{o} k{k} s{t} {end}", Conv(batch, c, (s, s), o, k, t, p, groups=4)) for s, c, o, k, t, p in _GRP),
        *(Case(f"DIL {s}^2x{c}->{o} k{k} s{t} {end}", _dilated(batch, s, c, o, k, t, p)) for s, c, o, k, t, p in _C2D),
        *(Case(f"DEP {s}^2x{c} k{k} s{t} {end}", Conv(batch, c, (s, s), c, k, t, p, groups=c)) for s, c, k, t, p in _DEP),
        *(Case(f"T2D {s}^2x{c}->{o} k{k} s{t} {end}", ConvTranspose(batch, c, s, o, k, t, p)) for s, c, o, k, t, p in _T2D),
        *(Case(f"CAP {s}^2x{c}->{o} k{k} s{t} {end}", CapsuleConv(batch, s, c, o, k, t, p)) for s, c, o, k, t, p in _CAP),
        *(Case(f"NRM {m}x{n} {end}", MatrixNorm(batch, m, n)) for m, n in _NRM),
    )


def _dilated(batch: int, size: int, channels: int, outputs: int, kernel: int, stride: int, pad: int) -> Conv:
    return Conv(batch, channels, (size, size), outputs, kernel, stride, pad, dilation=2)


CASES: Final = _cases(1) + _cases(16)
