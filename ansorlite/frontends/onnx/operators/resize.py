"""Resize, where what is made of what is worked out beforehand; and sampling at places that a tensor gives.

One dimension at a time. What is known of shapes, scales and modes becomes tables of indices and weights, here, in numpy; the
work itself is one gather, or one sum of weighted taps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np

from ansorlite.frontends.onnx.node import NodeView, UnsupportedError
from ansorlite.te import dtypes
from ansorlite.topi.elementwise import where
from ansorlite.topi.grid_sample import Interpolation, Outside, grid_sample
from ansorlite.topi.resample import resample
from ansorlite.topi.shape import gather

Array: TypeAlias = np.ndarray[Any, Any]


#: Names of interpolations, that of Upsample's first version among them.
_MODES: Final = ("nearest", "linear", "bilinear", "cubic")

#: Elements that a dimension may be resized to: one table entry or more is made for each.
_MOST: Final = 1 << 24


@dataclass(frozen=True)
class _Axis:
    """How one dimension is resized.

    Attributes:
        extent, count: elements before and after.
        scale: the ratio that is meant; ``count`` is rounded.
        roi: start and end of the region of interest, 0 to 1.
    """

    extent: int
    count: int
    scale: float
    roi: tuple[float, float] = (0.0, 1.0)

    @property
    def changes(self) -> bool:
        return self.count != self.extent or not np.isclose(self.scale, 1.0) or self.roi != (0.0, 1.0)

    def centers(self, mode: str) -> Array:
        """Where the elements of the result lie, in elements of the data.

        Raises:
            UnsupportedError: an unknown mode.
        """
        places = np.arange(self.count, dtype=np.float64)
        length = self.scale * self.extent
        last = self.extent - 1
        half_pixel = (places + 0.5) / self.scale - 0.5
        begin, end = self.roi
        match mode:
            case "half_pixel":
                return half_pixel
            case "pytorch_half_pixel":
                return half_pixel if length > 1 else np.zeros(self.count)
            case "half_pixel_symmetric":
                return half_pixel + self.extent / 2 * (1 - self.count / length)
            case "asymmetric":
                return places / self.scale
            case "align_corners":
                return places * last / (length - 1) if length != 1 else np.zeros(self.count)
            case "tf_crop_and_resize":
                size = (end - begin) * last
                return begin * last + (places * size / (length - 1) if length != 1 else np.full(self.count, size / 2))
        raise UnsupportedError(f"coordinate_transformation_mode {mode!r}")


def resize(node: NodeView) -> str:
    """Resize, and Upsample, of which it is the successor."""
    old = node.opset < 11
    result = node.input(0)
    mode = node.text("mode", "nearest")
    if mode not in _MODES:
        raise node.error(f"mode {mode!r} is unknown; known are: {', '.join(_MODES)}")
    transformation = node.text("coordinate_transformation_mode", "asymmetric" if old else "half_pixel")
    extrapolated = transformation == "tf_crop_and_resize"
    for dimension, axis in enumerate(_axes(node, 1 if old else 2, extrapolated)):
        if not axis.changes:
            continue
        if axis.count < 1:
            raise UnsupportedError("the result has no elements")
        centers = axis.centers(transformation)
        if mode == "nearest":
            # Of older opsets only ONNX's tests say it: what becomes smaller takes the next element.
            usual = "round_prefer_floor" if not old else "ceil" if axis.scale < 1 else "floor"
            places = _nearest(centers, node.text("nearest_mode", usual))
            index = node.constant(np.clip(places, 0, axis.extent - 1).astype(np.int64))
            result = node.apply(gather, result, index, axis=dimension)
        else:
            result = _filtered(node, result, dimension, axis, centers)
        if extrapolated:
            result = _extrapolated(node, result, dimension, axis, centers)
    return result


def _axes(node: NodeView, scales_at: int, cropped: bool) -> list[_Axis]:
    """How each dimension is resized, by scales or sizes."""
    extents = node.value(0).shape
    rank = len(extents)
    axes = [a + rank if a < 0 else a for a in node.integers("axes") or range(rank)]
    if len(set(axes)) != len(axes) or any(not 0 <= a < rank for a in axes):
        raise node.error(f"axes {axes} are not distinct dimensions of {extents}")
    if 0 in extents:
        raise UnsupportedError("an input has no elements")
    found = {d: _Axis(e, e, 1.0) for d, e in enumerate(extents)}
    roi = _floats(node, 1, 2 * len(axes)) if cropped and node.has(1) else [0.0] * len(axes) + [1.0] * len(axes)
    fixed = _attributes(node, len(axes))
    if fixed is not None or (node.has(scales_at) and node.array(scales_at).size):
        scales = _floats(node, scales_at, len(axes)) if fixed is None else fixed
        counts = [int(s * extents[d]) for s, d in zip(scales, axes, strict=True)]
    elif node.has(3) and node.array(3).size:
        counts = [int(v) for v in _floats(node, 3, len(axes))]
        scales = [c / extents[d] for c, d in zip(counts, axes, strict=True)]
        policy = node.text("keep_aspect_ratio_policy", "stretch")
        if policy != "stretch":
            common = min(scales) if policy == "not_larger" else max(scales)
            scales = [common] * len(axes)
            counts = [int(common * extents[d] + 0.5) for d in axes]
    else:
        raise node.error("neither scales nor sizes are given")
    if any(scale <= 0 for scale in scales) or any(count > _MOST for count in counts):
        raise node.error(f"it resizes to {counts}; sizes are positive, and at most {_MOST}")
    for n, d in enumerate(axes):
        found[d] = _Axis(extents[d], counts[n], scales[n], (roi[n], roi[n + len(axes)]))
    return [found[d] for d in range(rank)]


def _attributes(node: NodeView, count: int) -> list[float] | None:
    """The scales of Upsample before opset 9, when they were attributes."""
    if node.proto.op_type != "Upsample" or node.opset >= 9:
        return None
    found = node.numbers("scales")
    if found is None:
        found = (1.0, 1.0, node.number("height_scale", 0.0), node.number("width_scale", 0.0))
    return _finite(node, "scales", np.asarray(found), count)


def _floats(node: NodeView, position: int, count: int) -> list[float]:
    """The elements of an input, which must be so many finite numbers."""
    return _finite(node, f"input {position}", node.array(position).astype(np.float64), count)


def _finite(node: NodeView, what: str, array: Array, count: int) -> list[float]:
    if array.shape != (count,) or not np.isfinite(array).all():
        raise node.error(f"{what} must be {count} finite numbers; it is {array[:16]} of shape {array.shape}")
    return [float(v) for v in array]


def _nearest(centers: Array, mode: str) -> Array:
    match mode:
        case "round_prefer_floor":
            return np.ceil(centers - 0.5)
        case "round_prefer_ceil":
            return np.floor(centers + 0.5)
        case "floor":
            return np.floor(centers)
        case "ceil":
            return np.ceil(centers)
    raise UnsupportedError(f"nearest_mode {mode!r}")


def _filtered(node: NodeView, result: str, dimension: int, axis: _Axis, centers: Array) -> str:
    """By linear or cubic interpolation."""
    dtype = node.value(0).dtype
    if not dtypes.is_float(dtype):
        raise UnsupportedError(f"interpolation of {dtype}")
    cubic = node.text("mode", "nearest") == "cubic"
    radius = 2 if cubic else 1
    # When it makes the data smaller, an antialiasing filter is as wide as the elements of the result.
    narrow = min(axis.scale, 1.0) if node.integer("antialias", 0) else 1.0
    first = int(np.floor(-radius / narrow)) + 1
    places = np.floor(centers)[:, None] + np.arange(first, 2 - first)
    distances = np.abs(places - centers[:, None]) * narrow
    weights = _cubic(distances, node.number("cubic_coeff_a", -0.75)) if cubic else np.maximum(1 - distances, 0)
    if node.integer("exclude_outside", 0):
        weights = np.where((places < 0) | (places >= axis.extent), 0, weights)
    weights = weights / weights.sum(axis=1, keepdims=True)
    sources = node.constant(np.clip(places, 0, axis.extent - 1).astype(np.int64))
    return node.apply(resample, result, sources, node.constant(weights.astype(dtypes.NUMPY[dtype])), axis=dimension)


def _cubic(distances: Array, a: float) -> Array:
    """Keys' kernel."""
    near = ((a + 2) * distances - (a + 3)) * distances**2 + 1
    far = ((a * distances - 5 * a) * distances + 8 * a) * distances - 4 * a
    return np.where(distances <= 1, near, np.where(distances < 2, far, 0))


