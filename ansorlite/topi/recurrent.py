"""One step of recurrent networks, over a batch.

``inputs`` and ``states`` are the products of the step's input and of the previous output with the weights of all gates, biases
added, ``(batch, gates * hidden)`` with the gates one after another. ``activations`` are those of ONNX's definitions, ``f`` (of
the gates), ``g`` and ``h``; what goes into those of gates and candidates, but not into ``h``, is limited to ``clip`` either way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Final, NamedTuple

from ansorlite import te
from ansorlite.te.expr import Expr
from ansorlite.te.tensor import Tensor
from ansorlite.topi.activations import softplus_of


class Curve(Enum):
    """A function of one number, by ONNX's name for it."""

    AFFINE = "Affine"
    ELU = "Elu"
    HARD_SIGMOID = "HardSigmoid"
    LEAKY_RELU = "LeakyRelu"
    RELU = "Relu"
    SCALED_TANH = "ScaledTanh"
    SIGMOID = "Sigmoid"
    SOFTPLUS = "Softplus"
    SOFTSIGN = "Softsign"
    TANH = "Tanh"
    THRESHOLDED_RELU = "ThresholdedRelu"


class Activation(NamedTuple):
    """A curve with its parameters; 0 those that it does not have."""

    curve: Curve
    alpha: float = 0.0
    beta: float = 0.0


_FORMULAS: Final[Mapping[Curve, Callable[[Expr, float, float], Expr]]] = {
    Curve.AFFINE: lambda v, alpha, beta: v * alpha + beta,
    Curve.ELU: lambda v, alpha, _: te.if_then_else(v >= 0, v, (te.exp(v) - 1) * alpha),
    Curve.HARD_SIGMOID: lambda v, alpha, beta: te.maximum(te.minimum(v * alpha + beta, 1), 0),
    Curve.LEAKY_RELU: lambda v, alpha, _: te.if_then_else(v >= 0, v, v * alpha),
    Curve.RELU: lambda v, *_: te.maximum(v, 0),
    Curve.SCALED_TANH: lambda v, alpha, beta: te.tanh(v * beta) * alpha,
    Curve.SIGMOID: lambda v, *_: te.sigmoid(v),
    Curve.SOFTPLUS: lambda v, *_: softplus_of(v),
    Curve.SOFTSIGN: lambda v, *_: v / (te.abs(v) + 1),
    Curve.TANH: lambda v, *_: te.tanh(v),
    Curve.THRESHOLDED_RELU: lambda v, alpha, _: te.if_then_else(v >= alpha, v, te.cast(0, v.dtype)),
}

Activations = tuple[Activation, ...]

SIGMOID: Final = Activation(Curve.SIGMOID)
TANH: Final = Activation(Curve.TANH)


def _activated(activation: Activation, value: Expr, clip: float | None = None) -> Expr:
    if clip is not None:
        value = te.maximum(te.minimum(value, clip), -clip)
    curve, alpha, beta = activation
    return _FORMULAS[curve](value, alpha, beta)


def _gate(inputs: Tensor, states: Tensor, axes: tuple[Expr, ...], number: int, hidden: int) -> Expr:
    batch, unit = axes
    return inputs[batch, number * hidden + unit] + states[batch, number * hidden + unit]


def within(lengths: Tensor, *, steps: int) -> Tensor:
    """Whether each step is one of its sequence's, whose ``lengths (batch,)`` are: ``(steps * batch, 1)``."""
    (batch,) = lengths.shape

    def element(row: Expr, _: Expr) -> Expr:
        return row // batch < te.cast(lengths[row % batch], "int64")

    return te.compute((steps * batch, 1), element, name="within")


def rnn_output(inputs: Tensor, states: Tensor, *, activations: Activations = (TANH,), clip: float | None = None) -> Tensor:
    """The output ``(batch, hidden)`` of a network without gates."""
    (f,) = activations
    return te.compute(inputs.shape, lambda *i: _activated(f, inputs[i] + states[i], clip), name="rnn_output")


