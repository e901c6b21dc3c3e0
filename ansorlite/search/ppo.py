"""Chameleon's adaptive exploration (Ahn et al., ICLR 2020; anony-sub/chameleon): a policy, learnt by proximal policy
optimisation, walks through the space under the model. The networks are so small that numpy is enough for them."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ansorlite.search.explorers import Explorer, Found, Rows, Score, Scores
from ansorlite.sketch.space import Space

Numbers = NDArray[np.float64]

#: What can be done to a hole: one down, nothing, one up.
_ACTIONS: Final = 3
_HIDDEN: Final = (20, 20)
#: Of Adam, besides the rate.
_FIRST, _SECOND, _TINY = 0.9, 0.999, 1e-8


@dataclass(frozen=True)
class PolicyWalk:
    """Makes explorers whose walkers move in every hole at once, as a policy says; it is rewarded by what the model says.

    Attributes:
        walkers, steps: how many, of all sketches together, and how far in a round.
        horizon: the policy learns after so many steps of all.
        idle: a round ends after so many steps that put nothing new among the best.
        still: a walker in which this share of the holes stay begins anew.
        rate, epochs, batch: of learning; there, batches are of 32, and learning takes as long as all else.
        discount, smoothing: of rewards to come; of advantages.
        clip: how far a new policy may differ from the one that walked.
        value, entropy: the weights of their losses.
        keep: at most how many rows are handed on.
    """

    walkers: int = 128
    steps: int = 500
    horizon: int = 16
    idle: int = 50
    still: float = 0.75
    rate: float = 1e-3
    epochs: int = 3
    batch: int = 256
    discount: float = 0.9
    smoothing: float = 0.99
    clip: float = 0.2
    value: float = 1.0
    entropy: float = 0.3
    keep: int = 256

    def __call__(self, space: Space, rng: np.random.Generator) -> Explorer:
        return _Walkers(space, rng, self)


class _Step(NamedTuple):
    """Of all walkers: where they were, what they did and how likely that was, what it was worth, and whether it was their
    last."""

    states: Numbers
    actions: Rows
    logs: Numbers
    values: Numbers
    rewards: Numbers
    ended: NDArray[np.bool_]


class _Walkers:
    def __init__(self, space: Space, rng: np.random.Generator, settings: PolicyWalk) -> None:
        self._space, self._rng, self._settings = space, rng, settings
        holes = len(space.sizes)
        self._policy = _Network(holes, _ACTIONS * holes, rng, settings.rate)
        self._critic = _Network(holes, 1, rng, settings.rate)

    def __call__(self, score: Score, best: Rows, effort: float, taken: Set[bytes]) -> tuple[Rows, Scores]:
        settings, space = self._settings, self._space
        count = max(8, round(effort * settings.walkers))
        rows = np.concatenate([best[: count // 4], space.sample(count - min(len(best), count // 4), self._rng)])
        found = Found(space, taken, settings.keep)
        scores = found.scored(score, rows)
        if not len(space.sizes):
            return found.rows()
        trail: list[_Step] = []
        idle = 0
        for _ in range(settings.steps):
            states = self._states(rows)
            logits = self._policy.outputs(states)
            chances = _softmax(logits)
            actions = (self._rng.random((count, len(space.sizes), 1)) > chances.cumsum(axis=2)[:, :, :-1]).sum(axis=2)
            moved = np.clip(rows + actions - 1, 0, space.sizes - 1)
            reached = found.scored(score, moved)
            valid = reached > -np.inf
            rows = np.where(valid[:, None], moved, rows)
            scores = np.where(valid, reached, scores)
            ended = (actions == 1).mean(axis=1) >= settings.still
            log = _log_of(chances, actions)
            trail.append(_Step(states, actions, log, self._critic.outputs(states)[:, 0], scores.copy(), ended))
            if ended.any():
                rows[ended] = space.sample(int(ended.sum()), self._rng)
                scores[ended] = found.scored(score, rows[ended])
            if len(trail) == settings.horizon:
                self._learn(trail, self._critic.outputs(self._states(rows))[:, 0])
                trail = []
            idle = 0 if found.improved() else idle + 1
            if idle >= settings.idle:
                break
        return found.rows()

    def _states(self, rows: Rows) -> Numbers:
        return rows / np.maximum(self._space.sizes - 1, 1)

    def _learn(self, trail: list[_Step], after: Numbers) -> None:
        """Policy and critic, from some steps of all walkers; ``after``: what the critic says of where they are now."""
        settings = self._settings
        rewards = np.stack([step.rewards for step in trail])
        finite = np.isfinite(rewards)
        if not finite.any():
            return
        # What is not valid is as bad as the worst; scores of a model have a scale of their own.
        rewards = np.where(finite, rewards, rewards[finite].min())
        rewards = (rewards - rewards.mean()) / (rewards.std() + 1e-9)
        advantages, running, ahead = np.zeros_like(rewards), np.zeros(rewards.shape[1]), after
        for at in range(len(trail) - 1, -1, -1):
            goes_on = ~trail[at].ended
            surprise = rewards[at] + settings.discount * ahead * goes_on - trail[at].values
            running = surprise + settings.discount * settings.smoothing * running * goes_on
            advantages[at], ahead = running, trail[at].values
        values = np.stack([step.values for step in trail]).ravel()
        states, actions = np.concatenate([step.states for step in trail]), np.concatenate([step.actions for step in trail])
        logs, gains = np.concatenate([step.logs for step in trail]), advantages.ravel()
        returns = gains + values
        gains = (gains - gains.mean()) / (gains.std() + 1e-9)
        for _ in range(settings.epochs):
            order = self._rng.permutation(len(states))
            for begin in range(0, len(order), settings.batch):
                part = order[begin : begin + settings.batch]
                self._improve(states[part], actions[part], logs[part], gains[part])
                error = self._critic.outputs(states[part])[:, 0] - returns[part]
                self._critic.descend(states[part], settings.value * 2 * error[:, None] / len(part))

    def _improve(self, states: Numbers, actions: Rows, logs: Numbers, gains: Numbers) -> None:
        """One step along the gradient of the clipped objective and of the entropy."""
        settings = self._settings
        chances = _softmax(self._policy.outputs(states))
        ratio = np.exp(_log_of(chances, actions) - logs)
        counts = np.where(gains > 0, ratio < 1 + settings.clip, ratio > 1 - settings.clip)
        taken = np.eye(_ACTIONS)[actions]
        slope = -(gains * ratio * counts)[:, None, None] * (taken - chances)
        log = np.log(np.maximum(chances, 1e-30))
        entropy = -(chances * log).sum(axis=2, keepdims=True)
        slope += settings.entropy * chances * (log + entropy) / chances.shape[1]
        self._policy.descend(states, slope.reshape(len(states), -1) / len(states))


def _softmax(logits: Numbers) -> Numbers:
    """``(n, holes * actions)`` to ``(n, holes, actions)``."""
    shaped = logits.reshape(len(logits), -1, _ACTIONS)
    powers = np.exp(shaped - shaped.max(axis=2, keepdims=True))
    return np.asarray(powers / powers.sum(axis=2, keepdims=True))


def _log_of(chances: Numbers, actions: Rows) -> Numbers:
    """``(n,)``: the logarithm of how likely all actions of a walker are together."""
    each = np.take_along_axis(chances, actions[:, :, None], axis=2)[:, :, 0]
    return np.asarray(np.log(np.maximum(each, 1e-30)).sum(axis=1))


class _Network:
    """Two hidden layers of 20 with tanh, trained by Adam."""

    def __init__(self, inputs: int, outputs: int, rng: np.random.Generator, rate: float) -> None:
        widths = (inputs, *_HIDDEN, outputs)
        self._parameters: list[Numbers] = []
        for a, b in pairwise(widths):
            self._parameters += [rng.normal(0, 1 / np.sqrt(max(a, 1)), (a, b)), np.zeros(b)]
        self._moments = [[np.zeros_like(each) for each in self._parameters] for _ in range(2)]
        self._rate = rate
        self._taken = 0

    def outputs(self, states: Numbers) -> Numbers:
        return self._layers(states)[-1]

    def _layers(self, states: Numbers) -> list[Numbers]:
        """What goes into each layer, and what comes out of the last."""
        found = [states]
        for layer in range(0, len(self._parameters), 2):
            out = found[-1] @ self._parameters[layer] + self._parameters[layer + 1]
            found.append(np.tanh(out) if layer + 2 < len(self._parameters) else out)
        return found

    def descend(self, states: Numbers, slope: Numbers) -> None:
        """One step of Adam, from the derivative of the loss by the outputs, ``(n, outputs)``."""
        layers = self._layers(states)
        slopes: list[Numbers] = []
        for layer in range(len(layers) - 2, -1, -1):
            slopes = [layers[layer].T @ slope, slope.sum(axis=0), *slopes]
            slope = (slope @ self._parameters[2 * layer].T) * (1 - layers[layer] ** 2)
        self._taken += 1
        for value, change, first, second in zip(self._parameters, slopes, *self._moments, strict=True):
            first += (1 - _FIRST) * (change - first)
            second += (1 - _SECOND) * (change**2 - second)
            mean, square = first / (1 - _FIRST**self._taken), second / (1 - _SECOND**self._taken)
            value -= self._rate * mean / (np.sqrt(square) + _TINY)
