"""What ansorlite makes of a random graph, and what is wrong with it."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, TypeAlias

import numpy as np
import onnx

from ansorlite.best import Programs
from ansorlite.errors import AnsorliteError
from ansorlite.frontends.onnx import load_any
from ansorlite.graph.executable import Bindable
from ansorlite.graph.hybrid import compile_any
from ansorlite.graph.open_executable import OpenExecutable
from ansorlite.graph.open_model import OpenModel
from ansorlite.programs.kernels import compile_candidate
from ansorlite.sketch.candidate import NAIVE
from ansorlite.task import Task
from benchmarks.conformance.run import Meaning
from tests.fuzz.graphs.conditioning import Expected
from tests.fuzz.graphs.generator import RandomGraph
from tests.fuzz.graphs.known import is_known_refusal
from tests.fuzz.graphs.values import Array

#: A model that is ready to run.
Run: TypeAlias = Callable[[Mapping[str, Array]], dict[str, Array]]
Ready: TypeAlias = Callable[[onnx.ModelProto], Run]


class Outcome(Enum):
    RIGHT = "right"
    #: Refused for a reason that is known.
    REFUSED = "refused"
    #: A wrong result.
    MISMATCH = "mismatch"
    #: A valid graph is refused.
    REFUSAL = "refusal"
    #: An exception that is not one of ansorlite's.
    EXCEPTION = "exception"
    #: A warning, or a line in the log.
    WARNING = "warning"

    @property
    def good(self) -> bool:
        return self in (Outcome.RIGHT, Outcome.REFUSED)


@dataclass(frozen=True)
class Verdict:
    outcome: Outcome
    what: str = ""


class _Watch(logging.Handler):
    """Collects what is logged."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


def _by(kernel_for: Callable[[Task], Bindable]) -> Ready:
    def ready(model: onnx.ModelProto) -> Run:
        loaded = load_any(model)
        own: Any = (
            OpenExecutable(loaded, lambda fixed, shared: compile_any(fixed, kernel_for, shared))
            if isinstance(loaded, OpenModel)
            else compile_any(loaded, kernel_for)
        )

        def run(inputs: Mapping[str, Array]) -> dict[str, Array]:
            with np.errstate(all="ignore"):
                return dict(own(dict(inputs)))

        return run

    return ready


#: What graphs are run by: default programs, compiled; loops as written, compiled; the numpy meaning of tasks.
KERNELS: Final[Mapping[str, Ready]] = {
    "default": lambda model: _by(Programs(None).kernel)(model),
    "naive": _by(lambda task: compile_candidate(task, NAIVE)),
    "meaning": _by(Meaning),
}


def check(graph: RandomGraph, ready: Ready) -> Verdict:
    """Whether ansorlite gives what the oracle does, and says nothing besides."""
    watch = _Watch()
    logger = logging.getLogger("ansorlite")
    logger.addHandler(watch)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            verdict = _verdict(graph, ready)
    finally:
        logger.removeHandler(watch)
    said = [*watch.lines, *(f"{entry.category.__name__}: {entry.message} ({entry.filename}:{entry.lineno})" for entry in caught)]
    return Verdict(Outcome.WARNING, said[0]) if verdict.outcome.good and said else verdict


def _verdict(graph: RandomGraph, ready: Ready) -> Verdict:
    try:
        run = ready(graph.model)
        for call in graph.calls:
            what = wrong_in(run(call.inputs), call.expected)
            if what:
                return Verdict(Outcome.MISMATCH, what)
    except AnsorliteError as error:
        known = is_known_refusal(graph.model, str(error))
        return Verdict(Outcome.REFUSED if known else Outcome.REFUSAL, f"{type(error).__name__}: {error}")
    except Exception as error:
        frame = error.__traceback__
        while frame is not None and frame.tb_next is not None:
            frame = frame.tb_next
        place = f"{frame.tb_frame.f_code.co_filename}:{frame.tb_lineno}" if frame is not None else "?"
        return Verdict(Outcome.EXCEPTION, f"{type(error).__name__} at {place}: {error}")
    return Verdict(Outcome.RIGHT)


def wrong_in(found: Mapping[str, Array], expected: Mapping[str, Expected]) -> str:
    """What is wrong with the first wrong result."""
    for name, own in expected.items():
        what = own.wrong(found[name]) if name in found else "it is missing"
        if what:
            return f"{name}: {what}"
    return ""
