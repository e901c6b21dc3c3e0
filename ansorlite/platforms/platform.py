"""A platform: how programs for one kind of machine are derived, judged, compiled and run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ansorlite.codegen.limits import Limits
from ansorlite.codegen.object import Compiled
from ansorlite.loops.kernel_module import KernelModule
from ansorlite.loops.passes import LoopPass
from ansorlite.runtime.device import Device
from ansorlite.sketch.constraint import Constraint
from ansorlite.sketch.state import Rule
from ansorlite.target import Target

if TYPE_CHECKING:
    from ansorlite.cost_model.protocol import Prior


@dataclass(frozen=True)
class Platform:
    """One kind of machine. The facts of one machine of the kind, what it costs there among them, are a :class:`Target`.

    Attributes:
        rules: that derive sketches, in the order in which they are asked.
        limits: of what the emitter makes.
        constraints: what its programs must be to be proposed at all.
        prior: the analytical cost model of a target, with the constants of that.
        passes: over the loops of each function of a kernel, in order. What comes out are the loops that run.
        emitter: makes code of a kernel module.
        device: what loads, runs and times that code.
    """

    rules: tuple[Rule, ...]
    limits: Limits
    constraints: tuple[Constraint, ...]
    prior: Callable[[Target], Prior]
    passes: tuple[LoopPass, ...]
    emitter: Callable[[KernelModule, Target, Limits], Compiled]
    device: Callable[[Target], Device]
