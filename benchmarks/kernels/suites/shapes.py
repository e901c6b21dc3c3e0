"""Cases that are hard for their shape, their memory traffic, or their type."""

from __future__ import annotations

from typing import Final

from benchmarks.kernels.operators.conv import Conv, Epilogue
from benchmarks.kernels.operators.elementwise import BiasGelu, CellState, ScaleShiftAddRelu, TransposeAdd
from benchmarks.kernels.operators.matmul import Activation, Dense, Matmul
from benchmarks.kernels.operators.quantized import Int8Conv, Int8Matmul
from benchmarks.kernels.operators.reduction import ArgMax, Max, Sum
from benchmarks.kernels.operators.softmax import LayerNorm, Softmax
from benchmarks.kernels.suites.case import Case

#: Primes and other extents that no tile divides.
ODD: Final = (
    Case("matmul 197x197x197", Matmul(197, 197, 197)),
    Case("matmul 331x331x331", Matmul(331, 331, 331)),
    Case("matmul 509x509x509", Matmul(509, 509, 509)),
    Case("matmul 1009x1009x1009", Matmul(1009, 1009, 1009)),
    Case("matmul 197x768x768 bias relu", Dense(197, 768, 768, Activation.RELU)),
    Case("matmul 1x1009x509", Matmul(1, 1009, 509)),
    Case("matmul 17x1009x331", Matmul(17, 1009, 331)),
    Case("batch matmul 12x197x64x197", Matmul(197, 64, 197, (12,))),
    Case("conv 7^2x512->512 k3", Conv(1, 512, (7, 7), 512, 3, 1, 1)),
    Case("conv 7^2x331->197 k3", Conv(1, 331, (7, 7), 197, 3, 1, 1)),
    Case("conv 113^2x31->37 k3 relu", Conv(1, 31, (113, 113), 37, 3, 1, 1, epilogue=Epilogue.RELU)),
    Case("conv 113^2x3->61 k5 s2", Conv(1, 3, (113, 113), 61, 5, 2, 2)),
    Case("depthwise 113^2x97 k3", Conv(1, 97, (113, 113), 97, 3, 1, 1, groups=97)),
    Case("softmax 331x1009", Softmax((331, 1009))),
    Case("layer norm 197x509", LayerNorm(197, 509)),
    Case("sum of rows 509x1009", Sum((509, 1009), (1,))),
)

#: Bound by memory: what counts is how often data come and go.
MEMORY: Final = (
    Case("softmax 1024x1024", Softmax((1024, 1024))),
    Case("softmax 4096x128", Softmax((4096, 128))),
    Case("softmax over columns 1024x1024", Softmax((1024, 1024), axis=0)),
    Case("layer norm 512x1024", LayerNorm(512, 1024)),
    Case("layer norm 4096x768", LayerNorm(4096, 768)),
    Case("sum of rows 2048x2048", Sum((2048, 2048), (1,))),
    Case("sum of columns 2048x2048", Sum((2048, 2048), (0,))),
    Case("sum of all 2048x2048", Sum((2048, 2048), (0, 1))),
    Case("max of rows 1024x4096", Max((1024, 4096), (1,))),
    Case("argmax of rows 1024x1024", ArgMax(1024, 1024)),
    Case("scale shift add relu 2048x1024", ScaleShiftAddRelu((2048, 1024))),
    Case("bias gelu 2048x1024", BiasGelu(2048, 1024)),
    Case("cell state 512x1024", CellState(512, 1024)),
    Case("transpose add 1024x1024", TransposeAdd(1024, 1024)),
)

INT8: Final = (
    Case("matmul 128x768x768", Int8Matmul(128, 768, 768)),
    Case("matmul 512x512x512", Int8Matmul(512, 512, 512)),
    Case("matmul 1024x1024x1024", Int8Matmul(1024, 1024, 1024)),
    Case("matmul 128x3072x768", Int8Matmul(128, 3072, 768)),
    Case("conv 56^2x64->64 k3", Int8Conv(1, 64, 56, 64, 3, 1, 1)),
    Case("conv 28^2x128->128 k3", Int8Conv(1, 128, 28, 128, 3, 1, 1)),
    Case("conv 14^2x256->1024 k1", Int8Conv(1, 256, 14, 1024, 1)),
    Case("conv 7^2x512->512 k3", Int8Conv(1, 512, 7, 512, 3, 1, 1)),
)
