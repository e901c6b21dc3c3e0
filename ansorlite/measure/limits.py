"""How long a program may take, and which one it is timed beside."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ansorlite.measure.protocol import Phase
from ansorlite.measure.roles import Artifact, Rival
from ansorlite.measure.settings import MeasureSettings
from ansorlite.sketch.candidate import NAIVE


@dataclass(frozen=True)
class RunLimits:
    """Of one run.

    Attributes:
        seconds: that it may spend in each phase.
        rival: what it is stopped early against; the naive program never is.
        once: whether a first call that is not short says enough: of the naive program, which is for comparison only.
    """

    seconds: Mapping[Phase, float]
    rival: Rival | None
    once: bool


def run_limits(settings: MeasureSettings, artifact: Artifact, rival: Rival | None) -> RunLimits:
    """The limits of running ``artifact`` where ``rival`` is the best known."""
    naive = artifact.candidate == NAIVE
    running = settings.naive_seconds if naive else settings.run_seconds
    checking = settings.check_seconds
    if rival is not None:
        patience = settings.naive_patience if naive else settings.patience
        running = min(running, max(patience, settings.slow_factor * rival.now))
        checking += 2 * rival.now
    seconds = {Phase.WORKING: settings.prepare_seconds, Phase.RUNNING: running, Phase.CHECKING: checking}
    return RunLimits(seconds, None if naive else rival, once=naive and rival is not None)
