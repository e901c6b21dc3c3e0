"""Options of the test suite, and a cache of its own."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Generator
from typing import Any

import pytest

from ansorlite.cache.disk import CACHE_VARIABLE
from ansorlite.calibration.automatic import CALIBRATE_VARIABLE
from ansorlite.errors import BrokenProgramWarning, ExtraError
from tests import running


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write golden texts anew instead of comparing with them")
    parser.addoption("--models", type=int, default=3000, help="how many spoilt ONNX models tests/fuzz tries")
    parser.addoption("--computations", type=int, default=100, help="how many random computations tests/fuzz tries")


def pytest_configure(config: pytest.Config) -> None:
    """No program fails to compile unseen. No test reads what was compiled before, measures the machine unasked, or leaves
    anything behind.

    Processes of one session share a cache.
    """
    # Elsewhere the next best program is taken, and the show goes on.
    config.addinivalue_line("filterwarnings", f"error::{BrokenProgramWarning.__module__}.{BrokenProgramWarning.__name__}")
    if not hasattr(config, "workerinput"):
        os.environ[CACHE_VARIABLE] = tempfile.mkdtemp(prefix="ansorlite-tests-")
        os.environ[CALIBRATE_VARIABLE] = "0"

    running.check_target()


def _without_extra() -> Generator[None, Any, Any]:
    """What needs an extra that is not installed is skipped, and says which to install; in CI all are there."""
    try:
        return (yield)
    except ExtraError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(error))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup() -> Generator[None, Any, Any]:
    return (yield from _without_extra())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, Any, Any]:
    return (yield from _without_extra())


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Which target was run, and how."""
    terminalreporter.write_line(running.summary())


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        shutil.rmtree(os.environ[CACHE_VARIABLE], ignore_errors=True)
