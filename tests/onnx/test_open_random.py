"""Random models with two open dimensions, at sizes within a bucket and at its ends: the results are always the reference's.

Where elements depend on one another along a dimension, or on its size, a program is given the size.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import pytest
from onnx import helper

from tests.onnx.test_open_dimensions import Counted, model_of, normal

Step = Callable[[str, str], list[onnx.NodeProto]]


def _one(kind: str, *others: str, **attributes: object) -> Step:
    return lambda x, y: [helper.make_node(kind, [x, *others], [y], **attributes)]


def _twice(kind: str, first: Step) -> Step:
    """A result combined with what it was computed from."""
    return lambda x, y: [*first(x, f"{y}_"), helper.make_node(kind, [x, f"{y}_"], [y])]


def _merged(x: str, y: str) -> list[onnx.NodeProto]:
    """All rows side by side, scaled, and in their old shape again."""
    return [
        helper.make_node("Shape", [x], [f"{y}_shape"]),
        helper.make_node("Reshape", [x, "all"], [f"{y}_flat"]),
        helper.make_node("Tanh", [f"{y}_flat"], [f"{y}_scaled"]),
        helper.make_node("Reshape", [f"{y}_scaled", f"{y}_shape"], [y]),
    ]


#: Each takes and gives (rows, columns, 4); with it, along which of the open dimensions it lets elements depend on one another.
STEPS: tuple[tuple[Step, frozenset[str]], ...] = (
    (_one("MatMul", "w"), frozenset()),
    (_one("Add", "bias"), frozenset()),
    (_one("Sigmoid"), frozenset()),
    (_one("LayerNormalization", "bias"), frozenset()),
    (_twice("Mul", _one("Softmax", axis=-1)), frozenset()),
    (_twice("Sub", _one("ReduceMean", "last", keepdims=1)), frozenset()),
    (_merged, frozenset({"columns"})),
    (_twice("Sub", _one("ReduceMax", "first", keepdims=1)), frozenset({"rows"})),
    (_twice("Add", _one("ReduceSum", "second", keepdims=1)), frozenset({"columns"})),
    (_one("CumSum", "axis"), frozenset({"columns"})),
    (_twice("Add", _one("Slice", "start", "end", "first")), frozenset()),
    (_one("Slice", "back", "far", "second", "back"), frozenset({"columns"})),
    (
        _twice("Div", lambda x, y: [helper.make_node("Size", [x], [f"{y}n"]), helper.make_node("CastLike", [f"{y}n", x], [y])]),
        frozenset({"rows", "columns"}),
    ),
)

CONSTANTS = {
    "w": normal(4, 4), "bias": normal(4), "all": np.array([-1, 4]), "first": np.array([0]), "second": np.array([1]),
    "last": np.array([-1]), "start": np.array([0]), "end": np.array([1]), "back": np.array([-1]), "far": np.array([-9999]),
    "axis": np.array(1),
}  # fmt: skip


def _random(seed: int, **options: object) -> tuple[Counted, frozenset[str]]:
    """A model, and the dimensions along which elements depend on one another."""
    rng = np.random.default_rng(seed)
    chosen = [STEPS[n] for n in rng.integers(0, len(STEPS), rng.integers(1, 5))]
    nodes = [node for n, (step, _) in enumerate(chosen) for node in step(f"v{n}", f"v{n + 1}")]
    nodes.append(helper.make_node("Identity", [f"v{len(chosen)}"], ["y"]))
    proto = model_of(nodes, {"v0": ("rows", "columns", 4)}, {"y": 3}, CONSTANTS)
    return Counted(proto, **options), frozenset[str]().union(*(along for _, along in chosen))


@pytest.mark.parametrize("seed", range(24))
def test_sizes_of_a_bucket(seed: int) -> None:
    ready, tied = _random(seed)
    for rows, columns in ((3, 5), (4, 6), (3, 7), (4, 8)):
        ready.check(v0=normal(rows, columns, 4))
    # Of the four, so many are left apart at most: two numbers of rows, four of columns, each if they matter.
    assert ready.compiled <= {0: 1, 1: 2 if "rows" in tied else 4, 2: 4}[len(tied)]
    for rows, columns in ((1, 5), (3, 1), (1, 1)):
        ready.check(v0=normal(rows, columns, 4))


@pytest.mark.parametrize("seed", range(24))
def test_sizes_below_named_ones(seed: int) -> None:
    """One program serves all of them, but for sizes at which a shape has another meaning."""
    ready, _ = _random(seed, dims={"rows": (5,), "columns": (16,)})
    for rows, columns in ((3, 9), (4, 10), (3, 7), (4, 15), (3, 4)):
        ready.check(v0=normal(rows, columns, 4))
    assert ready.compiled == 1
    for rows, columns in ((5, 16), (2, 2), (1, 5), (3, 1), (1, 1)):
        ready.check(v0=normal(rows, columns, 4))
