"""Ctrl-C, but never between a measurement and its record, and never lost."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Interrupts:
    """Ctrl-C while a run lasts.

    Python raises it wherever the main thread is. In a finalizer or a callback from C that is to no avail: there, errors are only
    printed. So it is remembered, too, and ``check`` raises what was lost.

    Only the main thread receives signals: elsewhere, and where somebody has replaced Python's handler, this does nothing.
    """

    def __init__(self) -> None:
        self._arrived = False
        self._deferred = False

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Remember each Ctrl-C that arrives inside."""
        python = signal.getsignal(signal.SIGINT)
        if threading.current_thread() is not threading.main_thread() or python is not signal.default_int_handler:
            yield
            return
        signal.signal(signal.SIGINT, self._arrive)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, python)

    @contextmanager
    def deferred(self) -> Iterator[None]:
        """Hold a Ctrl-C that arrives inside back until the end, then raise it there.

        Raises:
            KeyboardInterrupt: one has arrived, inside or before.
        """
        self._deferred = True
        try:
            yield
        finally:
            self._deferred = False
        self.check()

    def check(self) -> None:
        """Nothing, if none has arrived.

        Raises:
            KeyboardInterrupt: one has.
        """
        if self._arrived:
            raise KeyboardInterrupt

    def _arrive(self, _signal: int, _frame: FrameType | None) -> None:
        self._arrived = True
        if not self._deferred:
            raise KeyboardInterrupt
