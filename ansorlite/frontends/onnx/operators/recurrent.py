"""RNN, GRU and LSTM: one product for the inputs of all steps, then the steps one after another, each the same few tasks.

Where sequences have lengths of their own, a step that is none of a sequence's leaves its state as it was: going forwards it
keeps the last one, going backwards the initial one, until the sequence's own last element comes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol, TypeAlias

import numpy as np

from ansorlite.frontends.onnx.node import NodeView, UnsupportedError
from ansorlite.frontends.onnx.operators.dense import Dense, QuantizedDense
from ansorlite.frontends.onnx.operators.shape import cut
from ansorlite.graph.constants import splat
from ansorlite.graph.describe import Operator
from ansorlite.graph.graph import Array
from ansorlite.te import dtypes
from ansorlite.topi import recurrent as topi
from ansorlite.topi.elementwise import where
from ansorlite.topi.recurrent import Activation, Curve
from ansorlite.topi.shape import concat, reshape, transpose

#: Steps that a network may be written out for.
MOST_STEPS: Final = 1024

#: The parameters of curves that have some, with the defaults of the operators of these names; ``None``: there is no default.
_ALPHA: Final[dict[Curve, float | None]] = {
    Curve.AFFINE: None,
    Curve.ELU: 1.0,
    Curve.HARD_SIGMOID: 0.2,
    Curve.LEAKY_RELU: 0.01,
    Curve.SCALED_TANH: None,
    Curve.THRESHOLDED_RELU: 1.0,
}
_BETA: Final[dict[Curve, float | None]] = {Curve.AFFINE: None, Curve.HARD_SIGMOID: 0.5, Curve.SCALED_TANH: None}

_CURVES: Final = {curve.value.lower(): curve for curve in Curve}


class _Dense(Protocol):
    """``x @ weights + bias``."""

    def __call__(self, x: str) -> str: ...


@dataclass(frozen=True)
class _Cell:
    """One direction of a network.

    Attributes:
        hidden: units.
        recurrent: of the previous output, for all gates.
        activations: ``f``, ``g`` and ``h``, as many as there are.
        clip: what limits their arguments.
        peephole: of an LSTM, ``(3 * hidden,)``.
    """

    node: NodeView
    hidden: int
    recurrent: _Dense
    activations: topi.Activations
    clip: float | None
    peephole: str | None = None

    def apply(self, operator: Operator, *inputs: str, **attributes: bool) -> str:
        return self.node.apply(operator, *inputs, activations=self.activations, clip=self.clip, **attributes)


#: (products of the step's input, output and cell state of the step before) → output and cell state.
CellStep: TypeAlias = Callable[[str, str, str], tuple[str, str]]


def _rnn(cell: _Cell) -> CellStep:
    def step(inputs: str, output: str, state: str) -> tuple[str, str]:
        return cell.apply(topi.rnn_output, inputs, cell.recurrent(output)), state

    return step


def _lstm(cell: _Cell) -> CellStep:
    coupled = bool(cell.node.integer("input_forget", 0))
    more = [cell.peephole] if cell.peephole else []

    def step(inputs: str, output: str, state: str) -> tuple[str, str]:
        states = cell.recurrent(output)
        state = cell.apply(topi.lstm_state, inputs, states, state, *more, coupled=coupled)
        return cell.apply(topi.lstm_output, inputs, states, state, *more), state

    return step


def _gru(cell: _Cell) -> CellStep:
    hidden = cell.hidden
    assert isinstance(cell.recurrent, Dense)
    gates, candidate = cell.recurrent.part(0, 2 * hidden), cell.recurrent.part(2 * hidden, hidden)

    def linear_step(inputs: str, output: str, state: str) -> tuple[str, str]:
        return cell.apply(topi.gru_linear_output, inputs, cell.recurrent(output), output), state

    def step(inputs: str, output: str, state: str) -> tuple[str, str]:
        states = gates(output)
        reset = cell.apply(topi.gru_reset, inputs, states, output)
        return cell.apply(topi.gru_output, inputs, states, output, candidate(reset)), state

    return linear_step if cell.node.integer("linear_before_reset", 0) else step


@dataclass(frozen=True)
class _Kind:
    """A kind of network.

    Attributes:
        gates: how many products with ``hidden`` columns its weights are for.
        activations: the default ones.
        step: makes the steps of a direction.
        quantized: whether weights are small integers, transposed, with scales and zero points.
    """

    gates: int
    activations: topi.Activations
    step: Callable[[_Cell], CellStep]
    quantized: bool = False

    @property
    def has_state(self) -> bool:
        """Whether there is a cell state beside the output."""
        return self.gates == 4

    def linear(self, node: NodeView, number: int, position: int) -> Dense | QuantizedDense:
        """The weights of the input (``position`` 1) or the previous output (2), for one direction."""
        width = self.gates * _hidden(node, self)
        begin = (position - 1) * width
        bias = cut(node, _of_direction(node, 3, number), 0, begin, width) if node.has(3) else None
        weights = _of_direction(node, position, number)
        if not self.quantized:
            if bias is None:
                bias = node.constant(splat(dtypes.NUMPY[node.value(0).dtype].type(0), (width,)))
            return Dense(node, weights, bias)
        scale, zero = (_of_direction(node, 6 + 2 * position + more, number) for more in (0, 1))
        return QuantizedDense(node, weights, scale, zero, bias)


class _Own:
    """Which steps are a sequence's own."""

    def __init__(self, node: NodeView, steps: int, batch: int) -> None:
        self._node = node
        self._sizes = steps, batch
        self._known: Array | None = np.ones((steps, batch), np.bool_)
        self._mask = ""
        if not node.has(4):
            return
        if node.value(4).shape != (batch,) or node.value(4).dtype != "int32":
            raise node.error(f"sequence_lens must be int32 of shape ({batch},), but is {node.value(4)}")
        lengths = node.builder.array(node.input(4))
        if lengths is None:
            self._known, self._mask = None, node.apply(topi.within, node.input(4), steps=steps)
            return
        if ((lengths < 0) | (lengths > steps)).any():
            raise node.error(f"sequence_lens are {lengths.tolist()}, and each must be between 0 and the {steps} steps there are")
        self._known = np.arange(steps)[:, None] < lengths

    def is_any(self, step: int) -> bool:
        """Whether the step may be one of any sequence."""
        return self._known is None or bool(self._known[step].any())

    def updated(self, step: int, fresh: str, before: str) -> str:
        """``fresh (batch, ...)`` for the sequences whose step this is, ``before`` for the others."""
        batch = self._sizes[1]
        if self._known is None:
            return self._node.apply(where, cut(self._node, self._mask, 0, step * batch, batch), fresh, before)
        if self._known[step].all():
            return fresh
        return self._node.apply(where, self._node.constant(self._known[step][:, None]), fresh, before)

    def padded(self, sequence: str) -> str:
        """``sequence (steps, 1, batch, hidden)``, or its first steps, with 0 where a step is not one of its sequence.

        The first step is none of a sequence without elements: so the last outputs of that are 0, as in onnxruntime.
        """
        node, batch = self._node, self._sizes[1]
        steps = node.builder.value(sequence).shape[0]
        shape = (steps, 1, batch, 1)
        if self._known is None:
            mask = node.apply(reshape, cut(node, self._mask, 0, 0, steps * batch), shape=shape)
        elif self._known[:steps].all():
            return sequence
        else:
            mask = node.constant(self._known[:steps].reshape(shape))
        zero = node.constant(np.zeros((), dtypes.NUMPY[node.builder.value(sequence).dtype]))
        return node.apply(where, mask, sequence, zero)


