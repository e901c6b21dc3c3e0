"""A worker process: builds programs, or runs them; see ``protocol``.

It is forked by a process that has imported what it needs and done nothing else, told everything over its standard input, and ends
as soon as that is closed, whatever it is doing: a tuner that dies, however it dies, leaves no worker behind, and no files.
"""

from __future__ import annotations

import faulthandler
import os
import queue
import resource
import shutil
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import BinaryIO, Final, cast

from ansorlite.errors import DeviceLostError
from ansorlite.garbage import without_collector
from ansorlite.measure.backend import Backend
from ansorlite.measure.bench import Bench
from ansorlite.measure.protocol import (
    Answer,
    Build,
    Compare,
    Message,
    Phase,
    Prepare,
    Purpose,
    Status,
    answer_message,
    decode,
    encode,
    job_of,
)
from ansorlite.measure.settings import MeasureSettings
from ansorlite.target import Target
from ansorlite.task import Task
from ansorlite.te.serialize import load

#: A backend may import what a function of it needs when that is named. The time of jobs is limited, so it is named before them.
_NEEDED: Final[Mapping[Purpose, Callable[[Backend], object]]] = {
    Purpose.BUILD: lambda backend: backend.build,
    Purpose.RUN: lambda backend: backend.load,
}


class Worker:
    """Answers the jobs that come in, one after another."""

    def __init__(self, incoming: queue.SimpleQueue[Message], outgoing: BinaryIO) -> None:
        self._incoming = incoming
        self._outgoing = outgoing
        start = incoming.get()
        self._settings = MeasureSettings(**start["settings"])
        self._target = Target.of(start["target"])
        _limit_memory(self._settings.memory_bytes)
        self._backend = cast(Backend, import_module(self._settings.backend))
        _NEEDED[Purpose(start["purpose"])](self._backend)
        self._bench = Bench(self._backend, self._settings, self._enter)
        self._tasks: dict[str, Task] = {}

    def work(self) -> None:
        """Answer jobs for ever."""
        self._enter(Phase.WORKING)
        while True:
            message = self._incoming.get()
            if message["do"] == "task":
                self._tasks[message["key"]] = Task(load(message["dag"]), self._target)
            else:
                self._say(answer_message(message["job"], self._answer(message)))

    def _enter(self, phase: Phase) -> None:
        self._say({"event": phase.value})

    def _say(self, message: Message) -> None:
        self._outgoing.write(encode(message))
        self._outgoing.flush()

    def _answer(self, message: Message) -> Answer:
        try:
            job = job_of(message)
            task = self._tasks[job.task]
            match job:
                case Build():
                    return self._build(task, job)
                case Prepare():
                    return self._bench.prepare(task, job)
                case Compare():
                    return self._bench.compare(task, job)
                case _:
                    return self._bench.run(task, job)
        except DeviceLostError:
            # Whatever ran next in this process would fail, too. Another one takes its place.
            raise
        except MemoryError as error:
            return Answer(Status.MEMORY, f"it needs more than {self._settings.memory_bytes >> 20} MiB of memory: {error}")
        except Exception as error:  # whatever a candidate does is data, not the end of the tuning
            return Answer(Status.ERROR, f"{type(error).__name__}: {error}\n{traceback.format_exc()}")

    def _build(self, task: Task, job: Build) -> Answer:
        with without_collector():
            candidate = self._backend.default(task) if job.candidate is None else job.candidate
            start = time.perf_counter()  # choosing is no part of building
            program = self._backend.build(task, candidate)
        Path(job.artifact).write_bytes(program.code)
        seconds = time.perf_counter() - start
        return Answer(Status.OK, seconds=seconds, candidate=candidate, key=program.key, reports=program.reports)


def _limit_memory(limit: int) -> None:
    """Let allocations beyond ``limit`` bytes fail in this process. (RLIMIT_AS would count what is only reserved.)"""
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    soft = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def _listen(source: BinaryIO, incoming: queue.SimpleQueue[Message], folder: str) -> None:
    """Queue what the tuner says. When the tuner is gone without a goodbye, remove its folder and end the process."""
    for line in source:
        incoming.put(decode(line))
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(0)


def main(folder: str) -> None:
    """Run until standard input is closed.

    Args:
        folder: of the tuner, to be removed if that is killed.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the tuner decides what an interrupt means
    faulthandler.enable()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # What candidates and libraries print must not get between the messages.
    outgoing = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    incoming: queue.SimpleQueue[Message] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(sys.stdin.buffer, incoming, folder), daemon=True).start()
    try:
        Worker(incoming, outgoing).work()
    except BaseException:
        # A plain end would wait for the thread that listens.
        traceback.print_exc()
        os._exit(1)
