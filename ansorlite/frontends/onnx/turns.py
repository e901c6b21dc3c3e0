"""Loops whose body is called turn by turn.

>>> before: state = Loop[body](limit, going, state)
>>> after:  while turn < limit and going: going, state = body(turn, state)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import TypeProto

from ansorlite.frontends.onnx.bodies import Body, Compiled, Control, Reads, Source, type_of
from ansorlite.frontends.onnx.imports import Imports
from ansorlite.frontends.onnx.loops import Loop, Scan, single
from ansorlite.frontends.onnx.node import UnsupportedError
from ansorlite.frontends.onnx.reference import tensor_type
from ansorlite.frontends.onnx.scope import Attempt
from ansorlite.frontends.onnx.segments import Slot
from ansorlite.graph.describe import Value
from ansorlite.graph.hybrid import Datum
from ansorlite.te import dtypes


@dataclass(frozen=True, eq=False)
class _State:
    """What changes from turn to turn.

    Attributes:
        name: what the body reads it as; ``result``: what it becomes.
        first: what it is at first.
        output: the node's result that it is in the end; may be ``""``.
    """

    name: str
    result: str
    first: Source
    value: Value
    output: str


@dataclass(frozen=True, eq=False)
class _Column:
    """Rows, one a turn.

    Attributes:
        row: what the body calls it.
        axis, backwards: the dimension that they are stacked along, and whether the last one comes first.
        output: the node's result.
    """

    row: str
    axis: int
    backwards: bool
    output: str


@dataclass(frozen=True, eq=False)
class _Taken:
    """Rows that the body reads, one a turn: along which dimension of what, and whether from its end."""

    name: str
    source: Source
    axis: int
    backwards: bool


@dataclass(frozen=True, eq=False)
class _Turns:
    """A loop.

    Attributes:
        bodies: what a turn computes; of two, the first is for the first turn.
        limit, condition: how often it runs at most, and whether at all; ``None`` if nothing says.
        proceed: the body's result that says whether it goes on; ``""`` where that is known.
        told: turn, condition → what else the body reads, if it does.
    """

    bodies: Sequence[Body]
    limit: Source
    condition: Source
    proceed: str
    state: Sequence[_State]
    columns: Sequence[_Column]
    taken: Sequence[_Taken]
    told: Callable[[int, bool], dict[str, Datum]] | None

    def __call__(self, data: Sequence[Datum], *compiled: Compiled) -> list[Datum]:
        """What the state becomes, and the columns.

        Raises:
            ModelError: what decides how it goes on is no single value.
        """
        limit, condition = self.limit(data), self.condition(data)
        most = None if limit is None else int(single("the number of turns", limit))
        going = condition is None or bool(single("the condition", condition))
        fixed = self.bodies[0].given(data)
        rows = [np.moveaxis(taken.source(data), taken.axis, 0) for taken in self.taken]
        # A copy: results are the caller's own, even if there is no turn.
        state = [np.array(one.first(data)) for one in self.state]
        columns: list[list[Datum]] = [[] for _ in self.columns]
        turn = 0
        while going and (most is None or turn < most):
            variables = {one.name: datum for one, datum in zip(self.state, state, strict=True)}
            variables |= {
                one.name: whole[-1 - turn if one.backwards else turn] for one, whole in zip(self.taken, rows, strict=True)
            }
            told = self.told(turn, going) if self.told else {}
            which = min(turn, len(self.bodies) - 1)
            results = self.bodies[which](compiled[which], fixed, variables | told)
            state = [results[one.result] for one in self.state]
            for column, one in zip(columns, self.columns, strict=True):
                column.append(results[one.row])
            going = not self.proceed or bool(single(self.proceed, results[self.proceed]))
            turn += 1
        final = [datum for one, datum in zip(self.state, state, strict=True) if one.output]
        return [*final, *(self._stacked(one, column) for one, column in zip(self.columns, columns, strict=True))]

    def _stacked(self, one: _Column, column: Sequence[Datum]) -> Datum:
        if column:
            return np.stack(column[::-1] if one.backwards else column, one.axis)
        value = self.bodies[-1].model.outputs[one.row].value
        assert value is not None
        return np.empty((0, *value.shape), dtypes.NUMPY[value.dtype])


def called_loop(loop: Loop, count: int | None, reason: str, attempt: Attempt, imports: Imports) -> Control:
    """``loop``, the node of ``attempt``, as calls of its body.

    Args:
        count: how often it runs, if that is known beforehand.
        reason: why it is not written out.

    Raises:
        UnsupportedError: a value that it reads or carries has no shape that is known and stays.
    """
    reads = Reads()
    outputs = _outputs(attempt, len(loop.names) + len(loop.rows))
    columns = [
        _Column(row, 0, False, output) for row, output in zip(loop.rows, outputs[len(loop.names) :], strict=True) if output
    ]
    proceed = "" if count is not None else loop.body.output[0].name
    carried = list(zip(loop.names, loop.results, loop.carried, outputs, strict=False))
    live = [*([proceed] if proceed else []), *(result for _, result, _, output in carried if output)]
    read = loop.read([*live, *(one.row for one in columns)])
    state, fixed, passed = [], {}, {}
    for name, result, slot, output in carried:
        assert slot.value is not None
        if _source_of(result, loop.body) == name:
            fixed[name], passed[output] = slot, slot
        elif output or name in read:
            state.append(_State(name, result, reads(slot), slot.value, output))
    told = {name: Value(array.shape, array.dtype.name) for name, array in loop.told(0, True).items()}
    wanted = [*([proceed] if proceed else []), *(one.result for one in state), *(one.row for one in columns)]

    def body(values: dict[str, Value]) -> Body:
        return Body.of(loop.body, told | values, fixed, wanted, attempt, imports, reads)

    limit = reads(loop.limit) if count is None else Source(None, np.asarray(count))
    turns = _Turns(_bodies(body, state), limit, reads(loop.condition), proceed, state, columns, (), loop.told)
    return _repeated(turns, reason, reads, passed, count)


def called_scan(scan: Scan, reason: str, attempt: Attempt, imports: Imports) -> Control:
    """The same for ``scan``."""
    reads = Reads()
    outputs = _outputs(attempt, len(scan.results))
    carried = len(scan.carried)
    state = []
    for name, result, slot, output in zip(scan.names, scan.results, scan.carried, outputs, strict=False):
        assert slot.value is not None
        state.append(_State(name, result, reads(slot), slot.value, output))
    rows: dict[str, Value] = {}
    taken = []
    for name, (slot, axis, backwards) in zip(scan.names[carried:], scan.scanned, strict=True):
        assert slot.value is not None
        shape = list(slot.value.shape)
        del shape[axis]
        rows[name] = Value(tuple(shape), slot.value.dtype)
        taken.append(_Taken(name, reads(slot), axis, backwards))
    columns = [
        _Column(row, axis, backwards, output)
        for row, (axis, backwards), output in zip(scan.results[carried:], scan.columns, outputs[carried:], strict=False)
        if output
    ]
    wanted = [*(one.result for one in state), *(one.row for one in columns)]

    def body(values: dict[str, Value]) -> Body:
        return Body.of(scan.body, rows | values, {}, wanted, attempt, imports, reads)

    limit = Source(None, np.asarray(scan.count))
    turns = _Turns(_bodies(body, state), limit, reads(None), "", state, columns, taken, None)
    return _repeated(turns, reason, reads, {}, scan.count)


def _bodies(body: Callable[[dict[str, Value]], Body], state: Sequence[_State]) -> list[Body]:
    """One body for all turns, or one for the first and one for the others, where shapes change in the first turn only."""
    values = {one.name: one.value for one in state}
    bodies: list[Body] = []
    while len(bodies) < 2:
        bodies.append(body(values))
        after = {one.name: bodies[-1].model.outputs[one.result].value for one in state}
        # What is not read may change as it likes.
        changed = {name: value for name, value in after.items() if value != values[name] and name in bodies[-1].model.inputs}
        if not changed:
            return bodies
        values |= {name: value for name, value in changed.items() if value is not None}
    raise UnsupportedError(f"what it carries as {next(iter(changed))!r} changes its shape or dtype")


def _outputs(attempt: Attempt, count: int) -> list[str]:
    """For each result that a node may have, what it is called; ``""`` for what nothing reads."""
    names = [name if wanted else "" for name, wanted in zip(attempt.proto.output, attempt.wanted, strict=True)]
    return [*names, *[""] * count][:count]


def _source_of(result: str, body: onnx.GraphProto) -> str:
    """The value that a result of a body is, but for names."""
    names = {node.output[0]: node.input[0] for node in body.node if node.op_type == "Identity"}
    while result in names:
        result = names[result]
    return result


def _repeated(turns: _Turns, reason: str, reads: Reads, passed: Mapping[str, Slot], count: int | None) -> Control:
    values = turns.bodies[-1].model.outputs
    results: dict[str, TypeProto] = {}
    for one in turns.state:
        value = values[one.result].value
        if one.output:
            # What nothing reads may have another shape at first, and keep it if there is no turn.
            results[one.output] = type_of([value] if count else [value, one.value])
    for column in turns.columns:
        row = values[column.row].value
        if row is None or any(body.model.outputs[column.row].value != row for body in turns.bodies):
            raise UnsupportedError(f"its rows {column.row!r} have no shape that is known and stays")
        shape = list(row.shape)
        shape.insert(column.axis % (len(shape) + 1), count or 0)
        kind = TypeProto()
        kind.CopyFrom(tensor_type(Value(tuple(shape), row.dtype)))
        if count is None:
            kind.tensor_type.shape.dim[0].Clear()
        results[column.output] = kind
    return Control(reason, reads.slots, turns, results, passed, tuple(body.model for body in turns.bodies), count or 1)
