"""name -> model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from onnxruntime.quantization import QuantFormat

from benchmarks.models.example import Source
from benchmarks.models.exported import exported, integers, normal, ones
from benchmarks.models.light import light
from benchmarks.models.quantized import dynamic, static
from benchmarks.models.zoo.bert import Bert
from benchmarks.models.zoo.dcgan import Generator
from benchmarks.models.zoo.decoder import DecoderBlock
from benchmarks.models.zoo.lstm import LSTM
from benchmarks.models.zoo.mixer import Mixer
from benchmarks.models.zoo.mlp import MLP
from benchmarks.models.zoo.mobilenet import MobileNetV2
from benchmarks.models.zoo.resnet import resnet18, resnet18_3d, resnet50
from benchmarks.models.zoo.tcn import TCN
from benchmarks.models.zoo.unet import UNet
from benchmarks.models.zoo.vit import ViT

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
_PICTURE: Final = {"x": normal(1, 3, 224, 224)}
_MLP: Final = exported(MLP, {"x": normal(1, 32, 784)})

MODELS: Final[Mapping[str, Source]] = {
    **{f"light_{name}": light(name) for name in _LIGHT},
    "resnet18": exported(resnet18, _PICTURE),
    "mobilenet_v2": exported(MobileNetV2, _PICTURE),
    "resnet18_3d": exported(resnet18_3d, {"x": normal(1, 3, 16, 112, 112)}),
    "dcgan": exported(Generator, {"z": normal(1, 100, 1, 1)}),
    "bert": exported(Bert, {"words": integers(30522, 1, 128), "mask": ones(1, 128)}),
    "vit": exported(ViT, _PICTURE),
    "decoder": exported(
        DecoderBlock, {"x": normal(1, 1, 512), "past_keys": normal(1, 8, 255, 64), "past_values": normal(1, 8, 255, 64)}
    ),
    "unet": exported(UNet, {"x": normal(1, 3, 128, 128)}),
    "tcn": exported(TCN, {"x": normal(1, 32, 1024)}),
    "lstm": exported(LSTM, {"x": normal(1, 64, 128)}),
    "mixer": exported(Mixer, _PICTURE),
    "int8_resnet50": static(exported(resnet50, _PICTURE), ["Conv"]),
    "int8_mlp": static(_MLP, ["MatMul"]),
    "int8_mlp_dynamic": dynamic(_MLP),
    "int8_resnet50_qdq": static(exported(resnet50, _PICTURE), None, QuantFormat.QDQ),
    "int8_mlp_qdq": static(_MLP, None, QuantFormat.QDQ),
}
