"""The search of two versions beside each other, and what one sketch costs."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from benchmarks import search_speed
from benchmarks.versions.worker import Worker

SOFTMAX = "softmax 1024 x 512"


class _Version:
    """In this process; every second of it counts as many times."""

    def __init__(self, times: float) -> None:
        self.worker, self.times = Worker(), times

    def ask(self, do: str, **arguments: object) -> dict[str, object]:
        answer = getattr(self.worker, do)(**arguments)
        assert min(answer.values()) > 0
        return answer if do == "prepare" else dict.fromkeys(answer, self.times)


def test_ratios_are_of_this_version_to_the_other() -> None:
    here, there = _Version(2.0), _Version(3.0)
    for version in (here, there):
        assert version.ask("prepare", workload=SOFTMAX) == {"holes": 14}
    for first in (0, 1):
        found = search_speed._turn((here, there), SOFTMAX, first)  # type: ignore[arg-type]
        assert found == pytest.approx({"speed": 1.5, "features": 2 / 3, "model": 2 / 3, "recording": 2 / 3})


def test_the_command_says_what_it_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    row = {"workload": SOFTMAX, "holes": [14, 13], "speed": 0.5, "features": 2.0, "model": 2.0, "recording": 1.25}
    asked = []
    monkeypatch.setattr(search_speed, "beside", lambda revision, names: asked.append((revision, names)) or [row])
    command = ["--against", "HEAD", "--workload", SOFTMAX]
    assert "14 / 13" in CliRunner().invoke(search_speed.main, command, catch_exceptions=False).stdout
    told = json.loads(CliRunner().invoke(search_speed.main, [*command, "--json"], catch_exceptions=False).stdout)
    assert told == {"against": "HEAD", "rows": [row]}
    assert asked == [("HEAD", (SOFTMAX,))] * 2
