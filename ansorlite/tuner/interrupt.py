"""Ctrl-C, but never between a measurement and its record."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def deferred_interrupt() -> Iterator[None]:
    """Hold a Ctrl-C that arrives inside back until the end, then raise it there.

    Only the main thread receives signals: elsewhere, and where somebody has replaced Python's handler, this does nothing.
    """
    default = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or default is not signal.default_int_handler:
        yield
        return
    arrived = False

    def note(_signal: int, _frame: FrameType | None) -> None:
        nonlocal arrived
        arrived = True

    signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, default)
    if arrived:
        raise KeyboardInterrupt