def _hidden(node: NodeView, kind: _Kind) -> int:
    return node.value(2).shape[1 if kind.quantized else 2]


def _network(node: NodeView, kind: _Kind) -> tuple[str, ...]:
    batch_first = bool(node.integer("layout", 0))
    shapes = [node.value(position).shape for position in range(3)]
    if any(len(shape) != 3 for shape in shapes):
        raise node.error(f"its data and weights must each have 3 dimensions, but their shapes are {shapes}")
    x = node.apply(transpose, node.input(0), axes=(1, 0, 2)) if batch_first else node.input(0)
    steps, batch, width = node.builder.value(x).shape
    directions, hidden = shapes[2][0], _hidden(node, kind)
    if steps > MOST_STEPS and not node.at_once:
        raise UnsupportedError(f"more than {MOST_STEPS} steps")
    direction = node.text("direction", "forward")
    if direction not in ("forward", "reverse", "bidirectional"):
        raise node.error(f"direction {direction!r} is unknown")
    if directions != 1 + (direction == "bidirectional"):
        raise node.error(f"direction {direction!r} does not fit weights for {directions} directions")
    activations = _activations(node, kind, directions)
    flat = node.apply(reshape, x, shape=(steps * batch, width))
    own = _Own(node, steps, batch)
    ways = [_direction(node, kind, n, flat, (steps, batch, hidden), activations[n], own) for n in range(directions)]
    sequence = ways[0][0] if directions == 1 else node.apply(concat, *(way[0] for way in ways), axis=1)
    columns = list(zip(*ways, strict=True))[1:]
    finals = [column[0] if directions == 1 else node.apply(concat, *column, axis=0) for column in columns]
    if batch_first:
        sequence = node.apply(transpose, sequence, axes=(2, 0, 1, 3))
        finals = [node.apply(transpose, final, axes=(1, 0, 2)) for final in finals]
    return sequence, *finals


