"""Which operators of onnxruntime are said in standard ones, and how."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Final

import onnx

from ansorlite.frontends.onnx.contrib import attention, fused, grouped, quantized
from ansorlite.frontends.onnx.operators.table import DOMAIN
from ansorlite.frontends.onnx.reference import DOMAINS
from ansorlite.frontends.onnx.scope import Attempt
from ansorlite.frontends.onnx.writer import Writer

#: Those that onnxruntime has among the standard operators: the first version where ONNX has one of that name, if there is one.
_MISPLACED: Final[Mapping[str, float]] = {"LayerNormalization": 17, "SimplifiedLayerNormalization": math.inf}

_POOL: Final = ("kernel_shape", "strides", "pads", "auto_pad", "ceil_mode", "count_include_pad")

DEFINITIONS: Final[Mapping[str, Callable[[Writer], None]]] = {
    "Attention": attention.attention,
    "BiasGelu": fused.bias_gelu,
    "DequantizeLinear": quantized.dequantize,
    "DynamicQuantizeMatMul": quantized.dynamic_quantize_matmul,
    "EmbedLayerNormalization": fused.embed_layer_normalization,
    "FastGelu": fused.fast_gelu,
    "FusedConv": fused.fused_conv,
    "FusedGemm": fused.fused_gemm,
    "FusedMatMul": fused.fused_matmul,
    "Gelu": fused.gelu,
    "GroupQueryAttention": grouped.group_query_attention,
    "MatMulIntegerToFloat": quantized.matmul_integer_to_float,
    "MatMulNBits": quantized.matmul_nbits,
    "MultiHeadAttention": attention.multi_head_attention,
    "QAttention": attention.quantized_attention,
    "QEmbedLayerNormalization": fused.quantized_embed_layer_normalization,
    "QGemm": quantized.gemm,
    "QLinearAdd": quantized.on_two("Add"),
    "QLinearAveragePool": quantized.on_one("AveragePool", *_POOL),
    "QLinearConcat": quantized.concat,
    "QLinearGlobalAveragePool": quantized.on_one("GlobalAveragePool"),
    "QLinearLeakyRelu": quantized.on_one("LeakyRelu", "alpha"),
    "QLinearMul": quantized.on_two("Mul"),
    "QLinearSigmoid": quantized.on_one("Sigmoid"),
    "QLinearSoftmax": quantized.softmax,
    "QLinearWhere": quantized.where,
    "QuantizeLinear": quantized.quantize,
    "QuickGelu": fused.quick_gelu,
    "RotaryEmbedding": attention.rotary_embedding,
    "SimplifiedLayerNormalization": fused.simplified_layer_normalization,
    "SkipLayerNormalization": fused.skip_layer_normalization,
    "SkipSimplifiedLayerNormalization": fused.skip_simplified_layer_normalization,
}


def is_defined(proto: onnx.NodeProto) -> bool:
    """Whether a node is of such an operator."""
    here = proto.domain == DOMAIN or (proto.domain in DOMAINS[:2] and proto.op_type in _MISPLACED)
    return here and proto.op_type in DEFINITIONS


def is_misplaced(proto: onnx.NodeProto, opset: int) -> bool:
    """Whether onnxruntime has a node's operator among the standard ones, and ONNX of this version has not."""
    return proto.domain in DOMAINS[:2] and opset < _MISPLACED.get(proto.op_type, -math.inf)


def defined(attempt: Attempt) -> list[onnx.NodeProto]:
    """The standard nodes that a node of such an operator stands for.

    Raises:
        UnsupportedError: it is of a form that is not said here.
        ModelError: its parts do not fit together.
    """
    writer = Writer(attempt)
    DEFINITIONS[attempt.proto.op_type](writer)
    return writer.nodes
