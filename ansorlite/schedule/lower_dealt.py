"""The loops of a stage that the threads of a block compute together, into memory that they share.

Elements are dealt out, so that neighbouring threads have neighbouring elements of what is read::

    thread t in 64: unrolled n in 4: vectorized v in 4:  A_s[e // 8, e % 8] = A[...]         # e = (n * 64 + t) * 4 + v

A sum whose reduce axis is vectorised is dealt out in lanes: so many threads add up one element, each its share, and join what
they have (:class:`ansorlite.loops.nodes.Fold`)::

    serial n in 2:
        thread t in 64: part[t] = 0; for k: part[t] += X[n * 2 + t // 32, k * 32 + t % 32]
        fold part over 32
        thread t in 64: if t % 32 == 0: S[n * 2 + t // 32] = part[t]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod
from typing import Final

from ansorlite.analysis.access import walked
from ansorlite.loops.intrinsics import fold
from ansorlite.loops.nodes import Buffer, For, If, Load, LoopKind, Role, Scope, Stmt, Store, block, index
from ansorlite.schedule.lower_region import RegionLowering
from ansorlite.schedule.nest import Attached
from ansorlite.schedule.reading import Reader
from ansorlite.te import functions as te
from ansorlite.te.expr import Axis, Expr, Reduce, Var
from ansorlite.te.reductions import combine, identity
from ansorlite.te.tensor import Tensor

#: So many rounds of a copy are straight-line code, at most: its loads are all on their way before the first one lands.
WRITTEN_OUT: Final = 8
#: Threads join what they have in groups of so many at most; larger ones through shared memory.
_FOLDED: Final = 32


class DealtLowering(RegionLowering):
    """One box of one stage, by the threads of a block.

    Attributes:
        temporaries: buffers that it takes, of the block.
    """

    def __init__(
        self,
        stage: Attached,
        corner: tuple[Expr, ...],
        buffer: Buffer,
        reads: Mapping[Tensor, Reader],
        extents: Mapping[Axis, int],
    ) -> None:
        super().__init__(stage, corner, buffer, reads, extents)
        self.threads = int(stage.dealt)
        self.temporaries: list[Buffer] = []

    def lower(self) -> Stmt:
        body = self.tensor.body
        return self.in_lanes(body) if isinstance(body, Reduce) else self.elements()

    def elements(self) -> Stmt:
        """Elements, dealt out one, or a vector, at a time."""
        order = walked(self.tensor)
        last = order[-1] if order else 0
        lanes = self.lanes
        thread, number, lane = Var("t"), Var("n"), Var("v")
        chunks = prod(self.lengths) // lanes
        chunk = number * self.threads + thread
        at = self.digits(order, chunk, lanes)
        if lanes > 1:
            at[last] = at[last] * lanes + lane
        indices = tuple(at[dim] for dim in range(len(self.lengths)))
        body: Stmt = Store(self.buffer, indices, self.value(indices, {}), self.tensor.name, Role.COMPUTE)
        if lanes > 1:
            body = For(lane, index(lanes), LoopKind.VECTORIZED, body, lanes)
        if chunks % self.threads:
            body = If(chunk < chunks, body)
        rounds = -(-chunks // self.threads)
        kind = LoopKind.UNROLLED if rounds <= WRITTEN_OUT else LoopKind.SERIAL
        return For(thread, index(self.threads), LoopKind.THREAD, For(number, index(rounds), kind, body))

    def digits(self, order: Sequence[int], number: Expr, lanes: int = 1) -> dict[int, Expr]:
        """The place in the box, by dimension, of an element by its number in the order of ``order``, the last one fastest."""
        at: dict[int, Expr] = dict.fromkeys(order, index(0))
        lengths = {dim: self.lengths[dim] // lanes if dim == order[-1] else self.lengths[dim] for dim in order}
        walked_ = [dim for dim in order if lengths[dim] > 1]
        step = 1
        for dim in reversed(walked_):
            digit = number // step if step > 1 else number
            at[dim] = digit % lengths[dim] if dim != walked_[0] else digit
            step *= lengths[dim]
        return at

    def in_lanes(self, body: Reduce) -> Stmt:
        """Elements that ``lanes`` threads add up together, each.

        All threads run the same loops, those for which no element is left too: a warp comes to a barrier, and to a fold, whole.
        """
        name, dtype = self.tensor.name, self.tensor.dtype
        axis = self.tensor.reduce_axes[-1] if self.lane_axis is None else self.lane_axis
        lanes = self.lanes
        part = Buffer(f"{name}_part", (self.threads,), dtype, Scope.PRIVATE)
        self.temporaries.append(part)
        elements, groups, number = prod(self.lengths), self.threads // lanes, Var("n")
        order = walked(self.tensor)

        def phase(make: Callable[[Var], Stmt]) -> Stmt:
            thread = Var("t")
            return For(thread, index(self.threads), LoopKind.THREAD, make(thread))

        def place(thread: Var) -> tuple[Expr, ...]:
            element: Expr = number * groups + thread // lanes
            at = self.digits(order, te.minimum(element, elements - 1) if elements % groups else element)
            return tuple(at[dim] for dim in range(len(self.lengths)))

        def own(thread: Var) -> Load:
            return Load(part, (thread,), dtype)

        def add(thread: Var) -> Stmt:
            reduce = {axis: Var(axis.name) for axis in self.tensor.reduce_axes}
            extent, strip = self.extents.get(axis, axis.extent), reduce[axis]
            at: dict[Axis, Expr] = {**reduce, axis: strip * lanes + thread % lanes}
            step = Store(part, (thread,), combine(body.op, own(thread), self.value(place(thread), at)), name, Role.UPDATE)
            inside: Stmt = step if extent % lanes == 0 else If(at[axis] < extent, step)
            strips = For(strip, index(-(-extent // lanes)), LoopKind.SERIAL, inside)
            start = Store(part, (thread,), identity(body.op, dtype), name, Role.INIT)
            return block(start, self.reduction(axis, strips, reduce))

        def give(thread: Var) -> Stmt:
            stored: Stmt = Store(self.buffer, place(thread), own(thread), name, Role.MOVE)
            if lanes > 1:
                stored = If(thread % lanes < 1, stored)
            return If(number * groups + thread // lanes < elements, stored) if elements % groups else stored

        phases = block(phase(add), *self.joined(body, part, lanes), phase(give))
        return For(number, index(-(-elements // groups)), LoopKind.SERIAL, phases)

    def joined(self, body: Reduce, part: Buffer, lanes: int) -> Iterator[Stmt]:
        """Every thread gets what its group of ``lanes`` has."""
        if lanes == 1:
            return
        if lanes <= _FOLDED:
            yield fold(body.op, part, part, lanes)
            return
        # First those of a warp, then, through a row of shared memory, one of each warp of the group.
        warps, name = lanes // _FOLDED, self.tensor.name
        row = Buffer(f"{name}_row", (self.threads // _FOLDED,), part.dtype, Scope.SHARED)
        self.temporaries.append(row)
        yield fold(body.op, part, part, _FOLDED)
        giver, taker = Var("t"), Var("t")
        given = Store(row, (giver // _FOLDED,), Load(part, (giver,), part.dtype), name, Role.MOVE)
        yield For(giver, index(self.threads), LoopKind.THREAD, If((giver % _FOLDED) < 1, given))
        taken = Load(row, ((taker // lanes) * warps + taker % warps,), part.dtype)
        yield For(taker, index(self.threads), LoopKind.THREAD, Store(part, (taker,), taken, name, Role.MOVE))
        yield fold(body.op, part, part, warps)
