"""FlexTensor's walk (Zheng et al., ASPLOS 2020; KnowingNothing/FlexTensor): from good points, in the direction that a network,
learnt from the outcomes of earlier steps, thinks is worth most."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ansorlite.cost_model import CostModel
from ansorlite.evolution import keys
from ansorlite.search.arm import Arm
from ansorlite.search.measured import MeasuredSearch, Rows
from ansorlite.search.protocol import SearchProblem
from ansorlite.search.q_network import QNetwork


@dataclass(frozen=True)
class WalkSettings:
    """As FlexTensor has them, but for ``first``: there, 400 random points come first.

    Attributes:
        first: random programs before the walk.
        discount: of what comes after a step.
        epochs, batch, samples: of training after each batch, on at most so many of the latest steps.
        saves: the network that says what comes after a step is a copy, made anew after so many trainings.
        learnt: whether the network is asked; else all directions are random.
    """

    first: int = 16
    discount: float = 0.9
    epochs: int = 20
    batch: int = 32
    samples: int = 1000
    saves: int = 2
    learnt: bool = True


@dataclass
class _Walk:
    """The walk in one sketch.

    Attributes:
        pending: of steps that are being measured, by the key of where they lead: the row they begin at, its latency, the
        direction. steps: those that were measured: states, directions, rewards, states after them.
    """

    network: QNetwork
    target: QNetwork
    seen: int = 0
    trained: int = 0
    pending: dict[bytes, tuple[NDArray[np.float64], float, int]] = field(default_factory=dict)
    steps: list[tuple[NDArray[np.float64], int, float, NDArray[np.float64]]] = field(default_factory=list)


class FlexTensorSearch(MeasuredSearch):
    """A start is a random point, by chance the better the likelier, else the best; a step goes to what it leads to.

    The reward is tanh of ln(from / to), at least 0: there it is of the seconds themselves, next to nothing for a fast kernel.
    """

    def __init__(
        self, problem: SearchProblem, model: CostModel, rng: np.random.Generator, settings: WalkSettings = WalkSettings()
    ) -> None:
        super().__init__(problem, model, rng)
        self._settings = settings
        self._walks: dict[Arm, _Walk] = {}
        for arm in self._arms:
            width = arm.space.embed(np.zeros((1, len(arm.space.sizes)), np.int64)).shape[1]
            network = QNetwork(width, len(arm.space.directions), rng)
            self._walks[arm] = _Walk(network, copy.deepcopy(network))

    def choose(self, arm: Arm, n: int) -> Rows:
        walk = self._walks[arm]
        self._learn(arm, walk)
        ran = np.flatnonzero(np.isfinite(arm.latencies))
        if len(arm.latencies) < self._settings.first or not len(ran) or not len(arm.space.directions):
            return arm.rows[:0]
        taken = set(arm.taken)
        chosen = [arm.rows[:0]]
        for _ in range(2 * n):
            if len(chosen) > n:
                break
            start = self._start(arm.latencies, ran)
            row = self._step(arm, walk, start, taken)
            if row is not None:
                chosen.append(row[None])
        return np.concatenate(chosen)

    def _start(self, latencies: NDArray[np.float64], ran: NDArray[np.int64]) -> int:
        """The position of a point."""
        best = int(ran[latencies[ran].argmin()])
        start = int(self._rng.choice(ran))
        worse = latencies[start] / latencies[best] - 1.0
        return start if self._rng.random() < np.exp(-0.5 * worse) else best

    def _step(self, arm: Arm, walk: _Walk, start: int, taken: set[bytes]) -> Rows | None:
        """Where the walk goes from a point; ``None`` if nothing around it is new."""
        row = arm.rows[start]
        around = arm.space.directions.around(row)
        row_keys = keys(arm.space, around)
        open_ = arm.space.valid(around) & np.array([key not in taken for key in row_keys])
        if not open_.any():
            return None
        state = arm.space.embed(row[None])
        chance = max(0.8 * np.exp(-0.01 * len(arm.latencies)), 0.1)
        if not self._settings.learnt or self._rng.random() < chance:
            direction = int(self._rng.choice(np.flatnonzero(open_)))
        else:
            direction = int(np.where(open_, walk.network.values(state)[0], -np.inf).argmax())
        taken.add(row_keys[direction])
        walk.pending[row_keys[direction]] = state[0], float(arm.latencies[start]), direction
        there: Rows = around[direction]
        return there

    def _learn(self, arm: Arm, walk: _Walk) -> None:
        """Take up the outcomes of pending steps, and train."""
        fresh, latencies = arm.rows[walk.seen :], arm.latencies[walk.seen :]
        walk.seen += len(fresh)
        states = arm.space.embed(fresh)
        before = len(walk.steps)
        for key, state, latency in zip(keys(arm.space, fresh), states, latencies.tolist(), strict=True):
            if key in walk.pending:
                begin, took, direction = walk.pending.pop(key)
                walk.steps.append((begin, direction, float(np.tanh(max(np.log(took) - np.log(latency), 0.0))), state))
        if len(walk.steps) == before or not self._settings.learnt:
            return
        settings = self._settings
        latest = walk.steps[-settings.samples :]
        begins, ends = np.stack([step[0] for step in latest]), np.stack([step[3] for step in latest])
        directions = np.array([step[1] for step in latest], np.int64)
        rewards = np.array([step[2] for step in latest])
        targets = rewards + settings.discount * walk.target.values(ends).max(axis=1)
        walk.network.train(begins, directions, targets, settings.epochs, settings.batch)
        walk.trained += 1
        if walk.trained % settings.saves == 0:
            walk.target = copy.deepcopy(walk.network)
