"""No program is learnt from and judged by at once, and all are judged by once."""

import numpy as np
import pytest

from ansorlite.dataset import SPLITS, Entry

from .support import entry


@pytest.fixture(scope="module")
def entries() -> list[Entry]:
    return [entry(16), entry(24), entry(24, device="there"), entry(32, origin="other"), entry(40, origin="third")]


def programs(entries: tuple[Entry, ...]) -> set[tuple[str, str, str]]:
    return {(each.task.key, each.device, trace) for each in entries for part in each.parts for trace in part.traces}


@pytest.mark.parametrize("name", SPLITS)
def test_no_program_is_on_both_sides(name: str, entries: list[Entry]) -> None:
    splits = list(SPLITS[name](entries, np.random.default_rng(0), 3))
    tested: list[tuple[str, str, str]] = []
    for split in splits:
        train, test = programs(split.train), programs(split.test)
        assert train
        assert not train & test
        tested += test
    assert len(tested) == len(set(tested))
    if name != "within_task":
        assert set(tested) == programs(tuple(entries))
    again = list(SPLITS[name](entries, np.random.default_rng(0), 3))
    assert [programs(split.test) for split in again] == [programs(split.test) for split in splits]


def test_what_is_left_out_is_left_out(entries: list[Entry]) -> None:
    for name, part in (("by_task", lambda e: e.task.key), ("by_origin", lambda e: e.origin), ("by_device", lambda e: e.device)):
        for split in SPLITS[name](entries, np.random.default_rng(1), 9):
            assert not {part(each) for each in split.train} & {part(each) for each in split.test}
    (split,) = SPLITS["within_task"](entries, np.random.default_rng(1), 9)
    assert [len(each) for each in split.train] == [round(len(each) / 2) for each in entries]
    assert not list(SPLITS["by_device"](entries[:2], np.random.default_rng(0), 2))
