"""The traces of rows as arrays: a token for each primitive, for models that read schedules as sequences (as TLP does)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from ansorlite.columns.arithmetic import log2, maximum
from ansorlite.columns.program import ColumnProgram
from ansorlite.columns.tape import Number, Tape
from ansorlite.schedule.primitives import PRIMITIVES, Step
from ansorlite.schedule.primitives.step import arguments
from ansorlite.schedule.refs import LoopRef
from ansorlite.schedule.samples import Choose, Symbol, evaluate
from ansorlite.schedule.structure import Sampled, Structure
from ansorlite.sketch.sketch import Sketch

#: A token has so many numbers among the arguments of its primitive, the first ones,
NUMBERS: Final = 8
#: and the extents of the axes of so many of its loops, the first ones.
EXTENTS: Final = 4
#: Columns of a token: which primitive it is, one of them 1; log2(1 + x) of numbers, and of extents. What is not there is 0.
TOKEN: Final[tuple[str, ...]] = (
    *PRIMITIVES,
    *(f"number_{place}" for place in range(NUMBERS)),
    *(f"extent_{place}" for place in range(EXTENTS)),
)

_PROGRAMS: WeakKeyDictionary[Sketch, ColumnProgram] = WeakKeyDictionary()


def tokens(sketch: Sketch, rows: NDArray[np.int64]) -> NDArray[np.float64]:
    """``(n, primitives, len(TOKEN))`` float64 of rows ``(n, holes)``: the primitives in the order of the trace; read-only."""
    steps = sketch.trace.steps
    program = _PROGRAMS.get(sketch)
    if program is None:
        program = _PROGRAMS[sketch] = _recorded(sketch)
    result = np.zeros((len(rows), len(steps), len(TOKEN)))
    kinds = list(PRIMITIVES)
    for place, step in enumerate(steps):
        result[:, place, kinds.index(step.method)] = 1.0
    found = program.run(rows).T.reshape(len(rows), len(steps), NUMBERS + EXTENTS)
    result[:, :, len(PRIMITIVES) :] = found
    result.setflags(write=False)
    return result


def _recorded(sketch: Sketch) -> ColumnProgram:
    tape, column = Tape(), {hole.name: position for position, hole in enumerate(sketch.holes)}
    outputs: list[Number] = []
    for step in sketch.trace.steps:
        numbers = list(
            _numbers([value for _, value in arguments(step)], lambda hole, table: tape.gather(column[hole.name], table))
        )
        extents = [_extent(sketch.structure, loop) for loop in _loops(step)]
        for found, count in ((numbers, NUMBERS), (extents, EXTENTS)):
            outputs += [log2(1 + maximum(each, 0)) for each in found[:count]] + [0] * (count - len(found))
    program = ColumnProgram(tape, outputs)
    tape.close()
    return program


def _numbers(values: object, choose: Choose) -> Iterator[Number]:
    """The numbers among arguments, in order; that of a place is its position among the places that it is chosen from."""
    match values:
        case bool() | None:
            pass
        case int() | Symbol():
            yield evaluate(values, choose)
        case Sampled(hole, places):
            yield choose(hole, np.arange(len(places)))
        case tuple() | list():
            for value in values:
                yield from _numbers(value, choose)


def _loops(step: Step) -> list[LoopRef]:
    found = [value for _, value in arguments(step)]
    inside = [item for value in found if isinstance(value, tuple) for item in value]
    return [each for each in (*found, *inside) if isinstance(each, LoopRef)]


def _extent(structure: Structure, loop: LoopRef) -> int:
    """Of the axis that a loop walks; 0 where its stage is gone."""
    tensor = structure.tensors.get(loop.stage)
    if tensor is None or tensor.body is None:
        return 0
    said = structure.loops(loop.stage)
    parents = {part: split.loop for split in said.splits for part in split.parts}
    extents = {axis.name: axis.extent for axis in (*tensor.axes, *tensor.reduce_axes)}
    result = 1
    for name in said.parts(loop.name):
        while name in parents:
            name = parents[name]
        result *= extents.get(name, 0)
    return result