def _activations(node: NodeView, kind: _Kind, directions: int) -> list[topi.Activations]:
    """Those of each direction. Parameters are given in the order of the functions that have some."""
    count = len(kind.activations)
    names = node.texts("activations")
    if not names:
        return [kind.activations] * directions
    if len(names) == count:
        names *= directions
    if len(names) != count * directions:
        raise node.error(f"{len(names)} activations are given, where {count} for each of {directions} directions are due")
    alphas, betas = iter(node.numbers("activation_alpha") or ()), iter(node.numbers("activation_beta") or ())
    found = [_activation(node, name, alphas, betas) for name in names]
    return [tuple(found[begin : begin + count]) for begin in range(0, len(found), count)]


def _activation(node: NodeView, name: str, alphas: Iterator[float], betas: Iterator[float]) -> Activation:
    curve = _CURVES.get(name.lower())
    if curve is None:
        raise node.error(f"activation {name!r} is unknown; known are: {', '.join(curve.value for curve in Curve)}")
    parameters = []
    for defaults, given, what in ((_ALPHA, alphas, "activation_alpha"), (_BETA, betas, "activation_beta")):
        number = next(given, defaults[curve]) if curve in defaults else 0.0
        if number is None:
            raise node.error(f"activation {curve.value} needs a value in attribute {what!r}, for which there is no default")
        parameters.append(number)
    return Activation(curve, *parameters)


def _of_direction(node: NodeView, position: int, number: int) -> str:
    """Of an input with one entry for each direction, the one of this direction."""
    name = cut(node, node.input(position), 0, number, 1)
    return node.apply(reshape, name, shape=node.builder.value(name).shape[1:])


def _direction(
    node: NodeView, kind: _Kind, number: int, x: str, sizes: tuple[int, int, int], activations: topi.Activations, own: _Own
) -> tuple[str, str, str]:
    """(all outputs, last output, last cell state) of one direction, with dimensions for the direction."""
    steps, batch, hidden = sizes
    dtype = dtypes.NUMPY[node.value(0).dtype]
    backwards = node.text("direction", "forward") == "reverse" or number == 1

    def initial(position: int) -> str:
        if not node.has(position):
            return node.constant(splat(dtype.type(0), (batch, hidden)))
        if node.integer("layout", 0):
            name = cut(node, node.input(position), 1, number, 1)
            return node.apply(reshape, name, shape=(batch, hidden))
        return _of_direction(node, position, number)

    clip = node.number("clip", 0.0)
    peephole = _of_direction(node, 7, number) if kind.has_state and node.has(7) else None
    cell = _Cell(node, hidden, kind.linear(node, number, 2), activations, clip if clip > 0 else None, peephole)
    step = kind.step(cell)
    inputs = kind.linear(node, number, 1)(x)
    output, state = initial(5), initial(6) if kind.has_state else node.constant(np.zeros((batch, hidden), dtype))
    outputs = []
    for t in reversed(range(steps)) if backwards else range(steps):
        if own.is_any(t):
            fresh, after = step(cut(node, inputs, 0, t * batch, batch), output, state)
            output = own.updated(t, fresh, output)
            state = own.updated(t, after, state) if kind.has_state else state
        outputs.append(node.apply(reshape, output, shape=(1, 1, batch, hidden)))
    ordered = outputs[::-1] if backwards else outputs
    sequence = ordered[0] if steps == 1 else node.apply(concat, *ordered, axis=0)
    lasts = [own.padded(node.apply(reshape, last, shape=(1, 1, batch, hidden))) for last in (output, state)]
    last_output, last_state = (node.apply(reshape, last, shape=(1, batch, hidden)) for last in lasts)
    return own.padded(sequence), last_output, last_state


rnn = partial(_network, kind=_Kind(1, (topi.TANH,), _rnn))
gru = partial(_network, kind=_Kind(3, (topi.SIGMOID, topi.TANH), _gru))
lstm = partial(_network, kind=_Kind(4, (topi.SIGMOID, topi.TANH, topi.TANH), _lstm))
dynamic_quantize_lstm = partial(_network, kind=_Kind(4, (topi.SIGMOID, topi.TANH, topi.TANH), _lstm, quantized=True))
