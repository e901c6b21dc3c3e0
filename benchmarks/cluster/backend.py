"""A compiler that sleeps. What it makes is as large as a trace says, and computes what it should."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from ansorlite.measure.backend import BuiltProgram
from ansorlite.runtime.device import Memory
from ansorlite.runtime.timing import Call
from ansorlite.sketch.candidate import Candidate
from ansorlite.task import Task
from ansorlite.te.evaluate import evaluate


def candidate(number: int, seconds: float, nbytes: int = 0) -> Candidate:
    """Takes so long to compile, and so many bytes of code."""
    return Candidate(f"{number} {seconds} {nbytes}")


def build(_task: Task, candidate: Candidate) -> BuiltProgram:
    number, seconds, nbytes = candidate.trace.split()
    time.sleep(float(seconds))
    return BuiltProgram(number.encode().ljust(int(nbytes), b" "))


def load(task: Task, _artifact: bytes, arguments: Sequence[Memory]) -> Call:
    arrays = [memory.array for memory in arguments]
    inputs = len(task.dag.inputs)
    results = evaluate(task.dag, arrays[:inputs])

    def call(count: int) -> None:
        for _ in range(count):
            for output, result in zip(arrays[inputs:], results, strict=True):
                np.copyto(output, result)

    return call
