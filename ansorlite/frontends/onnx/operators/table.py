"""The operators that are supported."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

import onnx

from ansorlite.frontends.onnx.node import NodeView
from ansorlite.frontends.onnx.operators import (
    contractions,
    dense,
    elementwise,
    fourier,
    indexing,
    normalization,
    quantized,
    recurrent,
    resize,
    shape,
)
from ansorlite.frontends.onnx.operators.einsum import convert_einsum
from ansorlite.frontends.onnx.operators.elementwise import empty_as_it_is, old_broadcast, plain, variadic
from ansorlite.frontends.onnx.operators.normalization import reduction, softmax
from ansorlite.topi import activations, arguments, bits, patterns, trigonometry
from ansorlite.topi import elementwise as topi
from ansorlite.topi import reduction as fold
from ansorlite.topi import softmax as soft

#: Converts a node.
Converter: TypeAlias = Callable[[NodeView], str | tuple[str, ...]]

#: ONNX operator → the function that converts a node of it.
CONVERTERS: Final[Mapping[str, Converter]] = {
    "Abs": plain(topi.absolute),
    "Acos": plain(trigonometry.acos),
    "Acosh": plain(trigonometry.acosh),
    "Add": old_broadcast(topi.add),
    "And": old_broadcast(topi.logical_and),
    "ArgMax": indexing.arg_extreme(arguments.arg_max),
    "ArgMin": indexing.arg_extreme(arguments.arg_min),
    "Asin": plain(trigonometry.asin),
    "Asinh": plain(trigonometry.asinh),
    "Atan": plain(trigonometry.atan),
    "Atanh": plain(trigonometry.atanh),
    "AveragePool": contractions.convert_average_pool,
    "BatchNormalization": normalization.batch_normalization,
    "BitShift": elementwise.bit_shift,
    "BitwiseAnd": plain(bits.bitwise_and, 2),
    "BitwiseNot": plain(bits.bitwise_not),
    "BitwiseOr": plain(bits.bitwise_or, 2),
    "BitwiseXor": plain(bits.bitwise_xor, 2),
    "Cast": elementwise.cast,
    "Ceil": plain(topi.ceil),
    "Celu": empty_as_it_is(plain(activations.celu, alpha=1.0)),
    "Clip": elementwise.clip,
    "Col2Im": contractions.convert_col2im,
    "Concat": shape.concat,
    "Constant": shape.constant,
    "ConstantOfShape": shape.constant_of_shape,
    "Conv": contractions.convert_conv,
    "ConvInteger": quantized.conv_integer,
    "ConvTranspose": contractions.convert_conv_transpose,
    "Cos": plain(trigonometry.cos),
    "Cosh": plain(trigonometry.cosh),
    "CumProd": indexing.cumulative(patterns.cumulative_product),
    "CumSum": indexing.cumulative(patterns.cumulative_sum),
    "DFT": fourier.convert_dft,
    "DepthToSpace": shape.depth_to_space,
    "DequantizeLinear": quantized.dequantize_linear,
    "Div": old_broadcast(topi.divide),
    "Dropout": elementwise.dropout,
    "DynamicQuantizeLinear": dense.dynamic_quantize_linear,
    "Einsum": convert_einsum,
    "Elu": plain(activations.elu, alpha=1.0),
    "Equal": old_broadcast(topi.equal),
    "Erf": plain(topi.erf),
    "Exp": plain(topi.exp),
    "Expand": shape.expand,
    "EyeLike": indexing.eye_like,
    "Flatten": shape.flatten,
    "Floor": plain(topi.floor),
    "GRU": recurrent.gru,
    "Gather": shape.gather,
    "GatherElements": indexing.gather_elements,
    "GatherND": indexing.gather_nd,
    "Gelu": elementwise.gelu,
    "Gemm": contractions.convert_gemm,
    "GlobalAveragePool": contractions.convert_global_average_pool,
    "GlobalLpPool": contractions.convert_global_lp_pool,
    "GlobalMaxPool": contractions.convert_global_max_pool,
    "Greater": old_broadcast(topi.greater),
    "GreaterOrEqual": plain(topi.greater_equal, 2),
    "GridSample": resize.convert_grid_sample,
    "GroupNormalization": empty_as_it_is(normalization.group_normalization),
    "HardSigmoid": plain(activations.hard_sigmoid, alpha=0.2, beta=0.5),
    "HardSwish": plain(activations.hard_swish),
    "Hardmax": indexing.hardmax,
    "Identity": elementwise.same,
    "InstanceNormalization": normalization.instance_normalization,
    "IsInf": elementwise.is_infinite,
    "IsNaN": plain(topi.is_nan),
    "LRN": normalization.lrn,
    "LSTM": recurrent.lstm,
    "LayerNormalization": normalization.layer_normalization,
    "LeakyRelu": plain(activations.leaky_relu, alpha=0.01),
    "Less": old_broadcast(topi.less),
    "LessOrEqual": plain(topi.less_equal, 2),
    "Log": plain(topi.log),
    "LogSoftmax": softmax(soft.log_softmax),
    "LpNormalization": normalization.lp_normalization,
    "LpPool": contractions.convert_lp_pool,
    "MatMul": contractions.convert_matmul,
    "MatMulInteger": quantized.matmul_integer,
    "Max": variadic(topi.maximum),
    "MaxPool": contractions.convert_max_pool,
    "Mean": elementwise.mean,
    "MeanVarianceNormalization": empty_as_it_is(normalization.mean_variance_normalization),
    "Min": variadic(topi.minimum),
    "Mish": plain(activations.mish),
    "Mod": elementwise.modulo,
    "Mul": old_broadcast(topi.multiply),
    "Neg": plain(topi.negative),
    "Not": plain(topi.logical_not),
    "OneHot": indexing.one_hot,
    "Or": old_broadcast(topi.logical_or),
    "PRelu": elementwise.prelu,
    "Pad": shape.convert_pad,
    "Pow": elementwise.power,
    "QLinearConv": quantized.qlinear_conv,
    "QLinearMatMul": quantized.qlinear_matmul,
    "QuantizeLinear": quantized.quantize_linear,
    "RMSNormalization": normalization.rms_normalization,
    "RNN": recurrent.rnn,
    "Range": indexing.arange,
    "Reciprocal": plain(topi.reciprocal),
    "ReduceL1": reduction(fold.reduce_l1),
    "ReduceL2": reduction(fold.reduce_l2),
    "ReduceLogSum": reduction(fold.reduce_log_sum),
    "ReduceLogSumExp": reduction(fold.reduce_log_sum_exp),
    "ReduceMax": reduction(fold.reduce_max),
    "ReduceMean": reduction(fold.reduce_mean),
    "ReduceMin": reduction(fold.reduce_min),
    "ReduceProd": reduction(fold.reduce_prod),
    "ReduceSum": reduction(fold.reduce_sum),
    "ReduceSumSquare": reduction(fold.reduce_sum_square),
    "Relu": plain(activations.relu),
    "Reshape": shape.reshape,
    "Resize": resize.resize,
    "ReverseSequence": indexing.reverse_sequence,
    "Round": plain(topi.round),
    "STFT": fourier.convert_stft,
    "Scatter": indexing.scatter_elements,
    "ScatterElements": indexing.scatter_elements,
    "ScatterND": indexing.scatter_nd,
    "Selu": plain(activations.selu, alpha=1.67326319217681884765625, gamma=1.05070102214813232421875),
    "Shape": shape.shape_of,
    "Shrink": plain(activations.shrink, lambd=0.5, bias=0.0),
    "Sigmoid": plain(activations.sigmoid),
    "Sign": plain(topi.sign),
    "Sin": plain(trigonometry.sin),
    "Sinh": plain(trigonometry.sinh),
    "Size": shape.size_of,
    "Slice": shape.strided_slice,
    "Softmax": softmax(soft.softmax),
    "Softplus": plain(activations.softplus),
    "Softsign": plain(activations.softsign),
    "SpaceToDepth": shape.space_to_depth,
    "Split": shape.split,
    "Sqrt": plain(topi.sqrt),
    "Squeeze": shape.squeeze,
    "Sub": old_broadcast(topi.subtract),
    "Sum": variadic(topi.add),
    "Swish": plain(activations.swish, alpha=1.0),
    "Tan": plain(trigonometry.tan),
    "Tanh": plain(topi.tanh),
    "TensorScatter": indexing.tensor_scatter,
    "ThresholdedRelu": plain(activations.thresholded_relu, alpha=1.0),
    "Tile": shape.tile,
    "TopK": indexing.top_k,
    "Transpose": shape.transpose,
    "Trilu": indexing.trilu,
    "Unsqueeze": shape.unsqueeze,
    "Upsample": resize.resize,
    "Where": plain(topi.where, 3),
    "Xor": old_broadcast(topi.logical_xor),
}

#: onnxruntime's own.
DOMAIN: Final = "com.microsoft"

#: The same for the operators of that domain; :mod:`ansorlite.frontends.onnx.contrib` says others in standard ones.
MICROSOFT: Final[Mapping[str, Converter]] = {
    "DynamicQuantizeLSTM": recurrent.dynamic_quantize_lstm,
    "MatMulNBits": quantized.matmul_nbits,
}

_TABLES: Final[Mapping[str, Mapping[str, Converter]]] = {"": CONVERTERS, "ai.onnx": CONVERTERS, DOMAIN: MICROSOFT}


def converter(proto: onnx.NodeProto) -> Converter | None:
    """What converts a node; ``None`` if nothing does."""
    return _TABLES.get(proto.domain, {}).get(proto.op_type)
