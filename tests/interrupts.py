"""Processes that a test interrupts, and the test process itself."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_CODE: Final = """
import runpy, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
del sys.argv[0]
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
"""
#: Before the name of a module, in place of ``python -m``: the process obeys SIGINT even where the tests run in the background of
#: a shell, which ignores it. ``preexec_fn`` would do that, too, but between fork and exec, where what other libraries have of
#: threads here (gRPC's) may end the new process.
PYTHON_M: Final = (sys.executable, "-c", _CODE)


@contextmanager
def interruptible() -> Iterator[None]:
    """This process obeys SIGINT inside, as Python does by default."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
