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
from ansorlite.frontends.onnx.imports import Imports
from ansorlite.frontends.onnx.loops import single, subgraph
from ansorlite.frontends.onnx.scope import Attempt
from ansorlite.frontends.onnx.turns import called_loop, called_scan
from ansorlite.graph.hybrid import Datum


def control_of(attempt: Attempt, imports: Imports) -> Control:
    """A node of control flow.

    Raises:
        UnsupportedError: a value that it reads or carries has no shape that is known and stays.
        ModelError: its parts do not fit together.
    """
    return _MAKERS[attempt.proto.op_type](attempt, imports)


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


def _branch(attempt: Attempt, imports: Imports) -> Control:
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


_MAKERS: Final[Mapping[str, Callable[[Attempt, Imports], Control]]] = {"If": _branch, "Loop": called_loop, "Scan": called_scan}
