"""Recurrent networks of more steps than are written out: piece by piece, in a loop.

>>> before: y, last = GRU(x, w, r)                                   # x (5000, batch, width)
>>> after:  state, ys = Scan[piece](zeros, reshape(x[:4992], (39, 128, batch, width)))
>>>         rest, last = GRU(x[4992:], w, r, initial_h=state); y = concat(reshape(ys), rest)
>>>         # piece: rows, state = GRU(x', w, r, initial_h=state')
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import onnx
from onnx import TypeProto, helper

from ansorlite.frontends.onnx.operators.recurrent import MOST_STEPS
from ansorlite.frontends.onnx.scope import Attempt
from ansorlite.frontends.onnx.writer import Writer
from ansorlite.graph.describe import Value
from ansorlite.te import dtypes

#: The steps of a piece.
_PIECE: Final = 128

#: Recurrent operators, with how many states they carry.
_STATES: Final = {"RNN": 1, "GRU": 1, "LSTM": 2}


def in_pieces(attempt: Attempt) -> list[onnx.NodeProto] | None:
    """The nodes that a long recurrent one becomes.

    Returns:
        ``None`` if it is none, has no more steps than are written out, or is none of the usual forms: sequences have lengths of
        their own, or the batch comes first, or activations of two directions have parameters.
    """
    if attempt.proto.op_type not in _STATES:
        return None
    writer = Writer(attempt)
    data, weights = (None if slot is None else slot.value for slot in (attempt.inputs[0], attempt.inputs[2]))
    if data is None or weights is None or not len(data.shape) == len(weights.shape) == 3:
        return None
    given = writer.attributes
    parameters = weights.shape[0] > 1 and ("activation_alpha" in given or "activation_beta" in given)
    if data.shape[0] <= MOST_STEPS or writer.has(4) or writer.integer("layout", 0) or parameters:
        return None
    _Pieces(writer, data, weights).write()
    return writer.nodes


class _Pieces:
    """The nodes of one network."""

    def __init__(self, writer: Writer, data: Value, weights: Value) -> None:
        self._w, self._data = writer, data
        self._directions, _, self._hidden = weights.shape

    def write(self) -> None:
        steps, batch, width = self._data.shape
        whole = steps // _PIECE * _PIECE
        x = self._w.input(0)
        pieces = self._w.reshaped(self._w.cut(x, 0, whole), (whole // _PIECE, _PIECE, batch, width))
        rest = self._w.cut(x, whole, steps) if whole < steps else ""
        ways = [self._direction(number, pieces, rest) for number in range(self._directions)]
        for position, column in enumerate(zip(*ways, strict=True)):
            self._w.give(position, self._w("Concat", *column, axis=0 if position else 1))

    def _direction(self, number: int, pieces: str, rest: str) -> list[str]:
        """What one direction gives: all outputs, and the last states."""
        states = [self._initial(position, number) for position in (5, 6)[: _STATES[self._w.proto.op_type]]]
        if not rest:
            return self._through(pieces, states, number)
        if self._backwards(number):
            last, *states = self._cell(rest, states, number)
            first, *states = self._through(pieces, states, number)
        else:
            first, *states = self._through(pieces, states, number)
            last, *states = self._cell(rest, states, number)
        return [self._w("Concat", first, last, axis=0), *states]

    def _through(self, pieces: str, states: list[str], number: int) -> list[str]:
        """The same for all pieces."""
        inputs = [self._w.name("state") for _ in states] + [self._w.name("piece")]
        around, self._w.nodes = self._w.nodes, []
        rows, *after = self._cell(inputs[-1], inputs[:-1], number)
        inside, self._w.nodes = self._w.nodes, around
        infos = [[helper.make_value_info(name, TypeProto()) for name in names] for names in (inputs, [*after, rows])]
        way = [int(self._backwards(number))]
        *results, stacked = self._w.several(
            "Scan",
            [*states, pieces],
            1 + len(states),
            body=helper.make_graph(inside, "piece", *infos),
            num_scan_inputs=1,
            scan_input_directions=way,
            scan_output_directions=way,
        )
        return [self._w.reshaped(stacked, (-1, 1, self._data.shape[1], self._hidden)), *results]

    def _cell(self, x: str, states: list[str], number: int) -> list[str]:
        """The operator on some steps, in one direction: all outputs, and the last states."""
        weights = [self._part(position, number) for position in (1, 2, 3)]
        more = [self._part(7, number)] if len(states) == 2 else []
        inputs = [x, *weights, "", *states, *more]
        return self._w.several(self._w.proto.op_type, inputs, 1 + len(states), **self._attributes(number))

    def _backwards(self, number: int) -> bool:
        return number == 1 or self._w.text("direction", "forward") == "reverse"

    def _attributes(self, number: int) -> dict[str, Any]:
        given = {name: value for name, value in self._w.attributes.items() if name != "direction"}
        activations = given.get("activations", [])
        if activations and self._directions > 1:
            count = len(activations) // self._directions
            given["activations"] = activations[number * count : (number + 1) * count]
        return given | {"direction": "reverse" if self._backwards(number) else "forward"}

    def _part(self, position: int, number: int) -> str:
        """Of an input with one entry for each direction, the one of this direction; ``""`` if it is not given."""
        name = self._w.input(position)
        return self._w.cut(name, number, number + 1) if name and self._directions > 1 else name

    def _initial(self, position: int, number: int) -> str:
        if self._w.has(position):
            return self._part(position, number)
        shape = (1, self._data.shape[1], self._hidden)
        return self._w.constant(np.zeros(shape, dtypes.NUMPY[self._data.dtype]))