def _extrapolated(node: NodeView, result: str, dimension: int, axis: _Axis, centers: Array) -> str:
    """``extrapolation_value`` for elements that lie outside of the data."""
    outside = (centers < 0) | (centers > axis.extent - 1)
    if not outside.any():
        return result
    rank = len(node.value(0).shape)
    mask = node.constant(outside.reshape([axis.count if d == dimension else 1 for d in range(rank)]))
    value = np.asarray(node.number("extrapolation_value", 0.0)).astype(dtypes.NUMPY[node.value(0).dtype])
    return node.apply(where, mask, node.constant(value), result)


#: Names of interpolations, those of older opsets among them.
_INTERPOLATIONS: Final = {
    "nearest": Interpolation.NEAREST,
    "linear": Interpolation.LINEAR,
    "bilinear": Interpolation.LINEAR,
    "cubic": Interpolation.CUBIC,
    "bicubic": Interpolation.CUBIC,
}


def convert_grid_sample(node: NodeView) -> str:
    mode, outside = node.text("mode", "linear"), node.text("padding_mode", "zeros")
    if mode not in _INTERPOLATIONS or outside not in [known.value for known in Outside]:
        raise node.error(f"mode {mode!r} or padding_mode {outside!r} is unknown")
    if not dtypes.is_float(node.value(0).dtype):
        raise UnsupportedError(f"samples of {node.value(0).dtype}")
    return node.apply(
        grid_sample,
        node.input(0),
        node.input(1),
        interpolation=_INTERPOLATIONS[mode],
        outside=Outside(outside),
        align_corners=bool(node.integer("align_corners", 0)),
    )
