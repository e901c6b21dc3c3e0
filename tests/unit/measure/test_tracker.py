"""Boards that are lent by name: to one at a time, for as long as it is heard of."""

from __future__ import annotations

import json
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.client import HTTPConnection
from pathlib import Path

import pytest
from click.testing import CliRunner

from ansorlite.cli.main import main
from ansorlite.errors import TargetError, TuningError
from ansorlite.measure import Measurer, MeasureSettings
from ansorlite.measure.board import leased
from ansorlite.measure.board.leased import open_workers
from ansorlite.measure.board.tracker import DIED_SECONDS, LEASE_SECONDS, Lease, Tracker
from ansorlite.measure.board.tracker_link import TrackerLink, server_of
from ansorlite.records import Outcome
from ansorlite.sketch.candidate import NAIVE
from ansorlite.target import process_target
from ansorlite.task import Task
from tests.workloads import matmul

ONE, TWO = "ssh://pi@one", "ssh://pi@two"
HERE = replace(process_target(), threads=1)
SETTINGS = MeasureSettings(builders=1, wait_seconds=0.0, run_seconds=5.0, check_seconds=30.0, alike=1e9)


class Clock:
    seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


def lent(tracker: Tracker) -> dict[str, str]:
    return {entry.address: entry.holder for entry in tracker.entries()}


def test_a_board_is_lent_to_one_at_a_time() -> None:
    tracker = Tracker({"rpi4": [ONE, TWO], "rpi5": ["ssh://pi@three"]}, Clock())
    (first,) = tracker.take("rpi4", 1, "anna")
    (second,) = tracker.take("rpi4", 5, "bert")
    assert {first.address, second.address} == {ONE, TWO}
    assert tracker.take("rpi4", 1, "carl") == tracker.take("nobody", 1, "carl") == []
    assert lent(tracker) == {first.address: "anna", second.address: "bert", "ssh://pi@three": ""}
    tracker.give_back(first)
    assert [lease.address for lease in tracker.take("rpi4", 1, "carl")] == [first.address]


def test_who_is_not_heard_of_loses_the_lease() -> None:
    clock = Clock()
    tracker = Tracker({"rpi4": [ONE, TWO]}, clock)
    first, second = tracker.take("rpi4", 2, "anna")
    for _ in range(5):
        clock.seconds += LEASE_SECONDS - 1
        assert tracker.renew([first], "anna") == [first]
    assert lent(tracker) == {first.address: "anna", second.address: ""}
    (taken,) = tracker.take("rpi4", 1, "bert")
    assert tracker.renew([first, second], "anna") == [first]
    tracker.give_back(second)
    assert lent(tracker)[taken.address] == "bert", "an old lease ends nobody else's"


def test_a_board_that_died_is_offered_last_and_not_at_once() -> None:
    clock = Clock()
    tracker = Tracker({"rpi4": [ONE, TWO]}, clock)
    first, second = tracker.take("rpi4", 2, "anna")
    tracker.give_back(first, "the cable was pulled")
    died = next(entry for entry in tracker.entries() if entry.address == first.address)
    assert (died.died, died.died_at, died.holder) == ("the cable was pulled", 1000.0, "")
    assert tracker.take("rpi4", 1, "bert") == []
    tracker.give_back(second)
    clock.seconds += DIED_SECONDS
    again = tracker.take("rpi4", 2, "bert")
    assert [lease.address for lease in again] == [second.address, first.address]
    tracker.give_back(again[1])
    assert all(entry.died == "" for entry in tracker.entries()), "it has worked since"


def test_a_tracker_that_starts_anew_learns_who_has_what() -> None:
    tracker = Tracker({"rpi4": [ONE, TWO]}, Clock())
    leases = [Lease(ONE, "a" * 32), Lease("ssh://pi@gone", "b" * 32)]
    assert tracker.renew(leases, "anna") == leases[:1]
    assert lent(tracker) == {ONE: "anna", TWO: ""}
    assert tracker.renew([Lease(ONE, "c" * 32)], "bert") == []


@pytest.fixture
def served() -> Iterator[Callable[..., str]]:
    """Starts a tracker, and says where."""
    servers = []

    def start(**boards: list[str]) -> str:
        server = server_of(Tracker(boards), "127.0.0.1", 0)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return f"tracker://127.0.0.1:{server.server_address[1]}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


PYTHON = f"popen://{sys.executable}"


