"""A backend without a compiler: the trace of a candidate says what its program does, or what goes wrong."""

from __future__ import annotations

import ctypes
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ansorlite.measure.backend import BuiltProgram
from ansorlite.runtime.device import Memory
from ansorlite.runtime.timing import Call
from ansorlite.sketch.candidate import NAIVE, Candidate
from ansorlite.task import Task
from ansorlite.te.evaluate import evaluate


def _eat_memory() -> None:
    eaten = []
    while True:
        eaten.append(np.empty(1 << 24, np.uint8))


def _crash() -> None:
    sys.stderr.write("about to read address zero\n")
    sys.stderr.flush()
    ctypes.string_at(0)


def faked(name: str, value: int = 5) -> Candidate:
    """The candidate that does what ``name`` says."""
    return Candidate(f"{name}: {value}")


def build(_task: Task, candidate: Candidate) -> BuiltProgram:
    name, _, value = candidate.trace.partition(": ")
    match name:
        case "build raises":
            raise ValueError(f"row {value} cannot be compiled")
        case "build hangs":
            time.sleep(1000)
        case "build crashes":
            _crash()
        case "build eats memory":
            _eat_memory()
        case "build prints":
            print("a line on standard output")
            os.write(1, b"and one from native code\n")
    return BuiltProgram(candidate.trace.encode(), key=f"key of {candidate.trace}")


def load(task: Task, artifact: bytes, arguments: Sequence[Memory]) -> Call:
    arrays = [memory.array for memory in arguments]
    name, _, number = ("naive: 0" if artifact.decode() == NAIVE.trace else artifact.decode()).partition(": ")
    value = int(number)
    inputs = arrays[: len(task.dag.inputs)]
    outputs = arrays[len(task.dag.inputs) :]
    results = evaluate(task.dag, inputs)
    calls = 0

    def call(count: int) -> None:
        for _ in range(count):
            once()

    def once() -> None:
        nonlocal calls
        calls += 1
        for output, result in zip(outputs, results, strict=True):
            output[...] = result
        match name:
            case "sleeps":
                time.sleep(value / 1000)
            case "sleeps once":
                time.sleep(value / 1000 if calls == 1 else 0)
            case "naive":
                time.sleep(0.1)
            case "waits":
                Path(os.environ["FAKE_BACKEND_PID"]).write_text(str(os.getpid()))
                time.sleep(1000)
            case "run raises":
                raise RuntimeError("the program does not like this")
            case "run hangs":
                time.sleep(1000)
            case "second call hangs":
                time.sleep(1000 if calls > 1 else 0)
            case "run crashes":
                _crash()
            case "run eats memory":
                _eat_memory()
            case "wrong":
                outputs[0].flat[value] += 1

    def leave_one_out(_count: int) -> None:
        outputs[0].flat[1:] = results[0].flat[1:]

    return leave_one_out if name == "leaves one out" else call
