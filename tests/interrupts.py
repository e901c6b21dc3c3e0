"""Processes that a test interrupts."""

import signal


def interruptible() -> None:
    """For ``preexec_fn``: the process obeys SIGINT even where the tests run in the background of a shell, which ignores it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