def test_a_lent_board_measures_and_comes_back(served: Callable[..., str]) -> None:
    place = served(here=[PYTHON])
    task = Task(matmul(16, 16, 16), HERE)
    with Measurer(HERE, SETTINGS, lambda target, settings: open_workers(f"{place}/here", target, settings)) as measurer:
        (found,) = measurer.measure(task, [NAIVE])
        (entry,) = TrackerLink(place).entries()
        assert entry.holder
        with pytest.raises(TuningError, match=r"no board of .*/here came free within 0 s: popen://.* is .*'s since"):
            open_workers(f"{place}/here", HERE, SETTINGS)
    assert (found.outcome, found.machine) == (Outcome.OK, PYTHON)
    (entry,) = TrackerLink(place).entries()
    assert (entry.holder, entry.died) == ("", "")


def test_a_board_that_dies_is_told_and_another_takes_its_place(served: Callable[..., str]) -> None:
    place = served(here=["popen:///nowhere/python", PYTHON])
    task = Task(matmul(16, 16, 16), HERE)
    with Measurer(HERE, SETTINGS, lambda target, settings: open_workers(f"{place}/here*2", target, settings)) as measurer:
        assert [m.outcome for m in measurer.measure(task, [NAIVE])] == [Outcome.OK]
        died = {entry.address: entry.died for entry in TrackerLink(place).entries()}
        assert "cannot be reached" in died["popen:///nowhere/python"]
        assert died[PYTHON] == ""
        measurer._lanes[0].runner._lender._leases.clear()  # type: ignore[attr-defined]
        with pytest.raises(TuningError, match="no machine that times programs came back"):
            list(measurer.measure(task, [NAIVE, NAIVE]))


def test_leases_are_renewed(served: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leased, "LEASE_SECONDS", 0.03)
    asked = threading.Event()

    class Link(TrackerLink):
        def renew(self, leases: object) -> list[Lease]:
            asked.set()
            return super().renew(leases)  # type: ignore[arg-type]

    lender = leased.Lender(Link(f"{served(here=[ONE])}/here", "anna"))
    (lease,) = lender.take(1, 0.0)
    assert asked.wait(20)
    assert lender.has(lease)
    lender.close()


@pytest.mark.parametrize(
    "address", ["tracker://", "tracker://a b/x", "tracker://host:1/x/y", "tracker://host/x*0x", "http://host/x"]
)
def test_addresses_are_one_sentence(address: str) -> None:
    with pytest.raises(TargetError, match="is no tracker; give tracker://host:9190/name"):
        TrackerLink(address)


def test_a_tracker_that_is_not_there_is_one_sentence() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(TuningError, match=f"the tracker tracker://127.0.0.1:{port}/x cannot be reached"):
        open_workers(f"tracker://127.0.0.1:{port}/x", HERE, SETTINGS)


def test_a_tracker_that_names_what_is_no_board_is_not_followed(
    served: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(TuningError, match="names what is no board"):
        TrackerLink(f"{served(x=['ssh://-oProxyCommand=reboot'])}/x").take(1)
    monkeypatch.setattr("ansorlite.measure.board.tracker_link._HERE", ())
    with pytest.raises(TuningError, match="must not name programs of this machine"):
        TrackerLink(f"{served(x=[PYTHON])}/x").take(1)


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{}", b'{"do": "take"}', b'{"do": "take", "name": 3, "most": 1, "holder": ""}', b"["]
)
def test_rubbish_is_refused_and_the_tracker_lives(served: Callable[..., str], body: bytes) -> None:
    place = served(x=[ONE])
    connection = HTTPConnection(place.removeprefix("tracker://"), timeout=10)
    connection.request("POST", "/", body)
    assert connection.getresponse().status == 400
    connection.close()
    assert [entry.address for entry in TrackerLink(place).entries()] == [ONE]


def test_the_list(served: Callable[..., str]) -> None:
    place = served(rpi4=[ONE, TWO])
    TrackerLink(f"{place}/rpi4", "anna").take(1)
    done = CliRunner().invoke(main, ["boards", place, "--json"])
    assert done.exit_code == 0, done.output
    assert [(each["name"], each["holder"]) for each in json.loads(done.stdout)["boards"]] == [("rpi4", "anna"), ("rpi4", "")]
    shown = CliRunner().invoke(main, ["boards", place])
    assert "anna" in shown.output
    assert "free" in shown.output


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "names no boards"),
        ("{}", "names no boards"),
        ('{"a": "ssh://b"}', "names no boards"),
        ('{"a": ["http://b"]}', "is no board"),
        ('{"a": ["ssh://b"], "c": ["ssh://b"]}', "names a board twice"),
    ],
)
def test_a_file_of_boards_is_checked(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "boards.json").write_text(text)
    done = CliRunner().invoke(main, ["boards", "--serve", str(tmp_path / "boards.json")])
    assert done.exit_code == 2
    assert words in done.output
