"""Where a program's loops stand: index expressions of one nest whose numbers are known.

Everything here is about one program, element 0 of the columns. A loop of one iteration has no variable: it stands at 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ansorlite.loops.nodes import For, LoopKind, Stmt, index
from ansorlite.schedule.nest import Attached, Nest
from ansorlite.te import functions as te
from ansorlite.te.expr import Axis, Expr, Var
from ansorlite.te.index.ranges import Interval, bounds


@dataclass(frozen=True, eq=False)
class Level:
    """One real loop (of more than one iteration) of one program.

    Attributes:
        position: of the nest's loop that it is.
        cut: whether its last iteration is cut short where the step does not divide the span; else it is shifted inwards.
        exact: whether every run of it covers its whole span: true of what shifts.
    """

    name: str
    position: int
    axis: Axis
    band: int
    reduce: bool
    span: int
    step: int
    trip: int
    unrolled: bool
    lanes: int
    cut: bool
    exact: bool

    def offset(self, var: Expr) -> Expr:
        """How far the iteration ``var`` stands from the start of the span; the last one is shifted inwards."""
        plain = var * self.step if self.step > 1 else var
        if self.cut or self.trip * self.step == self.span:
            return plain
        return te.minimum(plain, self.span - self.step)

    def extent(self, corner: Expr) -> Expr:
        """Iterations, when the span starts at ``corner``: fewer than ``trip`` in a last tile that is cut."""
        if self.exact:
            return index(self.trip)
        left = self.axis.extent - corner
        return te.minimum(self.trip, left if self.step == 1 else (left + (self.step - 1)) // self.step)


def levels(nest: Nest) -> tuple[Level, ...]:
    """The real loops of the program, outermost first, under names that depend on nothing but the program."""
    counts: Counter[Axis] = Counter()
    result = []
    lane_loop = nest.loops[-1] if nest.loops else None
    for position, loop in enumerate(nest.loops):
        if loop.trip == 1:
            continue
        lanes = int(nest.lanes) if loop is lane_loop else 1
        numbers = (int(loop.span), int(loop.step), int(loop.trip))
        cut = loop.name in nest.cut
        exact = not cut or _exact(nest, position)
        name = f"{loop.axis.name}{counts[loop.axis]}"
        counts[loop.axis] += 1
        result.append(Level(name, position, loop.axis, loop.band, loop.reduce, *numbers, bool(loop.unrolled), lanes, cut, exact))
    return tuple(result)


def _exact(nest: Nest, position: int) -> bool:
    """Whether no outer loop over the same axis has a cut last iteration."""
    axis = nest.loops[position].axis
    around = nest.loops if axis in nest.mixed else nest.loops[:position]
    return all(loop.trip * loop.step == loop.span for loop in around if loop.axis is axis)


class Position:
    """Values of loop variables, and the corners of tiles that follow from them.

    Immutable: :meth:`inside` gives a new one.
    """

    def __init__(self, levels: tuple[Level, ...], at: Mapping[Level, Expr]) -> None:
        self.levels = levels
        self.at = dict(at)

    def inside(self, at: Mapping[Level, Expr]) -> Position:
        return Position(self.levels, self.at | dict(at))

    def corner(self, axis: Axis, below: int | None = None) -> Expr:
        """The coordinate on ``axis`` that the loops stand at: of all known, or of those in bands before ``below``."""
        total: Expr = index(0)
        for level in self.levels:
            if level.axis is axis and level in self.at and (below is None or level.band < below):
                term = level.offset(self.at[level])
                total = term if total is index(0) else total + term
        return total

    def left(self, axis: Axis, band: int) -> int:
        """How many elements of ``axis`` the loops of ``band`` and those further in walk."""
        return next((level.span for level in self.levels if level.axis is axis and level.band >= band), 1)


def loops_over(chosen: Iterable[Level], position: Position) -> tuple[list[tuple[Level, Var, Expr]], Position]:
    """Fresh variables for ``chosen`` loops: (level, variable, extent) each, and the position inside of all of them."""
    opened = []
    for level in chosen:
        var = Var(level.name)
        opened.append((level, var, level.extent(position.corner(level.axis))))
        position = position.inside({level: var})
    return opened, position


def nested(opened: list[tuple[Level, Var, Expr]], body: Stmt, plain: bool = False) -> Stmt:
    """``body`` inside the loops, each of its level's kind; ``plain`` makes them all serial."""
    for level, var, extent in reversed(opened):
        kind, lanes = LoopKind.SERIAL, 1
        if level.lanes > 1 and not plain:
            kind, lanes = LoopKind.VECTORIZED, level.lanes
        elif level.unrolled and not plain:
            kind = LoopKind.UNROLLED
        body = For(var, extent, kind, body, lanes)
    return body


def box_corner(stage: Attached, position: Position, lengths: tuple[int, ...], ranges: Mapping[Var, Interval]) -> tuple[Expr, ...]:
    """The lower corner of the region of ``stage`` at its place: within the tensor, shifted inwards where it sticks out."""
    at = int(stage.at)
    corners: list[Expr] = []
    for box, extent, length in zip(stage.region, stage.tensor.shape, lengths, strict=True):
        if at == 0 or box is None or length == extent:
            corners.append(index(0))
            continue
        low: Expr = index(box.constant)
        for axis, coefficient in box.terms:
            end = position.corner(axis, below=at)
            low = low + (end if coefficient > 0 else end + (position.left(axis, at) - 1)) * coefficient
        least, most = bounds(low, ranges)
        if most > extent - length:
            low = te.minimum(low, extent - length)
        if least < 0:
            low = te.maximum(low, 0)
        corners.append(low)
    return tuple(corners)
