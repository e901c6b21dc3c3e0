"""Operators that move elements, and constants."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from onnx import numpy_helper

from tests.fuzz.graphs.draft import MOST, Draft, Made, NoFitError, number_of
from tests.fuzz.graphs.operators.elementwise import Maker
from tests.fuzz.graphs.values import ALL, FLOATS, NUMBERS, draw


def _factors(g: Draft, count: int, most: int = 4) -> list[int]:
    """Extents whose product is ``count``."""
    found = []
    for _ in range(g.integer(0, most - 1)):
        factor = g.choice([n for n in range(1, count + 1) if count % n == 0] or [1])
        found.append(factor)
        count //= factor
    return [*found, count]


def reshape(g: Draft) -> Made:
    x = g.pick(ALL, where=lambda array: array.size > 0)
    shape = g[x].shape
    wanted = _factors(g, g[x].size)
    if g.chance(0.3):
        wanted[g.integer(0, len(wanted) - 1)] = -1
    if g.chance(0.2) and shape and -1 not in wanted:
        wanted = [0, *_factors(g, g[x].size // shape[0], 3)]
        wanted[-1] = -1
    return Made("Reshape", [x, g.parameter(wanted)])


def flatten(g: Draft) -> Made:
    x = g.pick(ALL)
    chosen = g.chance(0.8) or not g.rank(x)
    return Made("Flatten", [x], {"axis": g.integer(0 if g.opset < 11 else -g.rank(x), g.rank(x))} if chosen else {})


def squeeze(g: Draft) -> Made:
    x = g.pick(ALL)
    ones = [d for d, extent in enumerate(g[x].shape) if extent == 1]
    if g.chance(0.2):
        return Made("Squeeze", [x])
    if not ones:
        raise NoFitError
    axes = sorted({g.choice(ones) for _ in range(2)})
    if g.opset < 13:
        return Made("Squeeze", [x], {"axes": axes})
    return Made("Squeeze", [x, g.parameter([a - g.rank(x) if g.chance(0.3) else a for a in axes])])


def unsqueeze(g: Draft) -> Made:
    x = g.pick(ALL, (0, 3))
    rank = g.rank(x) + g.integer(1, 2)
    axes = [int(a) for a in g.rng.permutation(rank)[: rank - g.rank(x)]]
    if g.opset < 13:
        return Made("Unsqueeze", [x], {"axes": sorted(axes)})
    return Made("Unsqueeze", [x, g.parameter([a - rank if g.chance(0.3) else a for a in axes])])


def transpose(g: Draft) -> Made:
    x = g.pick(ALL)
    return Made("Transpose", [x], {"perm": [int(a) for a in g.rng.permutation(g.rank(x))]} if g.chance(0.8) and g.rank(x) else {})


def concat(g: Draft) -> Made:
    x = g.pick(ALL, (1, 5))
    axis = g.axis(x)
    at = axis % g.rank(x)
    shape = g[x].shape
    others = []
    for _ in range(g.integer(0, 3)):
        try:
            own = g.pick(
                (g.dtype(x),),
                where=lambda a: a.ndim == len(shape) and a.shape[:at] + a.shape[at + 1 :] == shape[:at] + shape[at + 1 :],
            )
        except NoFitError:
            own = g.fresh(g.dtype(x), (*shape[:at], g.integer(1, 4), *shape[at + 1 :]))
        others.append(own)
    inputs = [x, *others]
    return Made("Concat", [inputs[n] for n in g.rng.permutation(len(inputs))], {"axis": axis})


def split(g: Draft) -> Made:
    x = g.pick(ALL, (1, 5))
    axis = g.axis(x)
    extent = g[x].shape[axis]
    if extent < 2:
        raise NoFitError
    parts = g.integer(2, min(4, extent))
    if g.chance() and (g.opset >= 18 or extent % parts == 0):
        attributes: dict[str, Any] = {"axis": axis, **({"num_outputs": parts} if g.opset >= 18 else {})}
        return Made("Split", [x], attributes, parts)
    cuts = sorted(int(c) for c in g.rng.choice(np.arange(1, extent), parts - 1, replace=False))
    sizes = [b - a for a, b in zip([0, *cuts], [*cuts, extent], strict=True)]
    if g.opset < 13:
        return Made("Split", [x], {"axis": axis, "split": sizes}, parts)
    return Made("Split", [x, g.parameter(sizes)], {"axis": axis}, parts)


def strided_slice(g: Draft) -> Made:
    x = g.pick(ALL, (1, 5))
    axes = g.axes(x)
    starts, ends, steps = [], [], []
    for axis in axes:
        extent = g[x].shape[axis]
        step = g.choice((1, 1, 1, 2, 3, -1, -2)) if g.opset >= 10 else 1
        low, high = sorted((g.integer(0, max(0, extent - 1)), g.integer(1, max(1, extent))))
        start, end = (low, high) if step > 0 else (high - 1, low - 1 if low else -extent - 1)
        if g.chance(0.2):
            end = 1 << 40 if step > 0 else -(1 << 40)
        starts.append(start - extent if g.chance(0.3) and start < extent else start)
        ends.append(end)
        steps.append(step)
    if g.opset < 10:
        return Made("Slice", [x], {"starts": starts, "ends": ends, "axes": axes})
    kind = g.choice(("int64", "int64", "int32"))
    most = 1 << 40 if kind == "int64" else (1 << 31) - 1
    ends = [max(-most, min(most, end)) for end in ends]
    return Made("Slice", [x, *(g.parameter(p, kind) for p in (starts, ends, axes, steps))])


def pad(g: Draft) -> Made:
    x = g.pick(ALL, (1, 4))
    shape, rank, dtype = g[x].shape, g.rank(x), g.dtype(x)
    mode = g.choice(("constant", "constant", "reflect", "edge", *(("wrap",) if g.opset >= 19 else ())))
    least = -1 if g.chance(0.2) and mode == "constant" else 0
    most = [3 if mode in ("constant", "edge") else extent - 1 for extent in shape]
    if min((*shape, *most)) < (1 if mode == "constant" else 0) or (mode != "constant" and 0 in shape):
        raise NoFitError
    pads = [g.integer(least if extent > 2 else 0, min(3, m)) for extent, m in (*zip(shape, most, strict=True),) * 2]
    if g.opset < 11:
        return Made("Pad", [x], {"pads": pads, "mode": mode, **({"value": 1.5} if g.chance() else {})})
    value = [g.parameter(draw(g.rng, dtype, (), 0, 3), dtype)] if mode == "constant" and g.chance(0.7) else []
    if g.opset >= 18 and g.chance(0.3):
        axes = g.axes(x)
        chosen = [pads[a % rank] for a in axes] + [pads[rank + a % rank] for a in axes]
        return Made("Pad", [x, g.parameter(chosen), *(value or [""]), g.parameter(axes)], {"mode": mode})
    return Made("Pad", [x, g.parameter(pads), *value], {"mode": mode})


def expand(g: Draft) -> Made:
    x = g.pick(ALL, (0, 4))
    wanted = [g.integer(1, 4) if extent == 1 and g.chance() else g.choice((1, extent)) for extent in g[x].shape]
    if g.chance(0.3) and g.rank(x) < 4:
        wanted = [g.integer(1, 3), *wanted]
    return Made("Expand", [x, g.parameter(wanted)])


def tile(g: Draft) -> Made:
    x = g.pick(ALL, (1, 4))
    repeats = [g.choice((1, 1, 2, 3)) for _ in range(g.rank(x))]
    if g[x].size * int(np.prod(repeats)) > MOST:
        raise NoFitError
    return Made("Tile", [x, g.parameter(repeats)])


def depth_to_space(g: Draft) -> Made:
    b = g.integer(2, 3)
    x = g.fresh(g.choice(FLOATS), (g.integer(1, 2), b * b * g.integer(1, 2), g.integer(1, 4), g.integer(1, 4)))
    if g.chance(0.3):
        x = g.pick(ALL, (4, 4), where=lambda a: a.shape[1] % (b * b) == 0)
    return Made("DepthToSpace", [x], {"blocksize": b, **({"mode": g.choice(("DCR", "CRD"))} if g.opset >= 11 else {})})


def space_to_depth(g: Draft) -> Made:
    b = g.integer(2, 3)
    x = g.fresh(g.choice(FLOATS), (g.integer(1, 2), g.integer(1, 3), b * g.integer(1, 3), b * g.integer(1, 2)))
    if g.chance(0.3):
        x = g.pick(ALL, (4, 4), where=lambda a: a.shape[2] % b == a.shape[3] % b == 0)
    return Made("SpaceToDepth", [x], {"blocksize": b, **({"mode": g.choice(("DCR", "CRD"))} if g.opset >= 28 else {})})


def shape_of(g: Draft) -> Made:
    x = g.pick(ALL)
    ends = {name: g.integer(-3, 3) for name in ("start", "end") if g.chance(0.4)} if g.opset >= 15 else {}
    return Made("Shape", [x], ends)


def size_of(g: Draft) -> Made:
    return Made("Size", [g.pick(ALL)])


def constant_of_shape(g: Draft) -> Made:
    value = {"value": numpy_helper.from_array(draw(g.rng, g.choice(ALL), (1,)))} if g.chance(0.8) else {}
    return Made("ConstantOfShape", [g.parameter(g.shape(0, 3))], value)


def center_crop_pad(g: Draft) -> Made:
    x = g.pick(NUMBERS, (1, 4))
    axes = sorted({a % g.rank(x) for a in g.axes(x)})
    sizes = [g.integer(1, g[x].shape[a] + 3) for a in axes]
    return Made("CenterCropPad", [x, g.parameter(sizes)], {"axes": axes})


def eye_like(g: Draft) -> Made:
    x = g.pick(NUMBERS, (2, 2))
    return Made("EyeLike", [x], {"k": g.integer(-2, 2), **({"dtype": number_of(g.choice(NUMBERS))} if g.chance() else {})})


def arange(g: Draft) -> Made:
    dtype = g.choice(("float32", "float64", "int16", "int32", "int64"))
    start, step, count = g.integer(-5, 5), g.choice((1, 2, 3, -1, -2)), g.integer(1, 12)
    factor = 0.5 if dtype in FLOATS else 1
    numbers = (start * factor, (start + step * count) * factor, step * factor)
    return Made("Range", [g.parameter(number, dtype) for number in numbers])


def trilu(g: Draft) -> Made:
    x = g.pick(ALL, (2, 5))
    return Made("Trilu", [x, *([g.parameter(g.integer(-3, 3))] if g.chance(0.7) else [])], g.flags("upper"))


def _resized(g: Draft, exact: bool) -> tuple[str, list[float]]:
    """Something with images, and a factor for each dimension; of which only those of images change.

    Args:
        exact: whether places must have no rounding: the nearest of two neighbours depends on it.
    """
    shape = (1, g.integer(1, 2), g.integer(1, 6), g.integer(1, 6))
    x = (
        g.pick(("float32", "float32", "uint8", "int8", "int32", "float64", "float16"), (3, 4))
        if g.chance()
        else g.fresh("float32", shape)
    )
    if 0 in g[x].shape:
        raise NoFitError
    factors = [
        1.0 if d < 2 else g.choice((0.5, 1.0, 2.0, 4.0) if exact else (0.5, 0.6, 1.0, 1.5, 2.0, 2.3, 3.0))
        for d in range(g.rank(x))
    ]
    if any(int(e * f) < 1 for e, f in zip(g[x].shape, factors, strict=True)):
        raise NoFitError
    return x, factors


def resize(g: Draft) -> Made:
    mode = g.choice(("nearest", "linear", "cubic" if g.opset >= 11 else "nearest"))
    x, factors = _resized(g, mode == "nearest")
    if mode != "nearest" and (g.rank(x) != 4 or g.dtype(x) not in FLOATS):
        raise NoFitError
    if g.opset < 11:
        return Made("Resize", [x, g.parameter(factors, "float32")], {"mode": mode})
    attributes: dict[str, Any] = {"mode": mode}
    if g.chance(0.8):
        attributes["coordinate_transformation_mode"] = g.choice(
            (
                "half_pixel",
                "pytorch_half_pixel",
                "asymmetric",
                *(() if mode == "nearest" else ("align_corners",)),
                *(("half_pixel_symmetric",) if g.opset >= 19 else ()),
            )
        )
    if mode == "nearest" and g.chance(0.8):
        attributes["nearest_mode"] = g.choice(("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"))
    if mode == "cubic":
        attributes |= g.numbers(cubic_coeff_a=(-0.9, -0.4)) | g.flags("exclude_outside")
    if g.opset >= 18 and mode != "nearest" and g.chance(0.3):
        attributes["antialias"] = 1
    if g.opset >= 18 and g.chance(0.3):
        axes = [d for d in range(g.rank(x)) if d >= 2]
        attributes["axes"] = axes
        factors = [factors[d] for d in axes]
    if g.chance():
        return Made("Resize", [x, "", g.parameter(factors, "float32")], attributes)
    extents = [g[x].shape[d] for d in attributes.get("axes", range(g.rank(x)))]
    return Made("Resize", [x, "", "", g.parameter([int(e * f) for e, f in zip(extents, factors, strict=True)])], attributes)


def upsample(g: Draft) -> Made:
    mode = g.choice(("nearest", "linear"))
    x, factors = _resized(g, mode == "nearest")
    return Made("Upsample", [x, g.parameter([max(1.0, f) for f in factors], "float32")], {"mode": mode})


SHAPES: Final[Mapping[str, Maker]] = {
    "CenterCropPad": center_crop_pad,
    "Concat": concat,
    "ConstantOfShape": constant_of_shape,
    "DepthToSpace": depth_to_space,
    "Expand": expand,
    "EyeLike": eye_like,
    "Flatten": flatten,
    "Pad": pad,
    "Range": arange,
    "Reshape": reshape,
    "Resize": resize,
    "Shape": shape_of,
    "Size": size_of,
    "Slice": strided_slice,
    "SpaceToDepth": space_to_depth,
    "Split": split,
    "Squeeze": squeeze,
    "Tile": tile,
    "Transpose": transpose,
    "Trilu": trilu,
    "Unsqueeze": unsqueeze,
    "Upsample": upsample,
}
