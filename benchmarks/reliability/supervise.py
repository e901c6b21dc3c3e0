"""Attempts of a scenario in processes of their own, until enough has been checked."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Final

from ansorlite.cache.disk import CACHE_VARIABLE
from ansorlite.target import host
from ansorlite.temporary import TemporaryFolder
from benchmarks.common.machine import cpu_name
from benchmarks.common.results import ResultsFile
from benchmarks.reliability.results import Attempt, Findings, Run, total

#: Seconds after which an attempt counts as one that hangs.
PATIENCE: Final = 1800.0

_ROOT: Final = Path(__file__).parents[2]


def supervise(
    scenario: str,
    attempt: Attempt,
    goals: Mapping[str, int],
    results: ResultsFile[Run],
    *,
    processes: int,
    listener: Callable[[Run], None],
) -> list[Run]:
    """Make attempts, with numbers that ``results`` does not have, until its counts reach the ``goals``; those that were made.

    Without goals one attempt is made.
    """
    known = [run for run in results.rows if isinstance(run, Run) and run.scenario == scenario]
    number = max((run.number for run in known), default=-1) + 1
    code, cpu, target = commit(), cpu_name(), host().key
    made: list[Run] = []
    children: list[_Child] = []
    try:
        while True:
            counts = total([*known, *made])
            short = any(counts[name] < goal for name, goal in goals.items())
            while (short if goals else not (made or children)) and len(children) < processes:
                children.append(_Child.start(attempt, number))
                number += 1
            if not children:
                return made
            for child in _ended(children):
                children.remove(child)
                found = child.findings()
                seconds = time.monotonic() - child.begin
                counted = (dict(found.counts), found.failures, dict(found.figures))
                run = Run(scenario, child.number, *counted, seconds, code, cpu, target, when=time.time())
                results.add(run)
                made.append(run)
                listener(run)
    finally:
        for child in children:
            child.process.kill()
            child.process.join()


def attempt_here(attempt: Attempt, number: int) -> Findings:
    """One attempt in this process, in a folder and with a cache of its own, neither of which stays."""
    with TemporaryFolder() as place:
        before = os.environ.get(CACHE_VARIABLE)
        os.environ[CACHE_VARIABLE] = str(place / "cache")
        (place / "work").mkdir()
        try:
            return attempt(number, place / "work")
        finally:
            if before is None:
                del os.environ[CACHE_VARIABLE]
            else:
                os.environ[CACHE_VARIABLE] = before


def commit() -> str:
    """Of the code that runs."""

    def git(*words: str) -> str:
        done = subprocess.run(["git", *words], cwd=_ROOT, capture_output=True, text=True, check=False)
        return done.stdout.strip() if done.returncode == 0 else ""

    changed = git("status", "--porcelain", "--untracked-files=no", "--", "ansorlite")
    return (git("rev-parse", "--short=12", "HEAD") or "unknown") + ("+" if changed else "")


@dataclass(frozen=True)
class _Child:
    """An attempt that is being made."""

    number: int
    process: BaseProcess
    receiver: Connection
    begin: float

    @staticmethod
    def start(attempt: Attempt, number: int) -> _Child:
        context = multiprocessing.get_context("spawn")
        receiver, sender = context.Pipe(duplex=False)
        process = context.Process(target=_make, args=(attempt, number, sender))
        process.start()
        sender.close()
        return _Child(number, process, receiver, time.monotonic())

    def findings(self) -> Findings:
        """What it found; a process that died or hung is what it found, too."""
        late = not self.receiver.poll() and self.process.is_alive()
        if late:
            self.process.kill()
        try:
            found: Findings | None = self.receiver.recv()
        except EOFError:
            found = None
        self.process.join()
        if found is not None:
            return found
        code = self.process.exitcode or 0
        how = f"ran for more than {PATIENCE:.0f} s" if late else signal.Signals(-code).name if code < 0 else f"exit code {code}"
        return Findings({}, (f"the process of attempt {self.number} ended without a result: {how}",))


def _ended(children: list[_Child]) -> Iterator[_Child]:
    """Those that have a result, have died, or have taken too long; waits for the first."""
    while True:
        now = time.monotonic()
        first = min(child.begin for child in children) + PATIENCE
        ready = wait([child.receiver for child in children], timeout=max(0.0, first - now))
        ended = [child for child in children if child.receiver in ready or time.monotonic() - child.begin > PATIENCE]
        if ended:
            yield from ended
            return


def _make(attempt: Attempt, number: int, sender: Connection) -> None:
    """What a child does."""
    try:
        found = attempt_here(attempt, number)
    except Exception:
        found = Findings({}, (f"attempt {number} ended in an exception:\n{traceback.format_exc()}",))
    sender.send(found)
    sender.close()
