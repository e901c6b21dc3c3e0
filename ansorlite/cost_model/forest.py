"""A forest of small trees as flat arrays, and its evaluation over a whole population.

Trees are evaluated by bit vectors (QuickScorer: Lucchese et al., SIGIR 2015; vectorised over rows: V-QuickScorer, 2016).
The leaves of a tree are numbered from left to right, one bit each. A split that a row does not satisfy clears the bits of
the leaves under its left arm; when all splits are done, in any order, the lowest bit left is the leaf the row falls in.
So there is no branch and no pointer to chase: each split is one comparison and one ``and`` for 16 programs at a time.

Rows are compared as float32, and so are they in training: with each threshold rounded down to a float32, every decision is
the very one that LightGBM takes in float64.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ansorlite.cost_model.kernel import LEAVES, sum_of_trees


@dataclass(frozen=True, eq=False)
class Forest:
    """The splits of all trees, tree after tree.

    Attributes:
        used: ``(u,)`` int64: the features that any split reads.
        first: ``(trees + 1,)`` int64: the splits of tree ``t`` are ``first[t]`` to ``first[t + 1]``.
        feature: ``(splits,)`` int64 positions in ``used``.
        threshold: ``(splits,)`` float32; a row goes left if its feature is not greater.
        mask: ``(splits,)`` uint32: the leaves that are left to a row that goes right.
        leaves: ``(trees, 32)`` float64: the value of each leaf.
    """

    used: NDArray[np.int64]
    first: NDArray[np.int64]
    feature: NDArray[np.int64]
    threshold: NDArray[np.float32]
    mask: NDArray[np.uint32]
    leaves: NDArray[np.float64]

    @staticmethod
    def of(model: str) -> Forest:
        """The forest in what LightGBM's ``Booster.model_to_string()`` returns. (``dump_model()`` says the same as JSON, and takes
        several times as long.)

        Raises:
            ValueError: a tree of more than 32 leaves, or a split that is not a plain ``<=``.
        """
        feature: list[int] = []
        threshold: list[float] = []
        mask: list[int] = []
        first = [0]
        trees = [_Tree.of(text) for text in model.split("\nTree=")[1:]]
        leaves = np.zeros((len(trees), LEAVES))
        for number, tree in enumerate(trees):
            if len(tree.leaf) > LEAVES:
                raise ValueError(f"a tree has {len(tree.leaf)} leaves; at most {LEAVES} can be evaluated")
            masks, order = tree.masks()
            leaves[number, : len(order)] = [tree.leaf[leaf] for leaf in order]
            feature += tree.feature
            threshold += tree.threshold
            mask += masks
            first.append(len(mask))
        used, position = np.unique(np.asarray(feature, np.int64), return_inverse=True)
        return Forest(
            used=used,
            first=np.asarray(first, np.int64),
            feature=position.astype(np.int64),
            threshold=_round_down(np.asarray(threshold, np.float64)),
            mask=np.asarray(mask, np.uint32),
            leaves=leaves,
        )

    def predict(self, features: NDArray[np.float64]) -> NDArray[np.float64]:
        """``(n, statements, features)`` float64, of any strides, to ``(n,)``: the sum over a program's statements."""
        return sum_of_trees(
            np.asarray(features, np.float64), self.used, self.first, self.feature, self.threshold, self.mask, self.leaves
        )


#: Of LightGBM's ``decision_type``: whether a split is by categories, and the bits that say how missing values go.
_BY_CATEGORY: Final = 0b0001
_MISSING: Final = {0b0000: "None", 0b0100: "Zero", 0b1000: "NaN"}


@dataclass(frozen=True)
class _Tree:
    """One tree, by split: its feature and threshold, and where a row goes: to another split, or to leaf ``~child``."""

    feature: list[int]
    threshold: list[float]
    left: list[int]
    right: list[int]
    leaf: list[float]

    @staticmethod
    def of(text: str) -> _Tree:
        facts = dict(line.split("=", 1) for line in text.partition("\n\n")[0].splitlines()[1:])
        for kind in map(int, facts.get("decision_type", "").split()):
            missing = _MISSING[kind & 0b1100]
            if kind & _BY_CATEGORY or missing != "None":
                decision = "==" if kind & _BY_CATEGORY else "<="
                raise ValueError(f"cannot evaluate a split {decision} with missing values as {missing}")
        return _Tree(
            list(map(int, facts.get("split_feature", "").split())),
            list(map(float, facts.get("threshold", "").split())),
            list(map(int, facts.get("left_child", "").split())),
            list(map(int, facts.get("right_child", "").split())),
            list(map(float, facts["leaf_value"].split())),
        )

    def masks(self) -> tuple[list[int], list[int]]:
        """By split the leaves that are left to a row that goes right, and the leaves from left to right."""
        masks = [0] * len(self.feature)
        order: list[int] = []

        def walk(node: int) -> None:
            if node < 0:
                order.append(~node)
                return
            begin = len(order)
            walk(self.left[node])
            masks[node] = ~((1 << len(order)) - (1 << begin)) & 0xFFFFFFFF
            walk(self.right[node])

        walk(0 if self.feature else ~0)
        return masks, order


def _round_down(thresholds: NDArray[np.float64]) -> NDArray[np.float32]:
    nearest = thresholds.astype(np.float32)
    return np.where(nearest > thresholds, np.nextafter(nearest, np.float32(-np.inf)), nearest)
