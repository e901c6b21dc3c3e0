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
from onnx import TypeProto, helper, numpy_helper

from ansorlite.frontends.onnx.operators.recurrent import MOST_STEPS
from ansorlite.frontends.onnx.scope import Attempt
from ansorlite.te import dtypes

#: The steps of a piece.
_PIECE: Final = 128

#: The first version of the standard operators that has those used here.
_OPSET: Final = 10

#: Recurrent operators, with how many states they carry.
_STATES: Final = {"RNN": 1, "GRU": 1, "LSTM": 2}


def in_pieces(attempt: Attempt) -> list[onnx.NodeProto] | None:
    """The nodes that a long recurrent one becomes. They read and write the names that it does, and names of their own.

    Returns:
        ``None`` if it is none, has no more steps than are written out, or is none of the usual forms: sequences have lengths of
        their own, or the batch comes first, or activations of two directions have parameters.
    """
    proto = attempt.proto
    given = {attribute.name: helper.get_attribute_value(attribute) for attribute in proto.attribute}
    slots = [*attempt.inputs, *[None] * 8][:8]
    data, weights = (None if slot is None else slot.value for slot in (slots[0], slots[2]))
    if proto.op_type not in _STATES or data is None or weights is None or not len(data.shape) == len(weights.shape) == 3:
        return None
    directions, _, hidden = weights.shape
    parameters = directions > 1 and ("activation_alpha" in given or "activation_beta" in given)
    if attempt.opset < _OPSET or data.shape[0] <= MOST_STEPS or slots[4] is not None or given.get("layout", 0) or parameters:
        return None
    return _Pieces(proto, given, directions, data.shape, hidden, dtypes.NUMPY[data.dtype]).nodes()


class _Pieces:
    """The nodes of one network."""

    def __init__(
        self,
        proto: onnx.NodeProto,
        given: dict[str, Any],
        directions: int,
        shape: tuple[int, ...],
        hidden: int,
        dtype: np.dtype[Any],
    ) -> None:
        self._proto, self._given, self._directions = proto, given, directions
        self._shape, self._hidden, self._dtype = shape, hidden, dtype
        self._names = [*proto.input, *[""] * 8][:8]
        self._made: list[onnx.NodeProto] = []

    def nodes(self) -> list[onnx.NodeProto]:
        steps, batch, width = self._shape
        whole = steps // _PIECE * _PIECE
        front, rest = self._cut("x of pieces", self._names[0], 0, whole), ""
        if whole < steps:
            rest = self._cut("x of the rest", self._names[0], whole, steps)
        pieces = self._reshaped(front, (whole // _PIECE, _PIECE, batch, width))
        ways = [self._direction(number, pieces, rest) for number in range(self._directions)]
        for position, (column, output) in enumerate(zip(zip(*ways, strict=True), self._proto.output, strict=False)):
            if output:
                self._add("Concat", list(column), [output], axis=0 if position else 1)
        return self._made

    def _direction(self, number: int, pieces: str, rest: str) -> list[str]:
        """What one direction gives: all outputs, and the last states."""
        states = [self._initial(position, number) for position in (5, 6)[: _STATES[self._proto.op_type]]]
        if not rest:
            return self._through(pieces, states, number)
        if self._backwards(number):
            last, *states = self._cell("rest", rest, states, number)
            first, *states = self._through(pieces, states, number)
        else:
            first, *states = self._through(pieces, states, number)
            last, *states = self._cell("rest", rest, states, number)
        rows = f"y of direction {number}"
        self._add("Concat", [first, last], [rows], axis=0)
        return [rows, *states]

    def _through(self, pieces: str, states: list[str], number: int) -> list[str]:
        """The same for all pieces."""
        own = f"of direction {number}"
        before = [f"state {p} {own}" for p in range(len(states))]
        around, self._made = self._made, []
        rows, *after = self._cell("piece", f"piece {own}", before, number)
        inside, self._made = self._made, around
        infos = [
            [helper.make_value_info(name, TypeProto()) for name in names] for names in ([*before, f"piece {own}"], [*after, rows])
        ]
        results, stacked, way = [f"after {p} {own}" for p in range(len(states))], f"pieces {own}", [int(self._backwards(number))]
        directions = {"scan_input_directions": way, "scan_output_directions": way}
        body = helper.make_graph(inside, "piece", *infos)
        self._add("Scan", [*states, pieces], [*results, stacked], body=body, num_scan_inputs=1, **directions)
        return [self._reshaped(stacked, (-1, 1, self._shape[1], self._hidden)), *results]

    def _cell(self, name: str, x: str, states: list[str], number: int) -> list[str]:
        """The operator on some steps, in one direction: all outputs, and the last states."""
        weights = [self._part(position, number) for position in (1, 2, 3)]
        more = [self._part(7, number)] if len(states) == 2 else []
        results = [f"{what} of {name} of direction {number}" for what in ("y", "h", "c")[: 1 + len(states)]]
        self._add(
            self._proto.op_type, [x, *weights, "", *states, *more], results, name=self._proto.name, **self._attributes(number)
        )
        return results

    def _backwards(self, number: int) -> bool:
        return number == 1 or self._given.get("direction", b"forward") == b"reverse"

    def _attributes(self, number: int) -> dict[str, Any]:
        given = {name: value for name, value in self._given.items() if name != "direction"}
        activations = given.get("activations", [])
        count = len(activations) // self._directions
        if activations and self._directions > 1:
            given["activations"] = activations[number * count : (number + 1) * count]
        return given | {"direction": "reverse" if self._backwards(number) else "forward"}

    def _part(self, position: int, number: int) -> str:
        """Of an input with one entry for each direction, the one of this direction."""
        name: str = self._names[position]
        if not name or self._directions == 1:
            return name
        return self._cut(f"input {position} of direction {number}", name, number, number + 1)

    def _initial(self, position: int, number: int) -> str:
        if self._names[position]:
            return self._part(position, number)
        shape = self._constant(np.array([1, self._shape[1], self._hidden]))
        name = f"zeros {position} of direction {number}"
        self._add("ConstantOfShape", [shape], [name], value=numpy_helper.from_array(np.zeros(1, self._dtype)))
        return name

    def _cut(self, name: str, source: str, begin: int, end: int) -> str:
        bounds = [self._constant(np.array([number])) for number in (begin, end, 0)]
        self._add("Slice", [source, *bounds], [name])
        return name

    def _reshaped(self, source: str, shape: tuple[int, ...]) -> str:
        self._add("Reshape", [source, self._constant(np.array(shape))], [f"{source}, reshaped"])
        return f"{source}, reshaped"

    def _constant(self, array: np.ndarray[Any, Any]) -> str:
        name = f"constant {len(self._made)}"
        self._add("Constant", [], [name], value=numpy_helper.from_array(array))
        return name

    def _add(self, operator: str, inputs: list[str], outputs: list[str], **attributes: Any) -> None:
        self._made.append(helper.make_node(operator, inputs, outputs, **attributes))
