"""One step of recurrent networks, over a batch.

``inputs`` and ``states`` are the products of the step's input and of the previous output with the weights of all gates, biases
added, ``(batch, gates * hidden)`` with the gates one after another.
"""

from __future__ import annotations

from ansorlite import te
from ansorlite.te.expr import Expr
from ansorlite.te.tensor import Tensor


def _gate(inputs: Tensor, states: Tensor, axes: tuple[Expr, ...], number: int, hidden: int) -> Expr:
    batch, unit = axes
    return inputs[batch, number * hidden + unit] + states[batch, number * hidden + unit]


def lstm_state(inputs: Tensor, states: Tensor, cell: Tensor, peephole: Tensor | None = None) -> Tensor:
    """The next cell state ``(batch, hidden)``: ``forget * cell + input * tanh(candidate)``.

    The gates are input, output, forget, candidate; ``peephole (3 * hidden,)`` weighs the cell in the first three.
    """
    hidden = cell.shape[1]

    def element(*axes: Expr) -> Expr:
        value = cell[axes]
        admit = _gate(inputs, states, axes, 0, hidden)
        forget = _gate(inputs, states, axes, 2, hidden)
        if peephole is not None:
            admit = admit + peephole[axes[1]] * value
            forget = forget + peephole[2 * hidden + axes[1]] * value
        return te.sigmoid(forget) * value + te.sigmoid(admit) * te.tanh(_gate(inputs, states, axes, 3, hidden))

    return te.compute(cell.shape, element, name="lstm_state")


def lstm_output(inputs: Tensor, states: Tensor, cell: Tensor, peephole: Tensor | None = None) -> Tensor:
    """The output ``(batch, hidden)`` for the next cell state: ``output * tanh(cell)``; see :func:`lstm_state`."""
    hidden = cell.shape[1]

    def element(*axes: Expr) -> Expr:
        gate = _gate(inputs, states, axes, 1, hidden)
        if peephole is not None:
            gate = gate + peephole[hidden + axes[1]] * cell[axes]
        return te.sigmoid(gate) * te.tanh(cell[axes])

    return te.compute(cell.shape, element, name="lstm_output")


def gru_reset(inputs: Tensor, states: Tensor, previous: Tensor) -> Tensor:
    """The previous output as far as the reset gate, the second one, lets it through."""
    hidden = previous.shape[1]
    return te.compute(previous.shape, lambda *i: te.sigmoid(_gate(inputs, states, i, 1, hidden)) * previous[i], name="gru_reset")


def gru_output(inputs: Tensor, states: Tensor, previous: Tensor, candidate: Tensor) -> Tensor:
    """The output, where ``candidate (batch, hidden)`` is the product of :func:`gru_reset` with the candidate's weights.

    The gates are update, reset, candidate; ``states`` has the first two at least.
    """
    hidden = previous.shape[1]

    def element(*axes: Expr) -> Expr:
        fresh = te.tanh(inputs[axes[0], 2 * hidden + axes[1]] + candidate[axes])
        update = te.sigmoid(_gate(inputs, states, axes, 0, hidden))
        return (1.0 - update) * fresh + update * previous[axes]

    return te.compute(previous.shape, element, name="gru_output")


def gru_linear_output(inputs: Tensor, states: Tensor, previous: Tensor) -> Tensor:
    """The output, where the reset gate works on the candidate's product instead of on what goes into it."""
    hidden = previous.shape[1]

    def element(*axes: Expr) -> Expr:
        reset = te.sigmoid(_gate(inputs, states, axes, 1, hidden))
        place = (axes[0], 2 * hidden + axes[1])
        fresh = te.tanh(inputs[place] + reset * states[place])
        update = te.sigmoid(_gate(inputs, states, axes, 0, hidden))
        return (1.0 - update) * fresh + update * previous[axes]

    return te.compute(previous.shape, element, name="gru_linear_output")
