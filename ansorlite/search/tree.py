"""Monte Carlo tree search over the decisions of a sketch (ProTuner: Haj-Ali et al., arXiv 2005.13685)."""

from __future__ import annotations

import math
from collections.abc import Set
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from ansorlite.cost_model import CostModel
from ansorlite.search.evolutionary import EvolutionarySearch, EvolutionarySettings
from ansorlite.search.explorers import Explorer, Found, Rows, Score, Scores
from ansorlite.search.protocol import SearchProblem
from ansorlite.search.selectors import top
from ansorlite.sketch.space import Space

#: Of the bound that a path is chosen by; the scores below a node are compared by rank.
_EXPLORE: Final = 1.41


@dataclass(frozen=True)
class TreeSearch:
    """Makes explorers that search several trees at once. A level is a hole, in the order of the space; a path that has all is a
    row.

    What a path leaves open is random in most trees; in the others it is that of the best program so far. A tile hole has up to
    thousands of values, so a node of ``n`` visits has ``ceil(2 sqrt(n))`` children. After a slice of the work, the best complete
    program of all trees fixes the next hole of all of them, as there.

    Attributes:
        random, greedy: how many trees of either kind.
        rollouts: programs of all trees and slices together, all sketches together.
        keep: at most how many rows are handed on.
    """

    random: int = 15
    greedy: int = 1
    rollouts: int = 2048
    keep: int = 128

    def __call__(self, space: Space, rng: np.random.Generator) -> Explorer:
        def explore(score: Score, _: Rows, effort: float, taken: Set[bytes]) -> tuple[Rows, Scores]:
            found = Found(space, taken, self.keep)
            order = np.array(space.order, np.int64)
            roots = [_Node() for _ in range(self.random + self.greedy)]
            slices = max(1, len(order))
            rounds = max(2, round(max(effort, 0.1) * self.rollouts / (slices * len(roots))))
            best: Rows | None = None
            best_score = -np.inf
            for fixed in range(slices):
                for __ in range(rounds):
                    rows = space.sample(len(roots), rng)
                    if best is not None:
                        rows[:, order[:fixed]] = best[order[:fixed]]
                        rows[self.random :, order[fixed:]] = best[order[fixed:]]
                    paths = [self._path(root, row, order[fixed:], space, rng) for root, row in zip(roots, rows, strict=True)]
                    scores = found.scored(score, rows)
                    for path, value in zip(paths, scores.tolist(), strict=True):
                        for node in path:
                            node.visits += 1
                            node.best = max(node.best, value)
                    at = int(scores.argmax())
                    if scores[at] > best_score:
                        best, best_score = rows[at].copy(), float(scores[at])
                if best is None or not len(order):
                    break
                decided = int(best[order[fixed]])
                roots = [root.children.get(decided) or _Node() for root in roots]
            return found.rows()

        return explore

    @staticmethod
    def _path(root: _Node, row: Rows, order: Rows, space: Space, rng: np.random.Generator) -> list[_Node]:
        """Walk down a tree, write the decisions into ``row``, and grow the tree by a node: the nodes on the way."""
        path, node = [root], root
        for hole in order.tolist():
            most = min(int(space.sizes[hole]), math.ceil(2 * math.sqrt(node.visits + 1)))
            if len(node.children) < most:
                value = int(row[hole])
                if value in node.children:
                    value = int(rng.integers(space.sizes[hole]))
                row[hole] = value
                new = value not in node.children
                node = node.children.setdefault(value, _Node())
                path.append(node)
                if new:
                    break
                continue
            value, node = _most_promising(node)
            row[hole] = value
            path.append(node)
        return path


@dataclass
class _Node:
    """
    Attributes:
        best: the highest score of a program below.
    """

    visits: int = 0
    best: float = -math.inf
    children: dict[int, _Node] = field(default_factory=dict)


def _most_promising(node: _Node) -> tuple[int, _Node]:
    children = list(node.children.items())
    ranked = sorted(range(len(children)), key=lambda at: children[at][1].best)
    rank = {at: (place + 1) / len(children) for place, at in enumerate(ranked)}
    log = math.log(max(node.visits, 2))

    def bound(at: int) -> float:
        return rank[at] + _EXPLORE * math.sqrt(log / max(children[at][1].visits, 1))

    return children[max(range(len(children)), key=bound)]


def protuner(problem: SearchProblem, model: CostModel, rng: np.random.Generator) -> EvolutionarySearch:
    """ProTuner's 15 trees with random and one with greedy rollouts; the sketches share a batch by the bandit."""
    return EvolutionarySearch(problem, model, rng, EvolutionarySettings(explorer=TreeSearch(), selector=top))
