"""A model that takes part, with inputs to run it on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Example:
    """
    Attributes:
        data: the ONNX model, serialised.
        inputs: name -> array.
        eager: runs the PyTorch module that it was exported from, on the same inputs; ``None`` if it comes from elsewhere.
    """

    data: bytes
    inputs: Mapping[str, Array]
    eager: Callable[[], Sequence[Array]] | None


#: Makes an example; all that is random in it comes from the generator.
Source: TypeAlias = Callable[[np.random.Generator], Example]
