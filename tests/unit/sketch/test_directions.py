"""Directions of rows: one step and back."""

import numpy as np
import pytest

from ansorlite.schedule.tiles import tile_table
from ansorlite.sketch.directions import Directions


@pytest.mark.parametrize(
    ("extent", "parts", "perfect"), [(60, 3, True), (64, 4, True), (197, 3, False), (96, 2, False), (1, 2, True)]
)
def test_back_undoes_a_step_wherever_it_leads_anywhere(extent: int, parts: int, perfect: bool) -> None:
    table = tile_table(extent, parts, perfect)
    directions = Directions.of([4, table, 1])
    rows = np.stack([np.arange(table.rows) % 4, np.arange(table.rows), np.zeros(table.rows, np.int64)], axis=1)
    moves = 0
    for direction in range(len(directions)):
        there = directions.step(rows, np.full(len(rows), direction))
        again = directions.step(there, np.full(len(rows), directions.inverse(direction)))
        moved = (there != rows).any(axis=1)
        assert (again[moved] == rows[moved]).all()
        assert ((there != rows).sum(axis=1) <= 1).all()
        assert directions.inverse(directions.inverse(direction)) == direction
        moves += int(moved.sum())
    assert moves > 0


def test_a_tile_s_direction_moves_one_factor_from_one_level_to_another() -> None:
    table = tile_table(48, 3, True)
    directions = Directions.of([table])
    assert len(directions) == 3 * 2 * 2  # pairs of levels, factors 2 and 3
    for row in range(table.rows):
        for direction, (there,) in enumerate(directions.around(np.array([row]))):
            if there != row:
                ratio = table.trips[there] / table.trips[row]
                assert sorted(np.round(ratio, 6)) in ([0.5, 1, 2], sorted(np.round([1 / 3, 1, 3], 6).tolist())), direction


def test_every_tile_is_reached() -> None:
    table = tile_table(60, 3, True)
    directions = Directions.of([table])
    reached, waiting = {0}, [0]
    while waiting:
        for there in directions.around(np.array([waiting.pop()]))[:, 0].tolist():
            if there not in reached:
                reached.add(there)
                waiting.append(there)
    assert reached == set(range(table.rows))
