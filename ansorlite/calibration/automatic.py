"""Calibrating by itself, before the first trial of a tuning, on a processor of which nothing is known."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Final

import llvmlite.binding as llvm

from ansorlite.calibration.calibrate import calibrate
from ansorlite.machine.families import FAMILIES, shipped
from ansorlite.machine.kept import keep, kept
from ansorlite.target import Target, obstacle

#: Environment variable: ``0`` never calibrates without being asked to.
CALIBRATE_VARIABLE: Final = "ANSORLITE_CALIBRATE"

#: A tuning of fewer trials, or of less time in seconds, is over too soon to begin with ten seconds of measuring.
_TRIALS: Final = 64
_SECONDS: Final = 120.0


def wanted(target: Target, trials: int, seconds: float | None) -> bool:
    """Whether a tuning of so many trials, in so many seconds if those are limited, should begin with calibrating ``target``.

    So it is where this is the machine, nobody has measured it, no row of constants is shipped for its processor, and ``target``
    has not been given one of its own.
    """
    if os.environ.get(CALIBRATE_VARIABLE) == "0" or trials < _TRIALS or (seconds is not None and seconds < _SECONDS):
        return False
    unknown = target.cpu not in FAMILIES and kept(target.cpu) is None
    given = target.machine != shipped(target.cpu, target.features, target.vector_bytes)
    return unknown and not given and target.cpu == llvm.get_host_cpu_name() and obstacle(target) is None


def calibrated(target: Target) -> Target:
    """``target`` with what is measured now, which is also kept."""
    found = calibrate(target, target.machine)
    keep(target.cpu, found)
    return replace(target, machine=found)
