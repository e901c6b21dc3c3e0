"""Real programs through the whole road: sketches of the target's rules, and of a user's own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ansorlite.api.space import space_of
from ansorlite.errors import ArgumentError
from ansorlite.measure import Measurer, MeasureSettings
from ansorlite.records import Outcome
from ansorlite.sketch.candidate import NAIVE
from ansorlite.sketch.tile_space import TileSpace
from ansorlite.spaces.builders import Derived, sketches_of
from ansorlite.spaces.derivation import derive
from tests.unit.measure.tasks import matmul

MY_RULES = """
from ansorlite.analysis.predicates import has_data_reuse
from ansorlite.sketch.rules import CPU_RULES
from ansorlite.sketch.state import Rule, State, Applicability
from ansorlite.sketch.tiling import multi_level_tile, natural_lane


def product(state: State) -> Applicability:
    wanted = has_data_reuse(state.stage) and not state.is_settled(state.stage)
    return Applicability.APPLY if wanted else Applicability.SKIP


def flat_nest(state: State) -> tuple[State, ...]:
    schedule = state.fork()
    bands = multi_level_tile(schedule, state.stage, "SRS", natural_lane(state.stage), state.target, perfect=True)
    return (state.visited(schedule, bands),)


MINE = (Rule("FlatTiling", product, flat_nest), *CPU_RULES)
SOMETHING_ELSE = [1, 2]
"""


@pytest.fixture
def place(tmp_path: Path) -> str:
    (tmp_path / "mine.py").write_text(MY_RULES)
    return f"{tmp_path}/mine.py"


@pytest.mark.parametrize("own", [False, True])
def test_naive_and_sampled_programs_are_right_and_timed(own: bool, place: str) -> None:
    task = matmul(24)
    space = space_of(f"{place}:MINE") if own else Derived()
    assert space is not None
    sketches = sketches_of(task, space)
    assert own == (len(sketches) > len(derive(task)))
    rng = np.random.default_rng(0)
    candidates = [NAIVE, *(sketch.candidate(TileSpace(sketch).sample(1, rng)[0]) for sketch in sketches)]
    settings = MeasureSettings(builders=1, repeat_seconds=0.0001, slow_factor=1e9)
    with Measurer(task.target, settings) as measurer:
        measured = list(measurer.measure(task, candidates))
    assert [m.candidate for m in measured] == candidates
    for measurement in measured:
        assert (measurement.outcome, measurement.error) == (Outcome.OK, "")
        assert measurement.checked
        assert measurement.latency is not None


def test_spaces_that_are_not_there_are_named(place: str) -> None:
    for wrong, message in [
        (f"{place}:SOMETHING_ELSE", r"\[1, 2\] is no space: give a function that schedules"),
        (f"{place}:NOTHING", "has no 'NOTHING'; it has: .*MINE, SOMETHING_ELSE"),
        ("/no/such/file.py:RULES", "there is no file /no/such/file.py"),
        ("no_such_module:RULES", "no_such_module cannot be imported"),
        ("RULES", "does not name a space"),
    ]:
        with pytest.raises(ArgumentError, match=message):
            space_of(wrong)
