"""Waiting for what other processes do in their own time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

#: Seconds after which a test fails because what it waits for does not happen.
LIMIT: Final = 60.0


def wait_for(condition: Callable[[], object]) -> None:
    """Return as soon as ``condition()`` is true.

    Raises:
        AssertionError: it is not, after :data:`LIMIT` seconds.
    """
    deadline = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.01)
