"""Plain named values as a space, so that every strategy here can search whatever a callable measures."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ansorlite.errors import ArgumentError
from ansorlite.features.loop_tree import LoopTree
from ansorlite.search.protocol import SearchProblem
from ansorlite.sketch.candidate import Candidate
from ansorlite.sketch.directions import Directions

Rows: TypeAlias = NDArray[np.int64]
#: What a knob may be set to.
Value: TypeAlias = int | float | str | bool
#: A setting of all knobs, by name.
Setting: TypeAlias = Mapping[str, Value]
#: Says of the knobs that its parameters name whether they go together.
Condition: TypeAlias = Callable[..., bool]

#: A space may have so many legal settings: they are all written down.
MOST: Final = 1_000_000


class KnobSpace:
    """The settings of named knobs that keep all constraints: a :class:`~ansorlite.sketch.space.Space`.

    A constraint is checked as soon as the knobs that it names are set, so that what it forbids is not walked through.
    """

    def __init__(self, choices: Mapping[str, Sequence[Value]], constraints: Sequence[Condition] = ()) -> None:
        """
        Raises:
            ArgumentError: a knob has no values or one of them twice; a constraint names no knob; no setting keeps all of them, or
                more than a million do.
        """
        for name, values in choices.items():
            if not values or len(set(values)) < len(values):
                raise ArgumentError(f"knob {name!r} has the values {list(values)!r}; give one or more, each once")
        self.choices = {name: tuple(values) for name, values in choices.items()}
        self._rows = np.array(list(self._legal(list(constraints))), np.int64).reshape(-1, len(choices))
        if not len(self._rows):
            raise ArgumentError(f"the constraints leave no setting of the knobs {', '.join(choices)}; loosen one")
        self._codes = self._code(self._rows)

    def _legal(self, constraints: Sequence[Condition]) -> Iterator[tuple[int, ...]]:
        """Every legal row once, in order."""
        names = list(self.choices)
        due: list[list[tuple[Condition, list[str]]]] = [[] for _ in names]
        for constraint in constraints:
            wanted = list(inspect.signature(constraint).parameters)
            unknown = [name for name in wanted if name not in names]
            if unknown or not wanted:
                said = f"a constraint names {unknown or 'no knob'}"
                raise ArgumentError(f"{said}; its parameters must be among: {', '.join(names)}")
            due[max(map(names.index, wanted))].append((constraint, wanted))
        for count, row in enumerate(self._extended((), names, due)):
            if count == MOST:
                raise ArgumentError(f"the knobs {', '.join(names)} have more than {MOST:,} legal settings; narrow their ranges")
            yield row

    def _extended(
        self, row: tuple[int, ...], names: list[str], due: list[list[tuple[Condition, list[str]]]]
    ) -> Iterator[tuple[int, ...]]:
        if len(row) == len(names):
            yield row
            return
        for position in range(len(self.choices[names[len(row)]])):
            longer = (*row, position)
            value = {name: self.choices[name][at] for name, at in zip(names, longer, strict=False)}
            if all(condition(**{name: value[name] for name in wanted}) for condition, wanted in due[len(row)]):
                yield from self._extended(longer, names, due)

    def __len__(self) -> int:
        return len(self._rows)

    @cached_property
    def sizes(self) -> Rows:
        """``(knobs,)``: the number of values of each."""
        return np.array([len(values) for values in self.choices.values()], np.int64)

    @property
    def order(self) -> tuple[int, ...]:
        """As they were given."""
        return tuple(range(len(self.choices)))

    @cached_property
    def directions(self) -> Directions:
        """One value up or down."""
        return Directions.of(self.sizes.tolist())

    def _code(self, rows: Rows) -> Rows:
        """``(n,)``: a number for each row, ascending in their order."""
        code = np.zeros(len(rows), np.int64)
        for column, size in enumerate(self.sizes.tolist()):
            code = code * size + rows[:, column]
        return code

    def sample(self, n: int, rng: np.random.Generator) -> Rows:
        """``n`` legal rows, each as likely as any other."""
        return self._rows[rng.integers(len(self._rows), size=n)]

    def canonical(self, rows: Rows) -> Rows:
        """The rows themselves."""
        return rows

    def valid(self, rows: Rows) -> NDArray[np.bool_]:
        """``(n,)``: whether a row is legal."""
        codes = self._code(rows)
        at = np.minimum(np.searchsorted(self._codes, codes), len(self._codes) - 1)
        return np.asarray(self._codes[at] == codes)

    def neighbours(self, row: Rows) -> Rows:
        """The legal rows one step away; of names, all others are one step away."""
        found = []
        for column, values in enumerate(self.choices.values()):
            ordered = all(isinstance(value, int | float) for value in values)
            near = (row[column] - 1, row[column] + 1) if ordered else range(len(values))
            for value in near:
                if 0 <= value < len(values) and value != row[column]:
                    moved = row.copy()
                    moved[column] = value
                    found.append(moved)
        rows = np.array(found, np.int64).reshape(-1, len(self.choices))
        return rows[self.valid(rows)]

    def mutate(self, rows: Rows, rng: np.random.Generator) -> Rows:
        """Each row with one knob set to any other value."""
        result, open_ = rows.copy(), np.flatnonzero(self.sizes > 1)
        if len(open_):
            picks = rng.choice(open_, size=len(rows))
            at = np.arange(len(rows))
            size = self.sizes[picks]
            result[at, picks] = (rows[at, picks] + 1 + (rng.random(len(rows)) * (size - 1)).astype(np.int64)) % size
        return result

    def crossover(self, a: Rows, b: Rows, rng: np.random.Generator) -> Rows:
        """Rows that take each knob from the row of ``a`` or of ``b``, evenly."""
        return np.where(rng.random(a.shape) < 0.5, a, b)

    def embed(self, rows: Rows) -> NDArray[np.float64]:
        """``(n, knobs)``: log2 of 1 + a number that is not below 0, else the position of the value."""
        return np.stack([table[rows[:, column]] for column, table in enumerate(self._coordinates)], axis=1)

    @cached_property
    def _coordinates(self) -> list[NDArray[np.float64]]:
        found = []
        for values in self.choices.values():
            numbers = [float(value) for value in values if isinstance(value, int | float)]
            positive = len(numbers) == len(values) and min(numbers) >= 0
            found.append(np.log2(1 + np.array(numbers)) if positive else np.arange(len(values), dtype=np.float64))
        return found

    def complete(self, prefixes: Rows, rng: np.random.Generator) -> Rows:
        """Rows that begin with the columns of ``prefixes``; the rest is that of a random legal row."""
        rows = self.sample(len(prefixes), rng)
        rows[:, : prefixes.shape[1]] = prefixes
        return rows

    def setting(self, row: Sequence[int]) -> dict[str, Value]:
        """What a row sets the knobs to."""
        return {name: values[at] for (name, values), at in zip(self.choices.items(), row, strict=True)}


@dataclass(frozen=True, eq=False)
class _Settings:
    """What is known of some rows: their knobs, as coordinates, and as the features of one statement; there are no programs."""

    knobs: NDArray[np.float64]

    @property
    def features(self) -> NDArray[np.float64]:
        return self.knobs[:, None, :]

    @property
    def tokens(self) -> NDArray[np.float64]:
        """
        Raises:
            ArgumentError: always.
        """
        raise ArgumentError(_NO_PROGRAM)

    @property
    def loops(self) -> LoopTree:
        """
        Raises:
            ArgumentError: always.
        """
        raise ArgumentError(_NO_PROGRAM)


_NO_PROGRAM: Final = "knobs have neither traces nor loops; take a cost model that looks at features or knobs"


@dataclass(frozen=True, eq=False)
class KnobSettings:
    """The settings of a space as a strategy sees programs."""

    space: KnobSpace

    def programs(self, rows: Rows) -> _Settings:
        """What is known of ``rows``."""
        return _Settings(self.space.embed(rows))

    def candidate(self, row: tuple[int, ...]) -> Candidate:
        """A setting as text: JSON."""
        return Candidate(json.dumps(self.space.setting(row)))

    def row_of(self, candidate: Candidate) -> tuple[int, ...] | None:
        """The row of a setting; ``None`` if it is none of this space."""
        try:
            said: Any = json.loads(candidate.trace)
        except ValueError:
            return None
        if not isinstance(said, dict) or set(said) != set(self.space.choices):
            return None
        row = [_position(values, said[name]) for name, values in self.space.choices.items()]
        known = tuple(at for at in row if at is not None)
        return known if len(known) == len(row) and self.space.valid(np.array([known], np.int64)).all() else None


def _position(values: tuple[Value, ...], value: object) -> int | None:
    return next((at for at, each in enumerate(values) if type(each) is type(value) and each == value), None)


def problem_of(space: KnobSpace) -> SearchProblem:
    """The search for the best setting, for any strategy."""
    return SearchProblem((KnobSettings(space),))
