"""name -> model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from onnxruntime.quantization import QuantFormat

from benchmarks.models.example import Source
from benchmarks.models.exported import exported
from benchmarks.models.light import light
from benchmarks.models.modules import MODULES
from benchmarks.models.quantized import dynamic, static

_LIGHT: Final = (
    "bvlc_alexnet",
    "densenet121",
    "inception_v1",
    "inception_v2",
    "resnet50",
    "shufflenet",
    "squeezenet",
    "vgg19",
    "zfnet512",
)
_FLOATS: Final = (
    "resnet18",
    "mobilenet_v2",
    "resnet18_3d",
    "dcgan",
    "bert",
    "vit",
    "decoder",
    "unet",
    "tcn",
    "lstm",
    "mixer",
)
_MLP: Final = exported(*MODULES["mlp"])
_RESNET50: Final = exported(*MODULES["resnet50"])

MODELS: Final[Mapping[str, Source]] = {
    **{f"light_{name}": light(name) for name in _LIGHT},
    **{name: exported(*MODULES[name]) for name in _FLOATS},
    "int8_resnet50": static(_RESNET50, ["Conv"]),
    "int8_mlp": static(_MLP, ["MatMul"]),
    "int8_mlp_dynamic": dynamic(_MLP),
    "int8_resnet50_qdq": static(_RESNET50, None, QuantFormat.QDQ),
    "int8_mlp_qdq": static(_MLP, None, QuantFormat.QDQ),
}
