"""RNN, GRU and LSTM: one product for the inputs of all steps, then the steps one after another, each the same few tasks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeAlias

import numpy as np
from onnx import AttributeProto

from ansorlite.frontends.onnx.node import NodeView, UnsupportedError
from ansorlite.frontends.onnx.operators.shape import cut
from ansorlite.graph.constants import splat
from ansorlite.te import dtypes
from ansorlite.topi import recurrent as topi
from ansorlite.topi.elementwise import add, tanh
from ansorlite.topi.matmul import gemm
from ansorlite.topi.shape import concat, reshape, transpose

#: Steps that a network may be written out for.
_MOST_STEPS: Final = 1024


@dataclass(frozen=True)
class _Cell:
    """One direction of a network.

    Attributes:
        hidden: units.
        recurrent: weights ``(gates * hidden, hidden)`` of the previous output.
        bias: of the products with ``recurrent``, ``(gates * hidden,)``.
        peephole: of an LSTM, ``(3 * hidden,)``.
    """

    node: NodeView
    hidden: int
    recurrent: str
    bias: str
    peephole: str | None = None

    def product(self, previous: str, weights: str, bias: str) -> str:
        return self.node.apply(add, self.node.apply(gemm, previous, weights, transpose_b=True), bias)


#: (cell, products of the step's input, output and cell state of the step before) → output and cell state.
Step: TypeAlias = Callable[[_Cell, str, str, str], tuple[str, str]]


def _rnn(cell: _Cell, inputs: str, output: str, state: str) -> tuple[str, str]:
    total = cell.node.apply(add, inputs, cell.product(output, cell.recurrent, cell.bias))
    return cell.node.apply(tanh, total), state


def _lstm(cell: _Cell, inputs: str, output: str, state: str) -> tuple[str, str]:
    states = cell.product(output, cell.recurrent, cell.bias)
    more = [cell.peephole] if cell.peephole else []
    state = cell.node.apply(topi.lstm_state, inputs, states, state, *more)
    return cell.node.apply(topi.lstm_output, inputs, states, state, *more), state


def _gru(cell: _Cell, inputs: str, output: str, state: str) -> tuple[str, str]:
    node, hidden = cell.node, cell.hidden
    if node.integer("linear_before_reset", 0):
        states = cell.product(output, cell.recurrent, cell.bias)
        return node.apply(topi.gru_linear_output, inputs, states, output), state
    gates, candidate = (
        (cut(node, cell.recurrent, 0, begin, count), cut(node, cell.bias, 0, begin, count))
        for begin, count in ((0, 2 * hidden), (2 * hidden, hidden))
    )
    states = cell.product(output, *gates)
    reset = node.apply(topi.gru_reset, inputs, states, output)
    return node.apply(topi.gru_output, inputs, states, output, cell.product(reset, *candidate)), state


def _network(node: NodeView, gates: int, activations: tuple[str, ...], step: Step) -> tuple[str, ...]:
    _check(node, activations)
    batch_first = bool(node.integer("layout", 0))
    x = node.apply(transpose, node.input(0), axes=(1, 0, 2)) if batch_first else node.input(0)
    shapes = [node.value(position).shape for position in range(3)]
    if any(len(shape) != 3 for shape in shapes):
        raise node.error(f"its data and weights must each have 3 dimensions, but their shapes are {shapes}")
    steps, batch, width = node.builder.value(x).shape
    directions, _, hidden = shapes[2]
    direction = node.text("direction", "forward")
    if steps > _MOST_STEPS:
        raise UnsupportedError(f"more than {_MOST_STEPS} steps")
    if directions != 1 + (direction == "bidirectional"):
        raise node.error(f"direction {direction!r} does not fit weights for {directions} directions")
    flat = node.apply(reshape, x, shape=(steps * batch, width))
    ways = [_direction(node, n, flat, (steps, batch, hidden, gates), step) for n in range(directions)]
    sequence = ways[0][0] if directions == 1 else node.apply(concat, *(way[0] for way in ways), axis=1)
    columns = list(zip(*ways, strict=True))[1:]
    finals = [column[0] if directions == 1 else node.apply(concat, *column, axis=0) for column in columns]
    if batch_first:
        sequence = node.apply(transpose, sequence, axes=(2, 0, 1, 3))
        finals = [node.apply(transpose, final, axes=(1, 0, 2)) for final in finals]
    return sequence, *finals


def _check(node: NodeView, activations: tuple[str, ...]) -> None:
    present = {attribute.name: attribute for attribute in node.proto.attribute}
    if {"clip", "activation_alpha", "activation_beta"} & present.keys() or node.integer("input_forget", 0):
        raise UnsupportedError("clipping, coupled gates, or activations with parameters")
    chosen = present.get("activations")
    if chosen is not None and chosen.type == AttributeProto.STRINGS:
        names = tuple(name.decode(errors="replace").lower() for name in chosen.strings)
        if names[: len(activations)] != activations or set(names) - set(activations):
            raise UnsupportedError(f"activations {', '.join(names)}")
    if node.has(4):
        steps = node.value(0).shape[1 if node.integer("layout", 0) else 0]
        if (node.array(4) != steps).any():
            raise UnsupportedError("sequences of different lengths")


def _direction(node: NodeView, number: int, x: str, sizes: tuple[int, int, int, int], step: Step) -> tuple[str, str, str]:
    """(all outputs, last output, last cell state) of one direction, with dimensions for the direction."""
    steps, batch, hidden, gates = sizes
    dtype = dtypes.NUMPY[node.value(0).dtype]
    backwards = node.text("direction", "forward") == "reverse" or number == 1

    def own(position: int) -> str:
        """Of an input with one entry for each direction, the one of this direction."""
        name = cut(node, node.input(position), 0, number, 1)
        return node.apply(reshape, name, shape=node.builder.value(name).shape[1:])

    def initial(position: int) -> str:
        if not node.has(position):
            return node.constant(splat(dtype.type(0), (batch, hidden)))
        if node.integer("layout", 0):
            name = cut(node, node.input(position), 1, number, 1)
            return node.apply(reshape, name, shape=(batch, hidden))
        return own(position)

    biases = own(3) if node.has(3) else node.constant(splat(dtype.type(0), (2 * gates * hidden,)))
    inner, outer = (cut(node, biases, 0, begin, gates * hidden) for begin in (0, gates * hidden))
    lstm = step is _lstm
    cell = _Cell(node, hidden, own(2), outer, own(7) if lstm and node.has(7) else None)
    inputs = node.apply(add, node.apply(gemm, x, own(1), transpose_b=True), inner)
    output, state = initial(5), initial(6) if lstm else node.constant(np.zeros((batch, hidden), dtype))
    outputs = []
    for t in reversed(range(steps)) if backwards else range(steps):
        output, state = step(cell, cut(node, inputs, 0, t * batch, batch), output, state)
        outputs.append(node.apply(reshape, output, shape=(1, 1, batch, hidden)))
    ordered = outputs[::-1] if backwards else outputs
    sequence = ordered[0] if steps == 1 else node.apply(concat, *ordered, axis=0)
    last_output, last_state = (node.apply(reshape, last, shape=(1, batch, hidden)) for last in (output, state))
    return sequence, last_output, last_state


rnn = partial(_network, gates=1, activations=("tanh",), step=_rnn)
gru = partial(_network, gates=3, activations=("sigmoid", "tanh"), step=_gru)
lstm = partial(_network, gates=4, activations=("sigmoid", "tanh", "tanh"), step=_lstm)
