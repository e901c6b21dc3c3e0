"""Control flow whose course is known only while the model runs, or that is too long to be written out.

What a loop repeats, and each branch of a condition, is a model of its own, compiled and tuned as any other, which Python calls.
What :mod:`ansorlite.frontends.onnx.control` can write out becomes a part of the model around it instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ansorlite.errors import ModelError
from ansorlite.frontends.onnx.bodies import Body, Compiled, Control, Reads, Source, type_of
from ansorlite.frontends.onnx.control import written_branch, written_loop, written_scan
from ansorlite.frontends.onnx.imports import Imports
from ansorlite.frontends.onnx.loops import Loop, Scan, single, subgraph
from ansorlite.frontends.onnx.node import UnsupportedError
from ansorlite.frontends.onnx.scope import Attempt
from ansorlite.frontends.onnx.segments import Slot
from ansorlite.frontends.onnx.trips import trips
from ansorlite.frontends.onnx.turns import called_loop, called_scan
from ansorlite.graph.hybrid import Datum

#: Why a loop that runs a known number of times is not written out.
_TOO_OFTEN: Final = "it runs too often to be written out"


def control(attempt: Attempt, imports: Imports) -> Sequence[Slot] | Control:
    """The results of a node of control flow, written out; or the node as calls of its bodies, where that cannot be.

    Raises:
        UnsupportedError: a value that it reads or carries has no shape that is known and stays.
        ModelError: its parts do not fit together.
    """
    return _MAKERS[attempt.proto.op_type](attempt, imports)


def _loop(attempt: Attempt, imports: Imports) -> Sequence[Slot] | Control:
    loop = Loop.of(attempt)
    try:
        count = trips(loop, attempt, imports)
    except UnsupportedError as error:
        return called_loop(loop, None, str(error), attempt, imports)
    try:
        return written_loop(loop, count, attempt, imports)
    except UnsupportedError:
        return called_loop(loop, count, _TOO_OFTEN, attempt, imports)


def _scan(attempt: Attempt, imports: Imports) -> Sequence[Slot] | Control:
    scan = Scan.of(attempt)
    try:
        return written_scan(scan, attempt, imports)
    except UnsupportedError:
        return called_scan(scan, _TOO_OFTEN, attempt, imports)


def _branch(attempt: Attempt, imports: Imports) -> Sequence[Slot] | Control:
    try:
        return written_branch(attempt, imports)
    except UnsupportedError:
        return _called_branch(attempt, imports)


@dataclass(frozen=True, eq=False)
class _Branches:
    """One of two bodies.

    Attributes:
        condition: which.
        bodies: if it holds, and if it does not.
        results: for each result that is read, what the bodies call it.
    """

    condition: Source
    bodies: tuple[Body, Body]
    results: Sequence[tuple[str, str]]

    def __call__(self, data: Sequence[Datum], *compiled: Compiled) -> list[Datum]:
        """The results.

        Raises:
            ModelError: the condition is no single value.
        """
        which = 0 if single("the condition", self.condition(data)) else 1
        results = self.bodies[which](compiled[which], self.bodies[which].given(data), {})
        return [results[names[which]] for names in self.results]


def _called_branch(attempt: Attempt, imports: Imports) -> Control:
    reads = Reads()
    graphs = [subgraph(attempt, "then_branch"), subgraph(attempt, "else_branch")]
    if any(len(graph.output) != len(attempt.proto.output) for graph in graphs):
        raise ModelError(f"{attempt.title}: its branches and its results do not fit together")
    positions = [p for p, name in enumerate(attempt.proto.output) if name]
    then, other = (Body.of(graph, {}, {}, [graph.output[p].name for p in positions], attempt, imports, reads) for graph in graphs)
    names = [(graphs[0].output[p].name, graphs[1].output[p].name) for p in positions]
    results = {
        attempt.proto.output[p]: type_of([then.model.outputs[first].value, other.model.outputs[second].value])
        for p, (first, second) in zip(positions, names, strict=True)
    }
    run = _Branches(reads(attempt.inputs[0]), (then, other), names)
    reason = "how it goes on is known only while the model runs"
    return Control(reason, reads.slots, run, results, {}, (then.model, other.model))


_MAKERS: Final[Mapping[str, Callable[[Attempt, Imports], Sequence[Slot] | Control]]] = {
    "If": _branch,
    "Loop": _loop,
    "Scan": _scan,
}
