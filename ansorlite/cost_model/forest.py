"""A forest of small trees as flat arrays, and its evaluation over a whole population.

Trees are evaluated by bit vectors (QuickScorer: Lucchese et al., SIGIR 2015; vectorised over rows: V-QuickScorer, 2016).
The leaves of a tree are numbered from left to right, one bit each. A split that a row does not satisfy clears the bits of
the leaves under its left arm; when all splits are done, in any order, the lowest bit left is the leaf the row falls in.
So there is no branch and no pointer to chase: each split is one comparison and one ``and`` for 16 programs at a time.

Rows are compared as float32, and so are they in training: with each threshold rounded down to a float32, every decision is
the very one that LightGBM takes in float64.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

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
    def of(dump: Mapping[str, Any]) -> Forest:
        """The forest in what LightGBM's ``Booster.dump_model()`` returns.

        Raises:
            ValueError: a tree of more than 32 leaves, or a split that is not a plain ``<=``.
        """
        splits: list[tuple[int, float, int]] = []
        first = [0]
        leaves = np.zeros((len(dump["tree_info"]), LEAVES))
        for tree, info in enumerate(dump["tree_info"]):
            values: list[float] = []
            splits.extend(_walk(info["tree_structure"], values))
            if len(values) > LEAVES:
                raise ValueError(f"a tree has {len(values)} leaves; at most {LEAVES} can be evaluated")
            leaves[tree, : len(values)] = values
            first.append(len(splits))
        used, feature = np.unique(np.asarray([split[0] for split in splits], np.int64), return_inverse=True)
        return Forest(
            used=used,
            first=np.asarray(first, np.int64),
            feature=feature.astype(np.int64),
            threshold=_round_down(np.asarray([split[1] for split in splits], np.float64)),
            mask=np.asarray([split[2] for split in splits], np.uint32),
            leaves=leaves,
        )

    def predict(self, features: NDArray[np.float64]) -> NDArray[np.float64]:
        """``(n, statements, features)`` float64, of any strides, to ``(n,)``: the sum over a program's statements."""
        return sum_of_trees(
            np.asarray(features, np.float64), self.used, self.first, self.feature, self.threshold, self.mask, self.leaves
        )


def _walk(node: Mapping[str, Any], values: list[float]) -> Iterator[tuple[int, float, int]]:
    """The splits under ``node`` as (feature, threshold, mask); ``values`` grows by its leaves, from left to right."""
    if "leaf_value" in node:
        values.append(node["leaf_value"])
        return
    if node["decision_type"] != "<=" or node["missing_type"] != "None":
        raise ValueError(f"cannot evaluate a split {node['decision_type']} with missing values as {node['missing_type']}")
    begin = len(values)
    yield from _walk(node["left_child"], values)
    left = (1 << len(values)) - (1 << begin)
    yield from _walk(node["right_child"], values)
    yield node["split_feature"], node["threshold"], ~left & 0xFFFFFFFF


def _round_down(thresholds: NDArray[np.float64]) -> NDArray[np.float32]:
    nearest = thresholds.astype(np.float32)
    return np.where(nearest > thresholds, np.nextafter(nearest, np.float32(-np.inf)), nearest)
