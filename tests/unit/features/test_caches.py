"""What caches keep, of accesses that are written down here."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ansorlite.features.assemble import assemble
from ansorlite.features.facts import AccessFacts, Operations, StatementFacts
from ansorlite.features.names import COLUMN
from ansorlite.target import Target
from tests.targets import WIDE


def rows_of_a_matrix(
    repeats: int, rows: int, columns: int, length: int, parallel: bool = False, target: Target = WIDE
) -> dict[str, float]:
    """Features of a walk over ``rows`` by ``columns`` of a float32 matrix of ``length`` columns, ``repeats`` times."""
    never = [False] * 3
    widths = ([rows, rows, 1, 1], [columns, columns, columns, 1])
    access = AccessFacts(widths, (rows, length), 4, [False, True, True], 1, write=False, renewed=never)
    trips, vector, shared = [repeats, rows, columns], [False, False, True], [False, parallel, False]
    facts = StatementFacts(
        "walk", trips, shared, never, vector, never, 16, False, False, False, {frozenset((0,)): Operations(cheap=1)}, (access,)
    )
    features = np.array(assemble(facts, target), dtype=np.float64)
    names = ("l1_traffic", "l2_traffic", "l1_runs", "l2_runs", "pages")
    return {name: float(2.0 ** features[COLUMN[name]] - 1.0) for name in names}


@pytest.mark.parametrize("caches", [{"l1": 4096}, {"l2": 1 << 16}])
def test_caches_of_one_way_have_traffic_too(caches: dict[str, int]) -> None:
    assert np.isfinite(list(rows_of_a_matrix(10, 64, 16, 1040, target=replace(WIDE, **caches)).values())).all()


def test_what_fits_is_fetched_once() -> None:
    assert rows_of_a_matrix(10, 64, 16, 1040)["l1_traffic"] == pytest.approx(64 * 64)


def test_rows_a_power_of_two_apart_displace_one_another() -> None:
    found = rows_of_a_matrix(10, 64, 16, 1024)
    assert found["l1_traffic"] == pytest.approx(10 * 64 * 64)
    assert found["l2_traffic"] == pytest.approx(64 * 64)


@pytest.mark.parametrize(("rows", "times"), [(0, 1), (1, (1 + 10) / 2), (2, 10)])
@pytest.mark.parametrize(("cache", "ways", "length"), [("l1", 8, 1 << 10), ("l2", 16, 1 << 14)])
def test_one_way_or_two_are_not_counted_on(cache: str, ways: int, length: int, rows: int, times: float) -> None:
    """All rows begin in one set, and are two fewer than it has room for, or more."""
    rows += ways - 2
    assert rows_of_a_matrix(10, rows, 16, length)[f"{cache}_traffic"] == pytest.approx(times * rows * 64)


def test_a_run_of_lines_is_as_long_as_the_rows_are_contiguous() -> None:
    assert rows_of_a_matrix(1, 64, 16, 1040)["l1_runs"] == pytest.approx(64)
    assert rows_of_a_matrix(1, 64, 64, 1040)["l1_runs"] == pytest.approx(64)
    assert rows_of_a_matrix(1, 64, 64, 64)["l1_runs"] == pytest.approx(1)


def test_runs_go_on_from_loop_to_loop() -> None:
    assert rows_of_a_matrix(1, 64, 16, 1040)["l2_runs"] == pytest.approx(64)
    assert rows_of_a_matrix(1, 64, 64, 64)["l2_runs"] == pytest.approx(1)
    assert rows_of_a_matrix(1, 64, 64, 64, parallel=True)["l2_runs"] == pytest.approx(1)


def columns_by_blocks(rows: int, blocks: int, target: Target = WIDE, matrices: int = 1, again: int = 0) -> float:
    """Runs of a walk over blocks of 16 columns of so many rows, all of one block before the next.

    ``matrices``: that are walked side by side; ``again``: rows of 16 columns of another one, which are read with each block.
    """
    never, columns = [False] * 3, 16 * blocks
    widths = ([rows, rows, 1, 1], [columns, 16, 16, 1])
    walked = [AccessFacts(widths, (rows, columns + 16), 4, [True] * 3, 1, write=False, renewed=never) for _ in range(matrices)]
    if again:
        widths = ([again, again, 1, 1], [16, 16, 16, 1])
        walked.append(AccessFacts(widths, (again, 32), 4, [False, True, True], 1, write=False, renewed=never))
    sums = {frozenset(range(len(walked))): Operations(cheap=1)}
    kinds = (never, [False, True, False], [False, False, True], never)
    facts = StatementFacts("walk", [blocks, rows, 16], *kinds, 16, False, False, False, sums, tuple(walked))
    return float(2.0 ** np.array(assemble(facts, target), dtype=np.float64)[COLUMN["l2_runs"]] - 1.0)


def test_a_few_runs_are_walked_side_by_side() -> None:
    """What fetches ahead follows so many of them; of more, each begins anew with every block."""
    eight = replace(WIDE, machine=replace(WIDE.machine, streams=8.0))
    assert columns_by_blocks(16, 8) == pytest.approx(16)
    assert columns_by_blocks(17, 8) == pytest.approx(17 * 8)
    assert columns_by_blocks(9, 8, eight) == pytest.approx(9 * 8)


def test_runs_of_all_that_is_fetched_are_side_by_side() -> None:
    assert columns_by_blocks(8, 8, matrices=2) == pytest.approx(2 * 8)
    assert columns_by_blocks(9, 8, matrices=2) == pytest.approx(2 * 9 * 8)
    # Of what stays in the cache, one block of eight is fetched.
    assert columns_by_blocks(15, 8, again=8) == pytest.approx(15 + 8)
    assert columns_by_blocks(15, 8, again=9) == pytest.approx(15 * 8 + 9)


def test_more_pages_than_a_core_remembers_are_looked_for_again() -> None:
    assert rows_of_a_matrix(10, 32, 16, 1040)["pages"] == pytest.approx(32)
    assert rows_of_a_matrix(10, 128, 16, 1040)["pages"] == pytest.approx(10 * 128)
    # Sixteen rows lie on one page.
    assert rows_of_a_matrix(10, 128, 16, 64)["pages"] == pytest.approx(8)


def test_runs_are_those_of_one_iteration_of_the_parallel_loop() -> None:
    """A thread takes whichever iteration comes: rows beside one another in different ones are no run."""
    assert rows_of_a_matrix(1, 64, 64, 64, parallel=True)["l1_runs"] == pytest.approx(64)


@pytest.mark.parametrize(
    ("constant", "feature", "rows", "columns"),
    [("l1_share", "l1_traffic", 64, 100), ("l2_share", "l2_traffic", 3072, 60), ("tlb_pages", "pages", 60, 16)],
)
def test_what_the_machine_holds_decides(constant: str, feature: str, rows: int, columns: int) -> None:
    machine = replace(WIDE.machine, **{constant: 0.25 * getattr(WIDE.machine, constant)})
    found = [rows_of_a_matrix(10, rows, columns, 1040, target=replace(WIDE, machine=each)) for each in (WIDE.machine, machine)]
    assert found[0][feature] < found[1][feature]
