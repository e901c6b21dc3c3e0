"""What cost models look at."""

from collections.abc import Sequence
from typing import Any

import numpy as np

import ansorlite as al
from ansorlite import te
from ansorlite.cost_model import GBDT, Group
from ansorlite.cost_model.shared import Pool, SharedModel
from ansorlite.cost_model.views import View, seen, view_of
from ansorlite.features import NUM_FEATURES
from ansorlite.features.loop_tree import TREE, Kind
from ansorlite.features.programs import ProgramSpace
from ansorlite.features.tokens import TOKEN
from ansorlite.search import EvolutionarySearch, Observation, SearchProblem
from ansorlite.spaces.derivation import derive
from ansorlite.target import host


class Looking:
    """Likes whatever has a higher sum of a view; keeps what it saw."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.widths: set[int] = set()

    def fit(self, groups: Sequence[Group]) -> None:
        self.widths |= {group.features.shape[2] for group in groups}

    def predict(self, features: np.ndarray[Any, Any]) -> Any:
        self.widths.add(features.shape[2])
        return features.sum(axis=(1, 2))


def matmul(names: str = "ABC", axes: str = "ijk") -> al.Task:
    a, b = te.placeholder((24, 20), name=names[0]), te.placeholder((20, 28), name=names[1])
    k = te.reduce_axis(20, name=axes[2])
    product = te.compute((24, 28), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name=names[2])
    return al.Task([a, b, product], host(1))


def test_a_search_shows_its_model_what_it_looks_at() -> None:
    problem = SearchProblem(tuple(map(ProgramSpace, derive(matmul())[:1])))
    for view, width in ((View.FEATURES, NUM_FEATURES), (View.TOKENS, len(TOKEN)), (View.LOOPS, len(TREE))):
        model = Looking(view)
        search = EvolutionarySearch(problem, model, np.random.default_rng(0))
        search.observe([Observation(candidate, 1e-3) for candidate in search.propose(4)])
        assert search.propose(4)
        assert model.widths == {width}


def test_a_model_without_a_view_sees_features_and_a_shared_one_what_its_pool_sees() -> None:
    assert view_of(GBDT()) is View.FEATURES
    assert view_of(SharedModel(Pool(), "a")) is View.FEATURES
    assert view_of(SharedModel(Pool(model=Looking(View.LOOPS)), "a")) is View.LOOPS


def test_names_are_not_seen() -> None:
    """Programs of equal computations look alike, whatever their tensors and axes are called."""
    both = [derive(task) for task in (matmul(), matmul("XYZ", "pqr"))]
    for one, other in zip(*both, strict=True):
        rows = ProgramSpace(one).space.sample(5, np.random.default_rng(0))
        for view in View:
            np.testing.assert_array_equal(*(seen(view, ProgramSpace(sketch).programs(rows)) for sketch in (one, other)))


def test_a_tree_is_one_array() -> None:
    space = ProgramSpace(derive(matmul())[0])
    programs = space.programs(space.space.sample(5, np.random.default_rng(0)))
    array, tree = seen(View.LOOPS, programs), programs.loops
    assert array.shape == (5, len(tree.kinds), len(TREE))
    np.testing.assert_array_equal(array[3, :, 0], tree.parents)
    kinds = list(Kind)
    assert tuple(kinds[at] for at in array[2, :, 1 : 1 + len(Kind)].argmax(axis=1)) == tree.kinds
    np.testing.assert_array_equal(array[:, :, 1 + len(Kind) :], tree.values)
