"""The loops of ONNX, taken apart: what runs again and again, on what, and what becomes of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import helper

from ansorlite.errors import ModelError
from ansorlite.frontends.onnx.imports import Imports
from ansorlite.frontends.onnx.node import UnsupportedError
from ansorlite.frontends.onnx.reference import DOMAINS, free_names
from ansorlite.frontends.onnx.scope import Attempt
from ansorlite.frontends.onnx.segments import Slot


@dataclass(frozen=True, eq=False)
class Loop:
    """A ``Loop``, which goes on up to ``limit`` times as long as ``condition`` holds.

    Attributes:
        body: of (turn, condition, what is carried) → (condition, what is carried, a row for each column).
        limit, condition: ``None`` where there is none.
        carried: what is carried into the first turn.
    """

    body: onnx.GraphProto
    limit: Slot | None
    condition: Slot | None
    carried: Sequence[Slot]

    @staticmethod
    def of(attempt: Attempt) -> Loop:
        """
        Raises:
            UnsupportedError: it carries what is no tensor of known shape.
            ModelError: the node's parts do not fit together.
        """
        body = subgraph(attempt, "body")
        limit, condition, *carried = (*attempt.inputs, None, None) if len(attempt.inputs) < 2 else attempt.inputs
        if len(body.input) != 2 + len(carried) or len(body.output) < 1 + len(carried):
            raise ModelError(f"{attempt.title}: its inputs and its body do not fit together")
        return Loop(body, limit, condition, [_given(slot) for slot in carried])

    @property
    def names(self) -> list[str]:
        """What the body calls what is carried to it."""
        return [entry.name for entry in self.body.input[2:]]

    @property
    def results(self) -> list[str]:
        """What it calls what is carried on."""
        return [entry.name for entry in self.body.output[1 : 1 + len(self.carried)]]

    @property
    def rows(self) -> list[str]:
        """What it calls the rows, one for each column."""
        return [entry.name for entry in self.body.output[1 + len(self.carried) :]]

    def read(self, results: Iterable[str]) -> set[str]:
        """All values of the body that some of its results depend on, over any number of turns; they are among them."""
        read = set(results)
        size = 0
        while len(read) > size:
            size = len(read)
            for node in reversed(self.body.node):
                if read & set(node.output):
                    read.update(free_names(node))
            read.update(result for name, result in zip(self.names, self.results, strict=True) if name in read)
        return read

    def told(self, turn: int, going: bool) -> dict[str, np.ndarray[Any, Any]]:
        """What the body is told of a turn: most exporters declare its number and the condition scalars, some vectors of one."""
        number, condition = self.body.input[:2]
        return {
            number.name: np.full((1,) * min(1, len(number.type.tensor_type.shape.dim)), turn, np.int64),
            condition.name: np.full((1,) * min(1, len(condition.type.tensor_type.shape.dim)), going, np.bool_),
        }


@dataclass(frozen=True, eq=False)
class Scan:
    """A ``Scan`` over ``count`` rows of some inputs.

    Attributes:
        body: of (what is carried, a row of each input) → (what is carried, a row for each column).
        carried: what is carried into the first turn.
        scanned: with the dimension that rows are of, and whether they are taken from the end.
        columns: for each column, the same.
    """

    body: onnx.GraphProto
    carried: Sequence[Slot]
    scanned: Sequence[tuple[Slot, int, bool]]
    columns: Sequence[tuple[int, bool]]
    count: int

    @staticmethod
    def of(attempt: Attempt) -> Scan:
        """
        Raises:
            UnsupportedError: it is of an old form, carries what is no tensor of known shape, or runs not once.
            ModelError: the node's parts do not fit together.
        """
        if attempt.opset < 9:
            raise UnsupportedError("before opset 9 it has lengths of its own for each row of a batch")
        body = subgraph(attempt, "body")
        values = {a.name: helper.get_attribute_value(a) for a in attempt.proto.attribute if a.name != "body"}
        rows = values["num_scan_inputs"]
        slots = [_given(slot) for slot in attempt.inputs]
        carried, scanned = slots[: len(slots) - rows], slots[len(slots) - rows :]
        outputs = len(body.output) - len(carried)
        axes = values.get("scan_input_axes") or [0] * rows
        directions = values.get("scan_input_directions") or [0] * rows
        out_axes = values.get("scan_output_axes") or [0] * outputs
        out_directions = values.get("scan_output_directions") or [0] * outputs
        fits = 1 <= rows <= len(slots) and len(body.input) == len(slots) and outputs >= 0
        fits = fits and len(axes) == len(directions) == rows and len(out_axes) == len(out_directions) == outputs
        if not fits or any(not -_rank(slot) <= axis < _rank(slot) for slot, axis in zip(scanned, axes, strict=True)):
            raise ModelError(f"{attempt.title}: its inputs, its attributes and its body do not fit together")
        count = _extent(scanned[0], axes[0])
        if any(_extent(slot, axis) != count for slot, axis in zip(scanned, axes, strict=True)):
            raise ModelError(f"{attempt.title}: its inputs have different numbers of rows")
        if outputs and not count:
            raise UnsupportedError("it runs not once")
        taken = [(slot, axis, bool(back)) for slot, axis, back in zip(scanned, axes, directions, strict=True)]
        return Scan(body, carried, taken, [(a, bool(back)) for a, back in zip(out_axes, out_directions, strict=True)], count)

    @property
    def names(self) -> list[str]:
        """What the body calls its inputs."""
        return [entry.name for entry in self.body.input]

    @property
    def results(self) -> list[str]:
        """What it calls its results."""
        return [entry.name for entry in self.body.output]

    def place(self, turn: int, backwards: bool) -> int:
        """Which row a turn takes."""
        return self.count - 1 - turn if backwards else turn


def is_control(proto: onnx.NodeProto) -> bool:
    """Whether a node decides what runs, and how often."""
    return proto.op_type in ("If", "Loop", "Scan") and proto.domain in DOMAINS[:2]


def subgraph(attempt: Attempt, name: str) -> onnx.GraphProto:
    """A body of a node, by its attribute."""
    found: onnx.GraphProto = next(a.g for a in attempt.proto.attribute if a.name == name)
    return found


def known(slot: Slot | None, imports: Imports) -> Any:
    """The value, a numpy scalar, of an optional input that must be known: a condition, or how often to run.

    Raises:
        UnsupportedError: it is known only while the model runs.
        ModelError: it is no single value.
    """
    if slot is None:
        return None
    if not slot.known:
        imports.need(slot)
        raise UnsupportedError("how it goes on is known only while the model runs")
    return single(slot.name, slot.datum)


def single(name: str, datum: Any) -> Any:
    """The only element of what decides how the model goes on.

    Raises:
        ModelError: it has no element, or several.
    """
    array = np.asarray(datum)
    if array.size != 1:
        raise ModelError(f"{name!r}, which decides how the model goes on, must be one value; its shape is {array.shape}")
    return array.reshape(-1)[0]


def _given(slot: Slot | None) -> Slot:
    if slot is None or slot.value is None:
        raise UnsupportedError("a value that it carries is no tensor of known shape with a dtype that has arithmetic")
    return slot


def _rank(slot: Slot) -> int:
    assert slot.value is not None
    return len(slot.value.shape)


def _extent(slot: Slot, axis: int) -> int:
    assert slot.value is not None
    return slot.value.shape[axis]
