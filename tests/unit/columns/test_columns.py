"""Columns: what is recorded once gives for a population what plain numbers give row by row."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansorlite.columns.arithmetic import both, ceil, either, equal, floor, log2, low_bit, maximum, minimum, negated, select, where
from ansorlite.columns.compound import Compound
from ansorlite.columns.program import ColumnProgram
from ansorlite.columns.tape import Column, Number, Tape

TABLES = ([1, 2, 3, 5, 8, 40], [7, 1, 64, 2], [3, 3, 3])
OPERATIONS: dict[str, Callable[..., Number]] = {
    "+": lambda x, y: x + y,
    "-": lambda x, y: x - y,
    "*": lambda x, y: x * y,
    "/": lambda x, y: x / maximum(y, 1),
    "floor": lambda x, y: floor(x / maximum(y, 1)),
    "ceil": lambda x, y: ceil(x / maximum(y, 1)),
    "min": minimum,
    "max": maximum,
    "<": lambda x, y: where(x < y, x, y + 1),
    "<=": lambda x, y: where(x <= y, y, 2),
    "==": lambda x, y: where(negated(equal(x, y)), x, 3),
    "flags": lambda x, y: both(x > 2, either(y > 2, x >= y)),
    "select": lambda x, y: select([x, y, 5, x], minimum(maximum(floor(y), 0), 3)),
    "select of many": lambda x, y: select([x, y, 5, x + y, y], minimum(maximum(floor(y), 0), 4)) + 1,
    "log2": lambda x, y: log2(1 + maximum(x, 0)) + y,
    "low bit": lambda x, y: low_bit(maximum(floor(minimum(x, 4096)), 1)) + y,
}

#: Every operation takes two earlier values: those of the holes, some constants, and results.
recipes = st.lists(st.tuples(st.sampled_from(sorted(OPERATIONS)), st.integers(0, 40), st.integers(0, 40)), max_size=12)


def values(recipe: Sequence[tuple[str, int, int]], gather: Callable[[int, list[int]], Number]) -> list[Number]:
    found = [*(gather(hole, table) for hole, table in enumerate(TABLES)), 0, 1, 4.5]
    for operation, a, b in recipe:
        found.append(OPERATIONS[operation](found[a % len(found)], found[b % len(found)]))
    return found


def chosen(row: Sequence[int]) -> Callable[[int, list[int]], Number]:
    return lambda hole, table: table[row[hole]]


@settings(deadline=None)
@given(recipes, st.integers(1, 150))
def test_a_population_is_its_rows_one_by_one(recipe: list[tuple[str, int, int]], n: int) -> None:
    rows = np.random.default_rng(n).integers([len(table) for table in TABLES], size=(n, len(TABLES)))
    tape = Tape()
    outputs = values(recipe, tape.gather)
    together = ColumnProgram(tape, outputs).run(rows)
    alone = [values(recipe, chosen(row)) for row in rows.tolist()]
    np.testing.assert_allclose(together.T, np.array(alone, dtype=np.float64), rtol=1e-12, atol=1e-12)
    for number, output in enumerate(outputs):
        low, high = (output.low, output.high) if isinstance(output, Column) else (output, output)
        assert (together[number] >= low - 1e-9 * abs(low)).all()
        assert (together[number] <= high + 1e-9 * abs(high)).all()


def test_equal_operations_are_one_column() -> None:
    tape = Tape()
    x, y = tape.gather(0, [1, 2]), tape.gather(1, [3, 5])
    assert x + y is y + x
    assert tape.gather(0, [1, 2]) is x
    assert len(ColumnProgram(tape, [x + y, y + x, x * 1])) == 3


def test_what_the_bounds_know_is_not_computed() -> None:
    tape = Tape()
    x, y = tape.gather(0, [1, 2]), tape.gather(1, [3, 5])
    assert tape.gather(2, [4, 4]) == 4
    assert minimum(x, y) is x
    assert (x < y) == 1
    assert equal(x, y) == 0
    assert where(x > y, x, y) is y
    assert x - x == 0


def test_a_choice_is_one_operation() -> None:
    tape = Tape()
    x, y, which = tape.gather(0, [1, 2]), tape.gather(1, [3, 5]), tape.gather(2, [1, 2, 3])
    chosen = select([x, y, 7, x * y, y], which)
    assert len(ColumnProgram(tape, [chosen])) == 5
    rows = np.array([[0, 1, 0], [1, 0, 1], [1, 1, 2]])
    assert ColumnProgram(tape, [chosen]).run(rows).tolist() == [[5, 7, 10]]
    assert select([x, y, 7], which - which) is x
    assert select([x, y, y, y], which) is y


def test_no_rows() -> None:
    tape = Tape()
    assert ColumnProgram(tape, [tape.gather(0, [1, 2]), 7]).run(np.zeros((0, 1), np.int64)).shape == (2, 0)


def test_a_column_is_no_number() -> None:
    column = Tape().gather(0, [1, 2])
    with pytest.raises(TypeError, match="not one flag"):
        bool(column)
    with pytest.raises(TypeError, match="not one number"):
        int(column)  # type: ignore[arg-type]


#: How many have been counted, and their product; then a mean and a bit of each.
FOLD = Compound(
    (0, 1),
    lambda count, product, x, y: (count + where(x > 2, 1, 0), product * maximum(x, y)),
    2,
    lambda count, product, scale: (count * scale, minimum(product / scale, 1000), log2(1 + product)),
    1,
)
ANYTHING = ((-np.inf, np.inf),) * 3


def folded(holes: Sequence[Number], items: int) -> list[Number]:
    """Two folds, of which the second one takes what the first one gives."""
    first = FOLD([(holes[item % 3], holes[0]) for item in range(items)], (holes[1],), ANYTHING)
    return [*first, *FOLD([(first[1], 2)] * items, (holes[2],), ANYTHING)]


@pytest.mark.parametrize("items", range(5))
def test_a_compound_operation_of_a_population_is_that_of_its_rows(items: int) -> None:
    rows = np.random.default_rng(items).integers([len(table) for table in TABLES], size=(150, len(TABLES)))
    tape = Tape()
    outputs = folded([tape.gather(hole, table) for hole, table in enumerate(TABLES)], items)
    together = ColumnProgram(tape, outputs).run(rows)
    alone = [folded([table[choice] for table, choice in zip(TABLES, row, strict=True)], items) for row in rows.tolist()]
    np.testing.assert_allclose(together.T, np.array(alone, dtype=np.float64), rtol=1e-12, atol=1e-12)


def test_equal_compound_operations_are_one() -> None:
    tape = Tape()
    x, y = tape.gather(0, [1, 2]), tape.gather(1, [3, 5])
    assert FOLD([(x, y)], (3,), ANYTHING) is FOLD([(x, y)], (3,), ANYTHING)
    assert FOLD([(1, 3)], (3,), ANYTHING) == (0, 1, 2)
    only_one_result = ColumnProgram(tape, [FOLD([(x, y)], (3,), ANYTHING)[1]])
    assert len(only_one_result) == 3
