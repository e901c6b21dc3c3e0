"""The light models that come with the onnx package: real networks, weights made on the spot."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np
import onnx
from onnx import ModelProto

from benchmarks.models.example import Array, Example, Source

_FOLDER: Final = Path(onnx.__file__).parent / "backend/test/data/light"


def light(name: str) -> Source:
    """``light_NAME.onnx``, on a random picture."""

    def source(rng: np.random.Generator) -> Example:
        proto = onnx.load(_FOLDER / f"light_{name}.onnx")
        return Example(proto.SerializeToString(), dict(_inputs(proto, rng)), None)

    return source


def _inputs(proto: ModelProto, rng: np.random.Generator) -> Iterator[tuple[str, Array]]:
    initialized = {tensor.name for tensor in proto.graph.initializer}
    for entry in proto.graph.input:
        if entry.name not in initialized:
            shape = [dim.dim_value for dim in entry.type.tensor_type.shape.dim]
            yield entry.name, rng.standard_normal(shape, np.float32)
