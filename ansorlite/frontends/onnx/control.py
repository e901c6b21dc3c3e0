"""Control flow that is known beforehand: branches that are always or never taken, loops that run a known number of times.

They become the nodes that they would run. ``Scan`` over 3 rows, say:

>>> before: state, out = Scan[body](initial, rows)
>>> after:  s1, o1 = body(initial, rows[0]); s2, o2 = body(s1, rows[1]); state, o3 = body(s2, rows[2]); out = stack(o1, o2, o3)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol

import numpy as np
import onnx
from onnx import helper

from ansorlite.errors import ModelError
from ansorlite.frontends.onnx.node import UnsupportedError
from ansorlite.frontends.onnx.scope import Attempt, NameScope
from ansorlite.frontends.onnx.segments import Slot

#: Nodes that a loop may become.
_MOST_NODES: Final = 2048


class Imports(Protocol):
    """What imports the nodes."""

    def add_nodes(self, nodes: Sequence[onnx.NodeProto], outputs: Sequence[str], scope: NameScope) -> None:
        """Import those of ``nodes`` that ``outputs`` depend on."""

    def scope_of(self, graph: onnx.GraphProto, given: Mapping[str, Slot], around: NameScope) -> NameScope:
        """A scope for the nodes of a subgraph, whose inputs are ``given``."""

    def need(self, slot: Slot) -> None:
        """Ask for the value of ``slot``, if that can be known beforehand."""

    def is_native(self, graph: onnx.GraphProto) -> bool:
        """Whether every node of a subgraph could be native."""


def unroll(attempt: Attempt, imports: Imports) -> Sequence[Slot]:
    """The results of a node of control flow.

    Raises:
        UnsupportedError: what it does is known only while the model runs, or is no tensor expression, or is too much.
    """
    if attempt.proto.op_type not in _UNROLLERS or attempt.proto.domain not in ("", "ai.onnx"):
        raise UnsupportedError("it is no control flow")
    return _UNROLLERS[attempt.proto.op_type](attempt, imports)


def _known(slot: Slot | None, imports: Imports) -> Any:
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
    array = np.asarray(slot.datum)
    if array.size != 1:
        raise ModelError(f"{slot.name!r}, which decides how the model goes on, must be one value; its shape is {array.shape}")
    return array.reshape(-1)[0]


def _branch(attempt: Attempt, imports: Imports) -> Sequence[Slot]:
    condition = _known(attempt.inputs[0], imports)
    graph = _attribute(attempt, "then_branch" if condition else "else_branch")
    names = [entry.name for entry in graph.output]
    scope = imports.scope_of(graph, {}, attempt.scope)
    imports.add_nodes(graph.node, names, scope)
    return [scope.slots[name] for name in names]


def _loop(attempt: Attempt, imports: Imports) -> Sequence[Slot]:
    body = _attribute(attempt, "body")
    most, condition = (_known(slot, imports) for slot in (*attempt.inputs, None, None)[:2])
    carried = [_given(slot) for slot in attempt.inputs[2:]]
    going = condition is None or bool(condition)
    limit = None if most is None else int(most)
    if len(body.input) != 2 + len(carried) or len(body.output) < 1 + len(carried):
        raise ModelError(f"{attempt.title}: its inputs and its body do not fit together")
    collected: list[list[Slot]] = [[] for _ in body.output[1 + len(carried) :]]
    _check_body(body, imports, limit)
    iteration = 0
    while going and (limit is None or iteration < limit):
        if (iteration + 1) * len(body.node) > _MOST_NODES:
            raise UnsupportedError("it runs too often to be written out")
        given = [
            Slot.constant("iteration", np.asarray(iteration, np.int64)),
            Slot.constant("condition", np.asarray(going)),
            *carried,
        ]
        proceed, *results = _run(body, given, attempt.scope, imports)
        going = bool(_known(proceed, imports))
        carried = results[: len(carried)]
        for column, slot in zip(collected, results[len(carried) :], strict=True):
            column.append(slot)
        iteration += 1
    if collected and not iteration:
        raise UnsupportedError("it runs not once")
    return [*carried, *(_stacked(column, 0, attempt.scope, imports) for column in collected)]


def _scan(attempt: Attempt, imports: Imports) -> Sequence[Slot]:
    if attempt.opset < 9:
        raise UnsupportedError("before opset 9 it has lengths of its own for each row of a batch")
    body = _attribute(attempt, "body")
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
    _check_body(body, imports, count)
    collected: list[list[Slot]] = [[] for _ in range(outputs)]
    for step in range(count):
        parts = [
            _row(slot, axis, count - 1 - step if backwards else step, attempt.scope, imports)
            for slot, axis, backwards in zip(scanned, axes, directions, strict=True)
        ]
        results = _run(body, [*carried, *parts], attempt.scope, imports)
        carried = results[: len(carried)]
        for column, slot in zip(collected, results[len(carried) :], strict=True):
            column.append(slot)
    ordered = [column[::-1] if backwards else column for column, backwards in zip(collected, out_directions, strict=True)]
    return [*carried, *(_stacked(c, axis, attempt.scope, imports) for c, axis in zip(ordered, out_axes, strict=True))]


def _attribute(attempt: Attempt, name: str) -> onnx.GraphProto:
    found: onnx.GraphProto = next(a.g for a in attempt.proto.attribute if a.name == name)
    return found


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


def _check_body(body: onnx.GraphProto, imports: Imports, count: int | None) -> None:
    if not imports.is_native(body):
        raise UnsupportedError("its body has operators that are no tensor expressions")
    if count is not None and count * len(body.node) > _MOST_NODES:
        raise UnsupportedError("it runs too often to be written out")


def _run(body: onnx.GraphProto, given: Sequence[Slot], around: NameScope, imports: Imports) -> list[Slot]:
    """The results of one iteration."""
    scope = imports.scope_of(body, dict(zip((entry.name for entry in body.input), given, strict=True)), around)
    names = [entry.name for entry in body.output]
    imports.add_nodes(body.node, names, scope)
    slots = [scope.slots[name] for name in names]
    if any(slot.value is None for slot in slots):
        raise UnsupportedError("its body gives results of unknown shape")
    return slots


def _row(slot: Slot, axis: int, position: int, around: NameScope, imports: Imports) -> Slot:
    node = helper.make_node("Gather", ["all", "position"], ["row"], axis=axis)
    given = {"all": slot, "position": Slot.constant("position", np.asarray(position, np.int64))}
    return _apply(node, given, around, imports)


def _stacked(slots: Sequence[Slot], axis: int, around: NameScope, imports: Imports) -> Slot:
    """The slots next to each other along a new dimension."""
    given = {f"part{n}": slot for n, slot in enumerate(slots)} | {"axis": Slot.constant("axis", np.asarray([axis]))}
    rows = [helper.make_node("Unsqueeze", [f"part{n}", "axis"], [f"row{n}"]) for n in range(len(slots))]
    whole = helper.make_node("Concat", [f"row{n}" for n in range(len(slots))], ["all"], axis=axis)
    scope = imports.scope_of(onnx.GraphProto(), given, around)
    imports.add_nodes([*rows, whole], ["all"], scope)
    return scope.slots["all"]


def _apply(node: onnx.NodeProto, given: Mapping[str, Slot], around: NameScope, imports: Imports) -> Slot:
    scope = imports.scope_of(onnx.GraphProto(), given, around)
    imports.add_nodes([node], list(node.output), scope)
    return scope.slots[node.output[0]]


_UNROLLERS: Final[Mapping[str, Callable[[Attempt, Imports], Sequence[Slot]]]] = {"If": _branch, "Loop": _loop, "Scan": _scan}
