"""Cases in a process of their own, which has the GPU.

What hangs or breaks it ends with that process, and the next case has a new one.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Final, Self

import psutil

from benchmarks.gpu.row import Row
from benchmarks.gpu.work import Order, work

#: Processes side by side, at most: half of the processors that this one may use, for each also asks the driver.
_PROCESSES: Final = min(8, max(1, len(os.sched_getaffinity(0)) // 2))
#: Seconds that a process has to end by itself.
_ENDING: Final = 5.0


def nothing() -> None:
    """What a process does before its first case."""


class Apart:
    """Does cases. Use it as a context manager: leaving it ends the process, and all that it started."""

    def __init__(self, begin: Callable[[], None] = nothing) -> None:
        """
        Args:
            begin: what a process does before its first case; a function of a module.
        """
        self._begin = begin
        self._process: multiprocessing.process.BaseProcess | None = None
        self._answers: Connection | None = None

    def do(self, order: Order, seconds: float) -> Row:
        """A case's row. Where something is wrong with it, the process ends: a GPU that fails once fails its process for good.

        Args:
            seconds: how long it may take.
        """
        start = time.time()
        answers = self._answers or self._start()
        row: Row | None = None
        said = f"not done after {seconds:.3g} s"
        try:
            answers.send(order)
            if answers.poll(seconds):
                row = answers.recv()
        except (EOFError, OSError):
            said = "the process that had the GPU has died"
        if row is None:
            spent = time.time() - start
            row = Row(order.family, order.case, order.device, said, seconds=spent, when=start)
        if row.wrong:
            self._end()
        return row

    def _start(self) -> Connection:
        # A process that is forked cannot use a GPU that its parent has asked something.
        context = multiprocessing.get_context("spawn")
        self._answers, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, self._begin))
        self._process.start()
        theirs.close()
        return self._answers

    def _end(self) -> None:
        if self._process is None or self._answers is None:
            return
        with contextlib.suppress(psutil.NoSuchProcess):
            family = psutil.Process(self._process.pid).children(recursive=True)
            for each in family:
                with contextlib.suppress(psutil.NoSuchProcess):
                    each.kill()
        self._process.kill()
        self._process.join(_ENDING)
        self._answers.close()
        self._process = self._answers = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._end()


def side_by_side(orders: Sequence[Order], seconds: float, begin: Callable[[], None] = nothing) -> Iterator[Row]:
    """The rows of orders that time nothing, as they are done: by several processes, for most of it is compiling.

    Args:
        seconds: how long each may take.
        begin: what a process does before its first case.
    """
    waiting: SimpleQueue[Order] = SimpleQueue()
    # A thread that has nothing more to do, whatever the reason is, says so by None.
    rows: SimpleQueue[Row | None] = SimpleQueue()
    for order in orders:
        waiting.put(order)

    def serve() -> None:
        try:
            with Apart(begin) as apart, contextlib.suppress(Empty):
                while True:
                    rows.put(apart.do(waiting.get_nowait(), seconds))
        finally:
            rows.put(None)

    with ThreadPoolExecutor(_PROCESSES) as threads:
        serving = [threads.submit(serve) for _ in range(min(_PROCESSES, len(orders)))]
        for _ in serving:
            while (row := rows.get()) is not None:
                yield row
        for each in serving:
            each.result()


def _serve(answers: Connection, begin: Callable[[], None]) -> None:
    begin()
    while True:
        try:
            order = answers.recv()
        except (EOFError, OSError, KeyboardInterrupt):
            return
        answers.send(work(order))
