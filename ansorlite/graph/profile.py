"""What the steps of a model cost in place: one after the other, on data that the step before has left in the caches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ansorlite.export.description import StepFacts
from ansorlite.runtime.step_timing import step_medians

if TYPE_CHECKING:
    from ansorlite.runtime.peaks import Peaks


@dataclass(frozen=True)
class StepProfile:
    """One step of a model.

    Attributes:
        facts: what it computes, of which task, by which program, and what its record says.
        seconds: median of its time in place.
        share: of the sum over all steps.
        roofline: the least time for its operations and for its inputs and output read and written once, over ``seconds``.
    """

    facts: StepFacts
    seconds: float
    share: float
    roofline: float

    @property
    def flops_per_second(self) -> float:
        return self.facts.flops / self.seconds

    @property
    def bytes_per_second(self) -> float:
        return self.facts.bytes / self.seconds


@dataclass(frozen=True)
class Profile:
    """A model's time, by steps.

    Attributes:
        steps: in running order.
        peaks: of the machine, at the time.
        runs: how often the model ran.
    """

    steps: tuple[StepProfile, ...]
    peaks: Peaks
    runs: int

    @cached_property
    def seconds(self) -> float:
        """Of all steps."""
        return sum(step.seconds for step in self.steps)


def measure_profile(run: Callable[[], Sequence[int]], facts: Sequence[StepFacts], peaks: Peaks, runs: int) -> Profile:
    """The profile of a model.

    Args:
        run: runs the model once; each step's nanoseconds.
        runs: how often it is called, after once to warm up.

    Raises:
        ArgumentError: ``runs`` is less than 1.
    """
    # A step that takes no time that the clock can see takes a nanosecond.
    seconds = np.maximum(step_medians(run, runs), 1.0) * 1e-9
    shares = seconds / seconds.sum()
    return Profile(
        tuple(
            StepProfile(fact, float(time), float(share), peaks.seconds(fact.flops, fact.bytes) / float(time))
            for fact, time, share in zip(facts, seconds, shares, strict=True)
        ),
        peaks,
        runs,
    )
