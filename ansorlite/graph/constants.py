"""Constants that take no memory while they are one value repeated, as the weights of test models are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ansorlite.graph.graph import Array
from ansorlite.graph.limits import check_size


def splat(value: Any, shape: tuple[int, ...]) -> Array:
    """``value`` (a numpy scalar) repeated: a read-only view of one element.

    Raises:
        ExpressionError: that is more than any machine has room for.
    """
    check_size(shape, np.asarray(value).dtype.name)
    return np.broadcast_to(value, shape)


def is_splat(array: Array) -> bool:
    """Whether ``array`` is a view of one element."""
    return array.size == 1 or all(stride == 0 for stride, extent in zip(array.strides, array.shape, strict=True) if extent > 1)


def first(array: Array) -> Any:
    """The first element, as a numpy scalar."""
    return array[(0,) * array.ndim]


def combine(function: Callable[..., Array], *arrays: Array) -> Array:
    """``function`` of arrays, element by element after broadcasting; of splats it is a splat again."""
    if all(map(is_splat, arrays)):
        shape = np.broadcast_shapes(*(array.shape for array in arrays))
        return splat(np.asarray(function(*map(first, arrays)))[()], shape)
    return function(*arrays)


def reshaped(array: Array, shape: tuple[int, ...]) -> Array:
    """``array.reshape(shape)`` without a copy where that can be."""
    return splat(first(array), shape) if is_splat(array) else array.reshape(shape)
