"""A small network that tells what moves are worth, trained by Adadelta: numpy is enough for it."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]

#: As in FlexTensor: four layers of 64, and of Adadelta the rate 0.02.
_WIDTHS: Final = (64, 64, 64)
_RATE, _DECAY, _TINY = 0.02, 0.9, 1e-6


class QNetwork:
    """``(n, inputs)`` states to ``(n, outputs)``: what each action is worth."""

    def __init__(self, inputs: int, outputs: int, rng: np.random.Generator) -> None:
        widths = (inputs, *_WIDTHS, outputs)
        self._rng = rng
        self._weights = [rng.normal(0, np.sqrt(2 / max(a, 1)), (a, b)) for a, b in pairwise(widths)]
        self._biases = [np.zeros(b) for b in widths[1:]]
        self._squares = [[np.zeros_like(each) for each in (*self._weights, *self._biases)] for _ in range(2)]

    def values(self, states: Numbers) -> Numbers:
        return self._layers(states)[-1]

    def train(self, states: Numbers, actions: NDArray[np.int64], targets: Numbers, epochs: int, batch: int) -> None:
        """Towards ``(n,)`` targets of one action a state, by squared error."""
        for _ in range(epochs):
            order = self._rng.permutation(len(states))
            for begin in range(0, len(order), batch):
                part = order[begin : begin + batch]
                self._step(states[part], actions[part], targets[part])

    def _layers(self, states: Numbers) -> list[Numbers]:
        """What goes into each layer, and what comes out of the last."""
        found = [states]
        for number, (weights, bias) in enumerate(zip(self._weights, self._biases, strict=True)):
            out = found[-1] @ weights + bias
            found.append(np.maximum(out, 0.0) if number < len(self._weights) - 1 else out)
        return found

    def _step(self, states: Numbers, actions: NDArray[np.int64], targets: Numbers) -> None:
        layers = self._layers(states)
        at = np.arange(len(states))
        error = np.zeros_like(layers[-1])
        error[at, actions] = 2 * (layers[-1][at, actions] - targets) / len(states)
        gradients: list[tuple[Numbers, Numbers]] = []
        for number in range(len(self._weights) - 1, -1, -1):
            gradients.append((layers[number].T @ error, error.sum(axis=0)))
            error = (error @ self._weights[number].T) * (layers[number] > 0)
        gradients.reverse()
        parameters = [*self._weights, *self._biases]
        slopes = [*(weights for weights, _ in gradients), *(bias for _, bias in gradients)]
        for value, slope, square, moved in zip(parameters, slopes, *self._squares, strict=True):
            square *= _DECAY
            square += (1 - _DECAY) * slope**2
            change = slope * np.sqrt(moved + _TINY) / np.sqrt(square + _TINY)
            moved *= _DECAY
            moved += (1 - _DECAY) * change**2
            value -= _RATE * change
