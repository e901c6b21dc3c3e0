"""Which models are timed on a GPU. They are written in PyTorch, which is imported when one is wanted."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ansorlite.runtime.arguments import Array


@dataclass(frozen=True)
class ModelCase:
    """
    Attributes:
        make: the module, of PyTorch's, which is imported when it is wanted.
        inputs: by name: makes one.
    """

    family: str
    name: str
    make: Callable[[], Any]
    inputs: Mapping[str, Callable[[np.random.Generator], Array]]


def _bert(**sizes: int) -> Callable[[], Any]:
    return lambda: importlib.import_module("benchmarks.models.zoo.bert").Bert(**sizes)


def _normal(*shape: int) -> Callable[[np.random.Generator], Array]:
    return lambda rng: rng.standard_normal(shape, np.float32)


def _words(end: int, *shape: int) -> Callable[[np.random.Generator], Array]:
    return lambda rng: rng.integers(end, size=shape)


def _bert_case(batch: int, words: int, positions: int, **sizes: int) -> ModelCase:
    inputs = {"words": _words(words, batch, positions), "mask": lambda _: np.ones((batch, positions), np.int64)}
    layers = sizes["layers"]
    return ModelCase("model", f"bert{layers}_b{batch}", _bert(words=words, positions=positions, **sizes), inputs)


def _resnet_case(batch: int) -> ModelCase:
    make: Callable[[], Any] = lambda: importlib.import_module("benchmarks.models.zoo.resnet").resnet50()  # noqa: E731
    return ModelCase("model", f"resnet50_b{batch}", make, {"image": _normal(batch, 3, 224, 224)})


MODELS: Final = (
    _resnet_case(1),
    _bert_case(1, 30522, 128, layers=12),
    _resnet_case(16),
    _bert_case(16, 30522, 128, layers=12),
)
SMALL_MODELS: Final = (_bert_case(1, 16, 4, layers=1, width=8, heads=2, hidden=16),)
