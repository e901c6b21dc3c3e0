"""Operators that take elements from places, or put them there; and those whose results have as many elements as values say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from tests.fuzz.graphs.draft import Draft, Made, NoFitError
from tests.fuzz.graphs.operators.elementwise import Maker
from tests.fuzz.graphs.values import ALL, FLOATS, NUMBERS

_INDEX: Final = ("int64", "int64", "int32")


def _data(g: Draft, least: int = 1) -> str:
    x = g.pick(ALL, (least, 4))
    if 0 in g[x].shape:
        raise NoFitError
    return x


def gather(g: Draft) -> Made:
    x = _data(g)
    axis = g.axis(x)
    extent = g[x].shape[axis]
    indices = g.fresh(g.choice(_INDEX), g.shape(0, 2), -extent if g.opset >= 11 else 0, extent - 1)
    return Made("Gather", [x, indices], {"axis": axis} if axis or g.chance() else {})


def gather_elements(g: Draft) -> Made:
    x = _data(g)
    axis = g.axis(x)
    shape = [g.integer(1, 4) if d == axis % g.rank(x) else g.integer(1, e) for d, e in enumerate(g[x].shape)]
    extent = g[x].shape[axis]
    return Made("GatherElements", [x, g.fresh(g.choice(_INDEX), shape, -extent, extent - 1)], {"axis": axis})


def _tuples(g: Draft, extents: tuple[int, ...], shape: list[int]) -> str:
    """Indices of several dimensions each."""
    places = np.stack([g.rng.integers(-e, e, shape) for e in extents], axis=-1)
    return g.parameter(places)


def gather_nd(g: Draft) -> Made:
    x = _data(g)
    rank = g.rank(x)
    batch = g.integer(0, min(1, rank - 1)) if g.opset >= 12 else 0
    depth = g.integer(1, rank - batch)
    shape = [*g[x].shape[:batch], *(g.integer(1, 3) for _ in range(g.integer(0, 2)))]
    return Made(
        "GatherND", [x, _tuples(g, g[x].shape[batch : batch + depth], shape)], {"batch_dims": batch} if g.opset >= 12 else {}
    )


def _reduction(g: Draft, dtype: str) -> dict[str, Any]:
    if dtype == "bool" or g.chance(0.4):
        return {}
    names = (["add", "mul"] if g.opset >= 16 else []) + (["min", "max"] if g.opset >= 18 else [])
    return {"reduction": g.choice(names)} if names else {}


def scatter_elements(g: Draft) -> Made:
    x = _data(g)
    axis = g.axis(x)
    at, extent = axis % g.rank(x), g[x].shape[axis]
    reduction = _reduction(g, g.dtype(x))
    count = g.integer(1, extent)
    shape = [count if d == at else g.integer(1, e) for d, e in enumerate(g[x].shape)]
    if reduction:
        indices = g.rng.integers(-extent, extent, shape)
    else:
        # Which of two values wins that are put to the same place is not said.
        order = np.argsort(g.rng.random([extent if d == at else e for d, e in enumerate(shape)]), axis=at)
        indices = np.take(order, range(count), axis=at)
    updates = g.exactly(shape, g.dtype(x))
    return Made("ScatterElements", [x, g.parameter(indices, g.choice(_INDEX)), updates], {"axis": axis, **reduction})


def scatter_nd(g: Draft) -> Made:
    x = _data(g)
    shape = g[x].shape
    depth = g.integer(1, len(shape))
    reduction = _reduction(g, g.dtype(x))
    count = g.integer(1, min(4, int(np.prod(shape[:depth]))))
    flat = g.rng.choice(int(np.prod(shape[:depth])), count, replace=bool(reduction))
    indices = np.stack(np.unravel_index(flat, shape[:depth]), axis=-1)
    updates = g.exactly((count, *shape[depth:]), g.dtype(x))
    return Made("ScatterND", [x, g.parameter(indices), updates], reduction)


def one_hot(g: Draft) -> Made:
    depth = g.integer(1, 6)
    dtype, shape = g.choice(("int64", "int32", "float32", "uint8")), g.shape(0, 2)
    if dtype == "float32":
        indices = g.parameter(np.asarray(g.rng.integers(-depth - 1, depth + 2, shape), np.float32))
    else:
        indices = g.fresh(dtype, shape, -depth - 1, depth + 1)
    values = g.fresh(g.choice(("float32", "int64", "float32", "int32", "bool")), (2,))
    rank = g.rank(indices) + 1
    return Made(
        "OneHot",
        [indices, g.parameter(g.choice((depth, [depth])), g.choice(("int64", "int32"))), values],
        {"axis": g.integer(-rank, rank - 1)},
    )


def reverse_sequence(g: Draft) -> Made:
    x = _data(g, 2)
    batch = g.integer(0, 1)
    shape = g[x].shape
    lengths = g.rng.integers(1, shape[1 - batch] + 1, shape[batch])
    return Made("ReverseSequence", [x, g.parameter(lengths)], {"batch_axis": batch, "time_axis": 1 - batch})


def top_k(g: Draft) -> Made:
    x = g.pick(NUMBERS, (1, 4))
    axis = g.axis(x)
    if not g[x].shape[axis]:
        raise NoFitError
    count = g.integer(1, g[x].shape[axis])
    if g.opset < 10:
        return Made("TopK", [x], {"k": count, "axis": axis}, 2)
    flags = g.flags("largest") if g.opset >= 11 else {}
    return Made("TopK", [x, g.parameter([count])], {"axis": axis, **flags}, 2)


def compress(g: Draft) -> Made:
    x = _data(g)
    if g.chance(0.3):
        return Made("Compress", [x, g.fresh("bool", (g[x].size,))])
    axis = g.axis(x, g.opset >= 11)
    return Made("Compress", [x, g.fresh("bool", (g.integer(1, g[x].shape[axis]),))], {"axis": axis})


def non_zero(g: Draft) -> Made:
    return Made("NonZero", [g.pick(ALL, (1, 4))])


def unique(g: Draft) -> Made:
    x = _data(g)
    axis = {"axis": g.axis(x)} if g.chance() else {}
    return Made("Unique", [x], {**axis, **g.flags("sorted")}, g.integer(1, 4))


def grid_sample(g: Draft) -> Made:
    volume = g.opset >= 20 and g.chance(0.25)
    x = g.pick(FLOATS, (5, 5) if volume else (4, 4))
    if 0 in g[x].shape:
        raise NoFitError
    places = [g.integer(1, 3) for _ in g[x].shape[2:]]
    grid = g.fresh(g.dtype(x), (g[x].shape[0], *places, len(places)), -1.2, 1.2)
    modes = ("linear", "nearest", *(() if volume else ("cubic",))) if g.opset >= 20 else ("bilinear", "nearest", "bicubic")
    attributes = {
        "mode": g.choice(modes),
        "padding_mode": g.choice(("zeros", "border", "reflection")),
        **g.flags("align_corners"),
    }
    return Made("GridSample", [x, grid], attributes)


def col2im(g: Draft) -> Made:
    image, block = [g.integer(3, 6) for _ in range(2)], [g.integer(1, 3) for _ in range(2)]
    blocks = int(np.prod([i - b + 1 for i, b in zip(image, block, strict=True)]))
    x = g.fresh("float32", (1, g.integer(1, 2) * int(np.prod(block)), blocks))
    return Made("Col2Im", [x, g.parameter(image), g.parameter(block)])


INDEXING: Final[Mapping[str, Maker]] = {
    "Col2Im": col2im,
    "Compress": compress,
    "Gather": gather,
    "GatherElements": gather_elements,
    "GatherND": gather_nd,
    "GridSample": grid_sample,
    "NonZero": non_zero,
    "OneHot": one_hot,
    "ReverseSequence": reverse_sequence,
    "ScatterElements": scatter_elements,
    "ScatterND": scatter_nd,
    "TopK": top_k,
    "Unique": unique,
}