def lstm_state(
    inputs: Tensor,
    states: Tensor,
    cell: Tensor,
    peephole: Tensor | None = None,
    *,
    activations: Activations = (SIGMOID, TANH, TANH),
    clip: float | None = None,
    coupled: bool = False,
) -> Tensor:
    """The next cell state ``(batch, hidden)``: ``forget * cell + input * tanh(candidate)``.

    The gates are input, output, forget, candidate; ``peephole (3 * hidden,)`` weighs the cell in the first three. Where they are
    ``coupled``, ``forget`` is what ``input`` lacks of 1.
    """
    hidden = cell.shape[1]
    f, g, _ = activations

    def element(*axes: Expr) -> Expr:
        value = cell[axes]
        admit = _gate(inputs, states, axes, 0, hidden)
        forget = _gate(inputs, states, axes, 2, hidden)
        if peephole is not None:
            admit = admit + peephole[axes[1]] * value
            forget = forget + peephole[2 * hidden + axes[1]] * value
        admitted = _activated(f, admit, clip)
        kept = 1.0 - admitted if coupled else _activated(f, forget, clip)
        return kept * value + admitted * _activated(g, _gate(inputs, states, axes, 3, hidden), clip)

    return te.compute(cell.shape, element, name="lstm_state")


def lstm_output(
    inputs: Tensor,
    states: Tensor,
    cell: Tensor,
    peephole: Tensor | None = None,
    *,
    activations: Activations = (SIGMOID, TANH, TANH),
    clip: float | None = None,
) -> Tensor:
    """The output ``(batch, hidden)`` for the next cell state: ``output * tanh(cell)``; see :func:`lstm_state`."""
    hidden = cell.shape[1]
    f, _, h = activations

    def element(*axes: Expr) -> Expr:
        gate = _gate(inputs, states, axes, 1, hidden)
        if peephole is not None:
            gate = gate + peephole[hidden + axes[1]] * cell[axes]
        return _activated(f, gate, clip) * _activated(h, cell[axes])

    return te.compute(cell.shape, element, name="lstm_output")


def gru_reset(
    inputs: Tensor,
    states: Tensor,
    previous: Tensor,
    *,
    activations: Activations = (SIGMOID, TANH),
    clip: float | None = None,
) -> Tensor:
    """The previous output as far as the reset gate, the second one, lets it through."""
    hidden = previous.shape[1]

    def element(*axes: Expr) -> Expr:
        return _activated(activations[0], _gate(inputs, states, axes, 1, hidden), clip) * previous[axes]

    return te.compute(previous.shape, element, name="gru_reset")


def gru_output(
    inputs: Tensor,
    states: Tensor,
    previous: Tensor,
    candidate: Tensor,
    *,
    activations: Activations = (SIGMOID, TANH),
    clip: float | None = None,
) -> Tensor:
    """The output, where ``candidate (batch, hidden)`` is the product of :func:`gru_reset` with the candidate's weights.

    The gates are update, reset, candidate; ``states`` has the first two at least.
    """
    hidden = previous.shape[1]
    f, g = activations

    def element(*axes: Expr) -> Expr:
        fresh = _activated(g, inputs[axes[0], 2 * hidden + axes[1]] + candidate[axes], clip)
        update = _activated(f, _gate(inputs, states, axes, 0, hidden), clip)
        return (1.0 - update) * fresh + update * previous[axes]

    return te.compute(previous.shape, element, name="gru_output")


def gru_linear_output(
    inputs: Tensor,
    states: Tensor,
    previous: Tensor,
    *,
    activations: Activations = (SIGMOID, TANH),
    clip: float | None = None,
) -> Tensor:
    """The output, where the reset gate works on the candidate's product instead of on what goes into it."""
    hidden = previous.shape[1]
    f, g = activations

    def element(*axes: Expr) -> Expr:
        reset = _activated(f, _gate(inputs, states, axes, 1, hidden), clip)
        place = (axes[0], 2 * hidden + axes[1])
        fresh = _activated(g, inputs[place] + reset * states[place], clip)
        update = _activated(f, _gate(inputs, states, axes, 0, hidden), clip)
        return (1.0 - update) * fresh + update * previous[axes]

    return te.compute(previous.shape, element, name="gru_linear_output")
