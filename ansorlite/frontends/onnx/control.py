"""Control flow that is known beforehand: branches that are always or never taken, loops that run a known number of times.

They become the nodes that they would run; :mod:`ansorlite.frontends.onnx.calls` has the others. ``Scan`` over 3 rows, say:

>>> before: state, out = Scan[body](initial, rows)
>>> after:  s1, o1 = body(initial, rows[0]); s2, o2 = body(s1, rows[1]); state, o3 = body(s2, rows[2]); out = stack(o1, o2, o3)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import onnx
from onnx import helper

from ansorlite.frontends.onnx.imports import Imports
from ansorlite.frontends.onnx.loops import Loop, Scan, known, subgraph
from ansorlite.frontends.onnx.node import UnsupportedError
from ansorlite.frontends.onnx.scope import Attempt, NameScope
from ansorlite.frontends.onnx.segments import Slot

#: Nodes that a loop may become.
_MOST_NODES: Final = 2048


def written_branch(attempt: Attempt, imports: Imports) -> Sequence[Slot]:
    """The results of an ``If`` whose condition is known.

    Raises:
        UnsupportedError: it is not.
    """
    condition = known(attempt.inputs[0], imports)
    graph = subgraph(attempt, "then_branch" if condition else "else_branch")
    names = [entry.name for entry in graph.output]
    scope = imports.scope_of(graph, {}, attempt.scope)
    imports.add_nodes(graph.node, names, scope)
    return [scope.slots[name] for name in names]


def written_loop(loop: Loop, count: int, attempt: Attempt, imports: Imports) -> Sequence[Slot]:
    """The results of ``count`` turns of ``loop``, the node of ``attempt``.

    Raises:
        UnsupportedError: its body is no tensor expressions, or too much.
    """
    if loop.rows and not count:
        raise UnsupportedError("it runs not once")
    _check_body(loop.body, imports, count)
    carried = list(loop.carried)
    columns: list[list[Slot]] = [[] for _ in loop.rows]
    begin = imports.size
    for turn in range(count):
        given = [*(Slot.constant(name, array) for name, array in loop.told(turn, True).items()), *carried]
        _, *results = _run(loop.body, given, attempt.scope, imports)
        _check_size(imports.size - begin, turn, count)
        carried = results[: len(carried)]
        for column, slot in zip(columns, results[len(carried) :], strict=True):
            column.append(slot)
    return [*carried, *(_stacked(column, 0, attempt.scope, imports) for column in columns)]


def written_scan(scan: Scan, attempt: Attempt, imports: Imports) -> Sequence[Slot]:
    """The results of ``scan``, the node of ``attempt``.

    Raises:
        UnsupportedError: its body is no tensor expressions, or too much.
    """
    _check_body(scan.body, imports, scan.count)
    carried = list(scan.carried)
    columns: list[list[Slot]] = [[] for _ in scan.columns]
    begin = imports.size
    for turn in range(scan.count):
        rows = [_row(slot, axis, scan.place(turn, back), attempt.scope, imports) for slot, axis, back in scan.scanned]
        results = _run(scan.body, [*carried, *rows], attempt.scope, imports)
        _check_size(imports.size - begin, turn, scan.count)
        carried = results[: len(carried)]
        for column, slot in zip(columns, results[len(carried) :], strict=True):
            column.append(slot)
    ordered = [(column[::-1] if back else column, axis) for column, (axis, back) in zip(columns, scan.columns, strict=True)]
    return [*carried, *(_stacked(column, axis, attempt.scope, imports) for column, axis in ordered)]


def _check_body(body: onnx.GraphProto, imports: Imports, count: int) -> None:
    if not imports.is_native(body):
        raise UnsupportedError("its body has operators that are no tensor expressions")
    if count * len(body.node) > _MOST_NODES:
        raise UnsupportedError("it runs too often to be written out")


def _check_size(nodes: int, turn: int, count: int) -> None:
    """Whether ``count`` turns are too many, as there are ``nodes`` after this one: one of ONNX's may become many."""
    if nodes * count > _MOST_NODES * (turn + 1):
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
