"""Where a program's loops stand: index expressions of one nest whose numbers are known.

Everything here is about one program, element 0 of the columns. A loop of one iteration has no variable: it stands at 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import groupby
from math import prod

from ansorlite.loops.nodes import THREADS, For, If, LoopKind, Stmt, index
from ansorlite.schedule.fusing import runs
from ansorlite.schedule.nest import Attached, Loop, Nest
from ansorlite.schedule.parallel import fused_loop
from ansorlite.schedule.refs import LoopRef
from ansorlite.te import functions as te
from ansorlite.te.expr import Axis, Expr, Var
from ansorlite.te.index.ranges import Interval, bounds


@dataclass(frozen=True, eq=False)
class Level:
    """One real loop of one program: of more than one iteration, or bound to what a GPU has.

    Attributes:
        position: of the nest's loop that it is.
        cut: whether its last iteration is cut short where the step does not divide the span; else it is shifted inwards.
        depth: the place among the levels of its axis, whatever the order of the loops.
        exact: whether every run of it covers its whole span: true of what shifts.
        guarded: whether what reaches beyond its end runs under a condition.
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
    depth: int
    exact: bool
    bound: LoopKind | None = None
    fused: LoopRef | None = None
    guarded: bool = False

    @property
    def uneven(self) -> bool:
        """Whether its last iteration is short."""
        return self.cut and self.trip * self.step != self.span

    def offset(self, var: Expr) -> Expr:
        """How far the iteration ``var`` stands from the start of the span; the last one is shifted inwards."""
        plain = var * self.step if self.step > 1 else var
        if self.cut or self.trip * self.step == self.span:
            return plain
        return te.minimum(plain, self.span - self.step)

    def extent(self, position: Position) -> Expr:
        """Iterations at ``position``: fewer than ``trip`` where a span that it is in, or its own, ends before."""
        extent: Expr = index(self.trip)
        if self.exact:
            return extent
        for other in position.levels:
            if other.axis is self.axis and other.uneven and not other.guarded and other.depth <= self.depth:
                left = other.span - position.within(other)
                extent = te.minimum(extent, left if self.step == 1 else (left + (self.step - 1)) // self.step)
        return extent


def levels(nest: Nest) -> tuple[Level, ...]:
    """The real loops of the program, outermost first, under names that depend on nothing but the program."""
    counts: Counter[Axis] = Counter()
    result = []
    lane_loop = nest.loops[-1] if nest.loops else None
    for position, loop in enumerate(nest.loops):
        if loop.trip == 1 and loop.bound is None:
            continue
        lanes = int(nest.lanes) if loop is lane_loop else 1
        numbers = (int(loop.span), int(loop.step), int(loop.trip))
        cut = loop.name in nest.cut
        exact = not cut or _exact(nest, loop)
        name = f"{loop.axis.name}{counts[loop.axis]}"
        counts[loop.axis] += 1
        flags = (cut, loop.depth, exact)
        ways = (loop.bound, loop.fused, loop.guard is not None)
        bands = (loop.axis, loop.band, loop.reduce)
        result.append(Level(name, position, *bands, *numbers, bool(loop.unrolled), lanes, *flags, *ways))
    return tuple(result)


def _exact(nest: Nest, loop: Loop) -> bool:
    """Whether neither the loop nor an outer level of its axis has a short last iteration."""
    around = (other for other in nest.loops if other.axis is loop.axis and other.depth <= loop.depth)
    return all(other.name not in nest.cut or other.trip * other.step == other.span for other in around)


@dataclass(frozen=True, eq=False)
class Position:
    """Values of loop variables, and the corners of tiles that follow from them.

    Attributes:
        levels: of the nest.
        at: the values of those that are known.
        thread: the number of the thread, inside of loops over the threads of a block.
    """

    levels: tuple[Level, ...]
    at: Mapping[Level, Expr]
    thread: Expr | None = None

    def inside(self, at: Mapping[Level, Expr]) -> Position:
        return replace(self, at={**self.at, **at})

    def corner(self, axis: Axis, below: int | None = None) -> Expr:
        """The coordinate on ``axis`` that the loops stand at: of all known, or of those in bands before ``below``."""
        total: Expr = index(0)
        for level in self.levels:
            if level.axis is axis and level in self.at and (below is None or level.band < below):
                term = level.offset(self.at[level])
                total = term if total is index(0) else total + term
        return total

    def within(self, level: Level) -> Expr:
        """How far into a run of ``level`` the known loops over it and over deeper levels of its axis stand."""
        total: Expr = index(0)
        for other in self.levels:
            if other.axis is level.axis and other.depth >= level.depth and other in self.at:
                term = other.offset(self.at[other])
                total = term if total is index(0) else total + term
        return total

    def guarded(self, axes: Collection[Axis], body: Stmt) -> Stmt:
        """``body`` where this is before the ends of the loops over ``axes`` whose last iterations run under a condition."""
        over = frozenset(axes)  # of a tuple each axis would be compared by ==, which makes an expression
        for level in reversed(self.levels):
            if level.axis not in over or not level.guarded or not level.uneven:
                continue
            inside = [other for other in self.levels if other.axis is level.axis and other.depth >= level.depth]
            if not all(other in self.at for other in inside):
                continue
            # Of whole vectors the first lane tells.
            lanes = {other: index(0) for other in inside if other.lanes > 1 and level.span % other.span == 0}
            body = If(self.inside(lanes).within(level) < level.span, body)
        return body

    def left(self, axis: Axis, band: int) -> int:
        """How many elements of ``axis`` the loops of ``band`` and those further in walk."""
        return next((level.span for level in self.levels if level.axis is axis and level.band >= band), 1)


def loops_over(chosen: Iterable[Level], position: Position) -> tuple[list[tuple[Level, Var, Expr]], Position]:
    """Fresh variables for ``chosen`` loops: (level, variable, extent) each, and the position inside of all of them.

    Neighbours that are bound to one thing are fused: one loop, as a level of its own.
    """
    opened: list[tuple[Level, Var, Expr]] = []
    for bound, run in groupby(chosen, key=lambda level: level.bound):
        together = list(run)
        if bound is None or len(together) == 1:
            for level in together:
                var = Var(level.name)
                opened.append((level, var, level.extent(position)))
                position = position.inside({level: var})
        else:
            fused = Var("_".join(level.name for level in together))
            total = prod(level.trip for level in together)
            opened.append((replace(together[0], name=fused.name, trip=total), fused, index(total)))
            step = 1
            for level in reversed(together):
                digit = fused // step if step > 1 else fused
                position = position.inside({level: digit % level.trip if level is not together[0] else digit})
                step *= level.trip
        if bound in THREADS:
            level, var, _ = opened[-1]
            position = replace(position, thread=var if position.thread is None else position.thread * level.trip + var)
    return opened, position


def nested(opened: list[tuple[Level, Var, Expr]], body: Stmt, plain: bool = False) -> Stmt:
    """``body`` inside the loops, each of its level's kind, fused ones as one; ``plain`` makes them all serial."""
    for run in reversed(list(runs(opened, (level.fused for level, _, _ in opened)))):
        level, var, extent = run[0]
        kind, lanes = LoopKind.SERIAL, 1
        if level.lanes > 1 and not plain:
            kind, lanes = LoopKind.VECTORIZED, level.lanes
        elif level.unrolled and not plain:
            kind = LoopKind.UNROLLED
        elif level.bound is not None and not plain:
            kind = level.bound
        if len(run) == 1:
            body = For(var, extent, kind, body, lanes)
        else:
            body = fused_loop([(var, level.trip) for level, var, _ in run], body, kind)
    return body


def box_corner(
    stage: Attached,
    nest: Nest,
    position: Position,
    base: Mapping[Axis, Expr],
    lengths: tuple[int, ...],
    ranges: Mapping[Var, Interval],
) -> tuple[Expr, ...]:
    """The lower corner of the region of ``stage`` at its place: within the tensor, shifted inwards where it sticks out.

    ``base`` is the corner of what the nest around it computes, where that is a region itself.
    """
    at = int(stage.at)
    corners: list[Expr] = []
    for box, extent, length in zip(stage.region, stage.tensor.shape, lengths, strict=True):
        if box is None or length == extent:
            corners.append(index(0))
            continue
        low: Expr = index(box.constant)
        for axis, coefficient in box.terms:
            end = position.corner(axis, below=at)
            end = base[axis] + end if axis in base else end
            left = int(nest.sizes[at][axis]) if axis in nest.mixed else position.left(axis, at)
            low = low + (end if coefficient > 0 else end + (left - 1)) * coefficient
        least, most = bounds(low, ranges)
        if most > extent - length:
            low = te.minimum(low, extent - length)
        if least < 0:
            low = te.maximum(low, 0)
        corners.append(low)
    return tuple(corners)
