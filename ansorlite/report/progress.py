"""What a person sees while tuning runs: a live display on a terminal, a line a round in a log, or nothing."""

from __future__ import annotations

import math
import time
from contextlib import AbstractContextManager, nullcontext
from types import TracebackType
from typing import Self

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from ansorlite.report.board import Board
from ansorlite.report.screen import screen
from ansorlite.report.tables import standing
from ansorlite.report.text import clock, duration, percent, plural, speed_up, times
from ansorlite.tuner.events import Calibrating, Event, Listener, RoundFinished, Started


def listener(progress: bool | None, console: Console | None = None) -> AbstractContextManager[Listener]:
    """What to listen to the tuner with.

    Args:
        progress: ``True`` shows progress, drawn live on a terminal and as lines elsewhere; ``False`` shows nothing;
            ``None`` shows it on a terminal only.
        console: where; by default stderr.
    """
    where = console or screen(stderr=True)
    if progress is None:
        progress = where.is_terminal
    if not progress:
        return nullcontext(_ignore)
    return LiveProgress(where) if where.is_terminal else nullcontext(LineProgress(where))


def _ignore(_event: Event) -> None:
    return


class LiveProgress:
    """Redraws the standing of all tasks in place, a few times a second."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._board = Board()
        self._begin = time.monotonic()
        self._live = Live(console=console, refresh_per_second=4, get_renderable=self.render, transient=True)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._live.stop()

    def __call__(self, event: Event) -> None:
        if isinstance(event, Calibrating):
            self._console.print(_calibrating_line(event), soft_wrap=True)
        if isinstance(event, Started):
            self._begin = time.monotonic() - event.elapsed
        self._board(event)

    def render(self) -> Group:
        """The display as it stands: nothing before tuning has started."""
        if not self._board.lines:
            return Group()
        board, elapsed = self._board, time.monotonic() - self._begin
        bar = Table.grid(padding=(0, 1), expand=True)
        bar.add_column(ratio=1)
        bar.add_column(no_wrap=True)
        bar.add_row(ProgressBar(total=max(1, board.trials), completed=board.done), Text(_standing_line(board, elapsed)))
        return Group(standing(board.lines, board.current, room=self._console.height - 5), bar)


class LineProgress:
    """One line a round, for logs."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._board = Board()
        self._begin = time.monotonic()

    def __call__(self, event: Event) -> None:
        if isinstance(event, Calibrating):
            self._console.print(_calibrating_line(event), soft_wrap=True)
        if isinstance(event, Started):
            self._begin = time.monotonic() - event.elapsed
        self._board(event)
        if isinstance(event, RoundFinished):
            line = self._board.lines[event.task]
            trust = "" if event.correlation is None else f" · model's rank correlation {event.correlation:.2f}"
            gain = f" · next round's gain {percent(event.expected_gain)}" if math.isfinite(event.expected_gain) else ""
            text = (
                f"{_standing_line(self._board, time.monotonic() - self._begin)} · {line.name}: {duration(line.best)}{trust}{gain}"
            )
            self._console.print(text, soft_wrap=True)


def _calibrating_line(event: Calibrating) -> str:
    return f"calibrating first: nothing is known of the processor {event.cpu}; this takes some ten seconds, once"


def _standing_line(board: Board, elapsed: float) -> str:
    gain = times(speed_up(board.naive, board.best))
    errors = plural(board.errors, "error")
    best = f"best {duration(board.best)} ({gain} naive)"
    return f"{board.done}/{board.trials} trials · {best} · {errors} · {clock(board.seconds_left(elapsed))} left"
