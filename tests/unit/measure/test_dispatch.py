"""Candidates to builders that come, go, hang and die; a clock that the test turns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future

import pytest

from ansorlite.errors import TuningError
from ansorlite.measure.dispatch import Dispatcher, Station
from ansorlite.measure.roles import Artifact, Built, Failure
from ansorlite.records import Outcome
from ansorlite.sketch.candidate import Candidate
from ansorlite.task import Task
from tests.unit.measure.tasks import matmul

CANDIDATES = [Candidate(str(number)) for number in range(40)]


class FakeStation:
    """Compiles when it is told to."""

    def __init__(self) -> None:
        self.ready: Future[None] = Future()
        self.asked: list[tuple[Candidate, Future[Built]]] = []
        self.done: list[Candidate] = []
        self.ended = 0
        self.hangs = False
        self.most = 0

    def ask(self, _task: Task, candidate: Candidate) -> Future[Built]:
        self.asked.append((candidate, Future()))
        self.most = max(self.most, len(self.asked))
        return self.asked[-1][1]

    def end(self) -> None:
        self.ended += 1

    def compile(self) -> None:
        if self.asked and not self.hangs and not self.ended:
            candidate, answer = self.asked.pop(0)
            self.done.append(candidate)
            answer.set_result(Artifact(candidate, candidate.trace.encode(), 0.5, 0.0))

    def die(self) -> None:
        for _, answer in self.asked:
            answer.set_exception(RuntimeError("the node is gone"))
        self.asked = []


class Shop:
    """Hires what there is, and is the clock: whenever the time is asked, a second has passed, and after ten each station has
    compiled one more."""

    def __init__(self, *stations: FakeStation, aside: bool = True) -> None:
        self.stations = list(stations)
        self.waiting = list(stations)
        self.aside = aside
        self.seconds = 0.0
        self.every = 10

    def hire(self, stations: Sequence[Station]) -> Sequence[Station]:
        assert all(station in self.stations for station in stations)
        hired, self.waiting = self.waiting, []
        for station in hired:
            station.ready.set_result(None)
        return hired

    def now(self) -> float:
        self.seconds += 1.0
        if self.seconds % self.every == 0:
            for station in self.stations:
                station.compile()
        return self.seconds


def built(shop: Shop, seconds: float = 50.0, wait: float = 100.0) -> Iterator[Built]:
    return Dispatcher(shop, seconds, wait, shop.now).build(matmul(), CANDIDATES)


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for a clock that is turned by asking."""
    monkeypatch.setattr("ansorlite.measure.dispatch._LOOK", 1e-3)


def test_results_are_in_order_and_each_builder_has_two() -> None:
    shop = Shop(FakeStation(), FakeStation(), FakeStation())
    assert [each.candidate for each in built(shop)] == CANDIDATES
    assert [station.most for station in shop.stations] == [2, 2, 2]
    assert sum(len(station.done) for station in shop.stations) == len(CANDIDATES)
    assert min(len(station.done) for station in shop.stations) > 5


def test_what_a_lost_builder_had_goes_to_another() -> None:
    first, second = FakeStation(), FakeStation()
    shop = Shop(first, second)
    found = []
    for each in built(shop):
        found.append(each)
        if len(found) == 5:
            first.hangs = True
            first.die()
    assert [each.candidate for each in found] == CANDIDATES
    assert all(isinstance(each, Artifact) for each in found)
    assert first.ended == 1


def test_a_builder_that_does_not_answer_is_given_up() -> None:
    first, second = FakeStation(), FakeStation()
    first.hangs = True
    found = list(built(Shop(first, second)))
    assert [each.candidate for each in found] == CANDIDATES
    assert all(isinstance(each, Artifact) for each in found)
    assert (first.ended, second.ended) == (1, 0)


def test_a_candidate_whose_builders_die_is_a_failure_and_the_others_are_not() -> None:
    poison = CANDIDATES[7]

    class Mortal(FakeStation):
        def compile(self) -> None:
            if self.asked and self.asked[0][0] == poison:
                self.die()
                self.hangs = True
            super().compile()

    found = list(built(Shop(*(Mortal() for _ in range(4)))))
    assert [each.candidate for each in found] == CANDIDATES
    (lost,) = [each for each in found if isinstance(each, Failure)]
    assert lost.candidate == poison
    assert lost.verdict.outcome is Outcome.CRASH
    assert lost.verdict.error == "the machines that compiled it were lost, 2 of them: the node is gone"


def test_a_new_builder_is_found_when_the_last_is_lost() -> None:
    first, second = FakeStation(), FakeStation()
    shop = Shop(first)
    found = []
    for each in built(shop):
        found.append(each)
        if len(found) == 3:
            first.hangs = True
            first.die()
            shop.stations.append(second)
            shop.waiting.append(second)
    assert [each.candidate for each in found] == CANDIDATES
    assert second.done


def test_without_a_builder_it_waits_and_says_so() -> None:
    first = FakeStation()
    shop = Shop(first)
    found = built(shop)
    for _ in range(3):
        next(found)
    first.hangs = True
    first.die()
    with pytest.raises(TuningError, match="no machine that compiles programs came within 100 s: the node is gone"):
        for _ in found:
            pass
    assert shop.seconds > 100


def test_on_machines_that_time_all_is_built_before_the_first_is_given() -> None:
    shop = Shop(FakeStation(), aside=False)
    found = built(shop)
    next(found)
    assert len(shop.stations[0].done) == len(CANDIDATES)


def test_who_asks_may_leave_before_the_last_and_ask_again() -> None:
    first, second = FakeStation(), FakeStation()
    shop = Shop(first)
    dispatcher = Dispatcher(shop, 50.0, 100.0, shop.now)
    found = dispatcher.build(matmul(), CANDIDATES)
    next(found)
    shop.stations.append(second)
    shop.waiting.append(second)
    found.close()  # type: ignore[attr-defined]
    assert first.ended == 1
    dispatcher.hire()
    assert [each.candidate for each in dispatcher.build(matmul(), CANDIDATES)] == CANDIDATES
    assert first.asked == [] or first.ended
