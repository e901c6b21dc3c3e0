"""A graph in the making: the values there are, for the next node to read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

import numpy as np
from onnx import helper

from tests.fuzz.graphs.values import Array, draw, draw_dtype, numpy_dtype

#: Elements that a value may have.
MOST: Final = 700

#: How often a value that is there is read, where one fits.
_REUSE: Final = 0.85

#: How often an array has an extent of 0.
_EMPTY: Final = 0.01


class NoFitError(Exception):
    """The operator cannot be used here; another one is drawn."""


class Role(Enum):
    """How the model knows a value that no node computes."""

    INPUT = "input"
    INITIALIZER = "initializer"
    CONSTANT = "constant"


@dataclass(frozen=True, eq=False)
class Leaf:
    """A value that no node computes.

    Attributes:
        parameter: it says what a node does (axes, sizes, scales), rather than being what it does it to.
        low, high: its elements' range, if it has one.
    """

    array: Array
    role: Role
    parameter: bool
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Made:
    """A node, before its results have names.

    Attributes:
        inputs: names; empty where an optional input is left out.
    """

    operator: str
    inputs: Sequence[str]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    outputs: int = 1


@dataclass
class Draft:
    """
    Attributes:
        extents: those of open dimensions, by name; leaves have them oftener.
        computed: results of nodes.
        leaves: other values.
        unread: results that no node reads.
    """

    rng: np.random.Generator
    opset: int
    extents: Mapping[str, int]
    computed: dict[str, Array] = field(default_factory=dict)
    leaves: dict[str, Leaf] = field(default_factory=dict)
    unread: set[str] = field(default_factory=set)
    names: int = 0

    # Values -------------------------------------------------------------------------------------------------------

    def __getitem__(self, name: str) -> Array:
        return self.computed[name] if name in self.computed else self.leaves[name].array

    def rank(self, name: str) -> int:
        return self[name].ndim

    def dtype(self, name: str) -> str:
        return self[name].dtype.name

    def pick(
        self,
        dtypes: Sequence[str],
        rank: tuple[int, int] = (0, 5),
        where: Callable[[Array], bool] | None = None,
        low: float | None = None,
        high: float | None = None,
    ) -> str:
        """A value with one of ``dtypes`` and a rank within ``rank``: one that is there, or a new one.

        Args:
            where: what it must be like, too; then it is one that is there.
            low, high: the range of a new one's elements.

        Raises:
            NoFitError: there is none.
        """
        found = [name for name in (*self.computed, *self.leaves) if self._fits(name, dtypes, rank, where)]
        if found and (where is not None or self.rng.random() < _REUSE):
            weights = np.array([self._weight(name) for name in found])
            return found[self.rng.choice(len(found), p=weights / weights.sum())]
        if where is not None:
            raise NoFitError
        return self.fresh(draw_dtype(self.rng, dtypes), self.shape(*rank), low, high)

    def _fits(self, name: str, dtypes: Sequence[str], rank: tuple[int, int], where: Callable[[Array], bool] | None) -> bool:
        array = self[name]
        if name in self.leaves and self.leaves[name].parameter:
            return False
        return array.dtype.name in dtypes and rank[0] <= array.ndim <= rank[1] and (where is None or where(array))

    def _weight(self, name: str) -> float:
        """Results that nothing reads yet are read first; what is infinite, not a number or huge tells little."""
        array = self[name]
        weight = 8.0 if name in self.unread else 2.0 if name in self.computed else 1.0
        with np.errstate(all="ignore"):
            tame = bool(np.all(np.abs(array.astype(np.float64)) < 1e4)) and array.size > 0
        return weight if tame else weight / 10

    def like(self, name: str) -> str:
        """A value of the same shape and dtype."""
        return self.exactly(self[name].shape, self.dtype(name))

    def exactly(self, shape: Sequence[int], dtype: str) -> str:
        """A value of that shape and dtype: one that is there, or a new one."""
        try:
            if self.rng.random() < 0.6:
                return self.pick((dtype,), where=lambda array: array.shape == tuple(shape))
        except NoFitError:
            pass
        return self.fresh(dtype, shape)

    def broadcast(self, name: str, dtype: str | None = None, one_way: bool = False) -> str:
        """A value that can be broadcast together with ``name``; if ``one_way``, to its shape."""
        shape, wanted = self[name].shape, dtype or self.dtype(name)

        def fits(array: Array) -> bool:
            try:
                full = np.broadcast_shapes(shape, array.shape)
            except ValueError:
                return False
            return int(np.prod(full)) <= MOST and len(full) <= 5 and (full == shape or not one_way)

        if self.rng.random() < 0.6:
            try:
                return self.pick((wanted,), where=fits)
            except NoFitError:
                pass
        other = [1 if self.rng.random() < 0.3 else extent for extent in shape[int(self.rng.integers(0, len(shape) + 1)) :]]
        if self.rng.random() < 0.7:
            other = [1 if self.rng.random() < 0.2 else extent for extent in shape]
        return self.fresh(wanted, other)

    # New values ---------------------------------------------------------------------------------------------------

    def shape(self, least: int, most: int) -> tuple[int, ...]:
        rank = int(self.rng.integers(least, most + 1))
        extents = [int(self.rng.choice([1, 2, 2, 4, 5, 6, 8, 9])) for _ in range(rank)]
        for extent in self.extents.values():
            if rank and self.rng.random() < 0.7:
                extents[int(self.rng.integers(0, rank))] = extent
        if rank and self.rng.random() < _EMPTY:
            extents[int(self.rng.integers(0, rank))] = 0
        while np.prod(extents) > MOST // 2:
            extents[int(np.argmax(extents))] = 2
        return tuple(extents)

    def fresh(self, dtype: str, shape: Sequence[int], low: float | None = None, high: float | None = None) -> str:
        role = Role(self.rng.choice([role.value for role in Role], p=[0.65, 0.3, 0.05]))
        return self._add(Leaf(draw(self.rng, dtype, shape, low, high), role, False, low, high))

    def parameter(self, value: Any, dtype: str = "int64") -> str:
        """A value that says what a node does."""
        role = Role(self.rng.choice([role.value for role in Role], p=[0.1, 0.8, 0.1]))
        return self._add(Leaf(np.asarray(value, numpy_dtype(dtype)), role, True))

    def _add(self, leaf: Leaf) -> str:
        self.names += 1
        name = f"{'p' if leaf.parameter else 'x'}{self.names}"
        self.leaves[name] = leaf
        return name

    # Choices ------------------------------------------------------------------------------------------------------

    def chance(self, probability: float = 0.5) -> bool:
        return bool(self.rng.random() < probability)

    def choice(self, items: Sequence[Any]) -> Any:
        return items[int(self.rng.integers(0, len(items)))]

    def integer(self, low: int, high: int) -> int:
        """Both included."""
        return int(self.rng.integers(low, high + 1))

    def axis(self, name: str, negative: bool = True) -> int:
        """A dimension of a value.

        Raises:
            NoFitError: it has none.
        """
        rank = self.rank(name)
        if not rank:
            raise NoFitError
        axis = self.integer(0, rank - 1)
        return axis - rank if negative and self.chance(0.4) else axis

    def axes(self, name: str, least: int = 1) -> list[int]:
        """Distinct dimensions of a value, in any order."""
        rank = self.rank(name)
        if rank < least:
            raise NoFitError
        chosen = self.rng.permutation(rank)[: self.integer(least, rank)]
        return [int(axis) - rank if self.chance(0.3) else int(axis) for axis in chosen]

    def numbers(self, **ranges: tuple[float, float]) -> dict[str, float]:
        """Some of the attributes, each within its range; the others keep their default."""
        return {name: float(self.rng.uniform(*ends)) for name, ends in ranges.items() if self.chance(0.7)}

    def flags(self, *names: str) -> dict[str, int]:
        """Some of the attributes, each 0 or 1."""
        return {name: self.integer(0, 1) for name in names if self.chance(0.7)}


def number_of(dtype: str) -> int:
    """ONNX's number of a dtype."""
    return int(helper.np_dtype_to_tensor_dtype(numpy_dtype(dtype)))
