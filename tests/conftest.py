"""Options of the test suite, and a cache of its own."""

from __future__ import annotations

import os
import shutil
import tempfile

import pytest

from ansorlite.runtime.cache import CACHE_VARIABLE


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write golden texts anew instead of comparing with them")
    parser.addoption("--models", type=int, default=3000, help="how many spoilt ONNX models tests/fuzz tries")
    parser.addoption("--computations", type=int, default=100, help="how many random computations tests/fuzz tries")


def pytest_configure(config: pytest.Config) -> None:
    """No test reads what was compiled before, or leaves anything behind. Processes of one session share a cache."""
    if not hasattr(config, "workerinput"):
        os.environ[CACHE_VARIABLE] = tempfile.mkdtemp(prefix="ansorlite-tests-")


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        shutil.rmtree(os.environ[CACHE_VARIABLE], ignore_errors=True)
