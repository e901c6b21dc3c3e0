"""The modules written in PyTorch, by name: what makes each, and what it takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from torch import nn

from benchmarks.models.exported import Draw, integers, normal, ones
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

#: A module's maker, and its inputs by name, in the order in which it takes them.
Module: TypeAlias = tuple[Callable[[], nn.Module], Mapping[str, Draw]]

_PICTURE: Final = {"x": normal(1, 3, 224, 224)}

MODULES: Final[Mapping[str, Module]] = {
    "resnet18": (resnet18, _PICTURE),
    "resnet50": (resnet50, _PICTURE),
    "mobilenet_v2": (MobileNetV2, _PICTURE),
    "resnet18_3d": (resnet18_3d, {"x": normal(1, 3, 16, 112, 112)}),
    "dcgan": (Generator, {"z": normal(1, 100, 1, 1)}),
    "bert": (Bert, {"words": integers(30522, 1, 128), "mask": ones(1, 128)}),
    "vit": (ViT, _PICTURE),
    "decoder": (DecoderBlock, {"x": normal(1, 1, 512), "past_keys": normal(1, 8, 255, 64), "past_values": normal(1, 8, 255, 64)}),
    "unet": (UNet, {"x": normal(1, 3, 128, 128)}),
    "tcn": (TCN, {"x": normal(1, 32, 1024)}),
    "lstm": (LSTM, {"x": normal(1, 64, 128)}),
    "mixer": (Mixer, _PICTURE),
    "mlp": (MLP, {"x": normal(1, 32, 784)}),
}
