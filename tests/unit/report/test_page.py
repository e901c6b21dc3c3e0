"""A database as a page: what became of each task."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import ansorlite as al
from ansorlite import te
from ansorlite.records import Database
from ansorlite.records.measurement import Measurement, Outcome
from ansorlite.report.histories import histories
from ansorlite.report.page import page
from ansorlite.sketch.candidate import NAIVE, Candidate

MANY, FEW = (
    al.Task([x, te.compute((n,), lambda i, x=x: x[i] * 2.0, name=f"times<{n}>")])
    for n in (64, 8)
    for x in [te.placeholder((n,), name="x")]
)


def filled(path: Path) -> Database:
    database = Database(path)
    trials: list[tuple[Candidate, Outcome, float | None, bool, str]] = [
        (Candidate("1"), Outcome.CRASH, None, False, "signal 11 <SEGV>\nand more"),
        (NAIVE, Outcome.OK, 8e-3, True, ""),
        (Candidate("2"), Outcome.OK, 2e-3, True, ""),
        (Candidate("3"), Outcome.OK, 1e-3, False, ""),  # not checked, so it does not count
        (Candidate("4"), Outcome.EARLY_STOPPED, 9e-3, True, ""),
    ]
    for when, (candidate, outcome, latency, checked, error) in enumerate(trials):
        database.add(MANY, Measurement(candidate, outcome, str(when), latency, checked, error, when=float(when)))
    database.add(FEW, Measurement(NAIVE, Outcome.CRASH, "n", error="no", when=9.0))
    return database


def test_a_history_is_the_best_checked_program_so_far(tmp_path: Path) -> None:
    with filled(tmp_path / "db") as database:
        many, few = histories(database)
    assert many.curve == (None, 8e-3, 2e-3, 2e-3, 2e-3)
    assert (many.naive, many.best, len(many.failures)) == (8e-3, 2e-3, 1)
    assert (few.naive, few.best, len(few.failures)) == (None, None, 1)


def test_the_page_names_a_gpu_and_its_limits(tmp_path: Path) -> None:
    task = al.Task(MANY.dag, "h100")
    with filled(tmp_path / "db") as database:
        database.add(task, Measurement(NAIVE, Outcome.OK, "n", 1.0, True, "", when=10.0))
        found = histories(database)
        devices = [history.device for history in found]
        text = page("db", found)
    limits = "132 multiprocessors; a block has at most 1,024 threads and 232,448 bytes of shared memory, a thread 255 registers"
    assert sorted(devices) == ["", "", f"NVIDIA H100 80GB HBM3: {limits}"]
    assert limits in text


class Texts(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.points: list[str] = []

    def handle_data(self, data: str) -> None:
        self.found.append(data.strip())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.points += [dict(attrs)["points"] or ""] if tag == "polyline" else []


def test_the_page_tells_it_whatever_the_names(tmp_path: Path) -> None:
    with filled(tmp_path / "a db") as database:
        texts = Texts()
        texts.feed(page("a & b", histories(database)))
    assert "a & b" in texts.found
    assert "2 tasks, 6 measurements" in texts.found
    first = texts.found.index("times<64> 64 -> 64")
    assert [text for text in texts.found[first + 1 :] if text][:5] == ["5", "1", "8.00 ms", "2.00 ms", "4.00x"]
    assert "crash: signal 11 <SEGV>" in texts.found
    assert f"python -m ansorlite.measure.replay '{tmp_path / 'a db'}' 1" in texts.found
    assert "no program ran" in texts.found
    assert texts.points == ["0,0 333.3,0.0 333.3,100.0 1000.0,100.0 1000.0,100.0"]
