"""Real programs through the whole road: sketches of the target's rules, and of a user's own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ansorlite.errors import ArgumentError
from ansorlite.measure import Measurer, MeasureSettings
from ansorlite.measure.rules import rules_from
from ansorlite.records import Outcome
from ansorlite.sketch.candidate import NAIVE, Candidate
from ansorlite.sketch.derivation import derive
from ansorlite.sketch.tile_space import TileSpace
from tests.unit.measure.tasks import matmul

MY_RULES = """
from ansorlite.analysis.predicates import has_data_reuse
from ansorlite.sketch.rules import CPU_RULES
from ansorlite.sketch.state import Rule, State, Verdict
from ansorlite.sketch.tiling import multi_level_tile, natural_lane


def product(state: State) -> Verdict:
    wanted = has_data_reuse(state.stage) and not state.is_settled(state.stage)
    return Verdict.APPLY if wanted else Verdict.SKIP


def flat_nest(state: State) -> tuple[State, ...]:
    nest = multi_level_tile(state.stage, "SRS", natural_lane(state.stage), state.target, perfect=True)
    return (state.visited(*nest),)


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
    rules = f"{place}:MINE" if own else None
    sketches = derive(task, None if rules is None else rules_from(rules))
    assert own == (len(sketches) > len(derive(task)))
    rng = np.random.default_rng(0)
    rows = [(sketch.signature, row) for sketch in sketches for row in TileSpace(sketch).sample(1, rng).tolist()]
    candidates = [NAIVE, *(Candidate(signature, tuple(row)) for signature, row in rows)]
    settings = MeasureSettings(rules=rules, builders=1, repeat_seconds=0.0001, slow_factor=1e9)
    with Measurer(task.target, settings) as measurer:
        measured = list(measurer.measure(task, candidates))
    assert [m.candidate for m in measured] == candidates
    for measurement in measured:
        assert (measurement.outcome, measurement.error) == (Outcome.OK, "")
        assert measurement.checked
        assert measurement.latency is not None


def test_rules_that_are_not_there_are_named(place: str) -> None:
    for wrong, message in [
        (f"{place}:SOMETHING_ELSE", "not a sequence of derivation rules"),
        (f"{place}:NOTHING", "not a sequence of derivation rules"),
        ("/no/such/file.py:RULES", "there is no file /no/such/file.py"),
        ("no_such_module:RULES", "cannot be loaded"),
        ("RULES", "does not name rules"),
    ]:
        with pytest.raises(ArgumentError, match=message):
            rules_from(wrong)
