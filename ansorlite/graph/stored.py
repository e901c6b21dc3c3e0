"""A model as runs of bytes, its large constants among them as they are, and back: what a cache keeps of it.

Like the compiled programs of the same cache this is believed: it names functions, which are called. Models of other people come
as ONNX.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np

from ansorlite.graph.constants import first, is_splat, splat
from ansorlite.graph.model import Model
from ansorlite.runtime.parts import Part


def dumps(model: Model) -> list[Part]:
    """``model`` as parts. Its constants are the parts after the first, not copied.

    Raises:
        pickle.PicklingError: an operator is no function of a module.
    """
    constants: list[pickle.PickleBuffer] = []
    file = io.BytesIO()
    _Pickler(file, protocol=5, buffer_callback=constants.append).dump(model)
    return [file.getvalue(), *(constant.raw() for constant in constants)]


def loads(parts: Sequence[Part]) -> Model:
    """The inverse of :func:`dumps`. The model's constants lie where ``parts`` are."""
    model: Model = pickle.loads(parts[0], buffers=parts[1:])
    return model


class _Pickler(pickle.Pickler):
    """Keeps constants small that are one value repeated, and all others as parts."""

    def reducer_override(self, thing: Any) -> Any:
        if isinstance(thing, np.ndarray) and thing.size > 1:
            if is_splat(thing):
                return splat, (first(thing), thing.shape)
            if not thing.flags.forc:
                return np.asarray, (np.ascontiguousarray(thing),)
        return NotImplemented
