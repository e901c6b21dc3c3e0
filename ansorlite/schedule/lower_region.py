"""The loops of a stage without a nest of its own: one box of it, computed in one go.

A reduction runs in a vector of partial results: along the space axis that is contiguous, one vector of elements at a
time, or along the reduce axis itself, with the lanes folded at the end.
"""

from __future__ import annotations

from collections.abc import Mapping

from ansorlite.analysis.access import positions
from ansorlite.analysis.branches import branch_axes, region_loops
from ansorlite.loops.nodes import Alloc, Buffer, For, Load, LoopKind, Role, Scope, Stmt, Store, block, index
from ansorlite.schedule.nest import Attached
from ansorlite.schedule.parallel import parallel_loop
from ansorlite.schedule.reading import Reader, on_buffers
from ansorlite.te import functions as te
from ansorlite.te.expr import Axis, Expr, Reduce, Var
from ansorlite.te.reductions import combine, identity
from ansorlite.te.tensor import Tensor


class RegionLowering:
    """One box of one stage: from ``corner``, of the stage's lengths, into ``buffer`` (its corner at index 0)."""

    def __init__(
        self,
        stage: Attached,
        corner: tuple[Expr, ...],
        buffer: Buffer,
        reads: Mapping[Tensor, Reader],
        extents: Mapping[Axis, int],
    ) -> None:
        self.tensor = stage.tensor
        self.buffer = buffer
        self.reads = reads
        self.corner = corner
        self.lengths = tuple(int(length) for length in stage.lengths)
        self.lanes = int(stage.lanes)
        self.lane_axis = stage.lane_axis if self.lanes > 1 else None
        self.lane_of_box = stage.lane_axis
        self.lane = next((d for d, axis in enumerate(self.tensor.axes) if axis is stage.lane_axis), None)
        self.parallel = int(stage.parallel)
        self.extents = extents

    def lower(self) -> Stmt:
        """The statement that computes the box."""
        vars_ = tuple(Var(axis.name) for axis in self.tensor.axes)
        if not isinstance(self.tensor.body, Reduce):
            body: Stmt = Store(self.buffer, vars_, self.value(vars_, {}), self.tensor.name, Role.COMPUTE)
            return self.space_loops(vars_, body)
        if self.lane is not None and self.lanes > 1:
            return self.space_loops(vars_, self.vector_of_elements(vars_, self.lane), strips=True)
        return self.space_loops(vars_, self.one_element(vars_))

    def value(self, vars_: tuple[Expr, ...], reduce: Mapping[Axis, Expr]) -> Expr:
        body = self.tensor.body
        assert body is not None
        at = {axis: c + v for axis, c, v in zip(self.tensor.axes, self.corner, vars_, strict=True)}
        return on_buffers(body.body if isinstance(body, Reduce) else body, at | dict(reduce), self.reads)

    def space_loops(self, vars_: tuple[Var, ...], body: Stmt, strips: bool = False) -> Stmt:
        """``body`` inside the loops over the box; that along the lanes is innermost, or is in the body as ``strips``."""
        number, written_out = positions(self.tensor), branch_axes(self.tensor)
        others = [number[axis] for axis in region_loops(self.tensor, self.lane_of_box)]
        if self.lane is not None and not strips:
            kind = LoopKind.VECTORIZED if self.lanes > 1 else LoopKind.SERIAL
            body = For(vars_[self.lane], index(self.lengths[self.lane]), kind, body, self.lanes)
        for d in reversed(others[self.parallel :]):
            kind = LoopKind.UNROLLED if self.tensor.axes[d] in written_out else LoopKind.SERIAL
            body = For(vars_[d], index(self.lengths[d]), kind, body)
        return parallel_loop([(vars_[d], self.lengths[d]) for d in others[: self.parallel]], body)

    def reduction(self, skip: Axis | None, body: Stmt, vars_: Mapping[Axis, Var]) -> Stmt:
        for axis in reversed(self.tensor.reduce_axes):
            if axis is not skip:
                body = For(vars_[axis], index(self.extents.get(axis, axis.extent)), LoopKind.SERIAL, body)
        return body

    def vector_of_elements(self, vars_: tuple[Var, ...], lane: int) -> Stmt:
        """Vectors along a space axis: each is reduced in a register, then stored; the last is shifted inwards."""
        body = self.tensor.body
        assert isinstance(body, Reduce)
        length, width = self.lengths[lane], self.lanes
        strip = Var(f"{vars_[lane].name}_strip")
        start: Expr = strip * width
        if length % width:
            start = te.minimum(start, length - width)
        partial = Buffer(f"{self.tensor.name}_part", (width,), self.tensor.dtype, Scope.REGISTER)
        reduce = {axis: Var(axis.name) for axis in self.tensor.reduce_axes}

        def vector(make: Stmt, var: Var) -> Stmt:
            return For(var, index(width), LoopKind.VECTORIZED, make, width)

        a, b, c = (Var(vars_[lane].name) for _ in range(3))
        here = (*vars_[:lane], start + b, *vars_[lane + 1 :])
        step = combine(body.op, Load(partial, (b,), partial.dtype), self.value(here, reduce))
        out = (*vars_[:lane], start + c, *vars_[lane + 1 :])
        work = block(
            vector(Store(partial, (a,), identity(body.op, self.tensor.dtype), self.tensor.name, Role.INIT), a),
            self.reduction(None, vector(Store(partial, (b,), step, self.tensor.name, Role.UPDATE), b), reduce),
            vector(Store(self.buffer, out, Load(partial, (c,), partial.dtype), self.tensor.name, Role.MOVE), c),
        )
        return For(strip, index(-(-length // width)), LoopKind.SERIAL, Alloc(partial, work))

    def one_element(self, vars_: tuple[Var, ...]) -> Stmt:
        """One element after another; with a vectorised reduce axis in a vector of partial results."""
        body = self.tensor.body
        assert isinstance(body, Reduce)
        name, dtype = self.tensor.name, self.tensor.dtype
        reduce = {axis: Var(axis.name) for axis in self.tensor.reduce_axes}
        start = identity(body.op, dtype)
        if self.lane_axis is None:
            total = Buffer(f"{name}_part", (), dtype, Scope.REGISTER)
            step = combine(body.op, Load(total, (), dtype), self.value(vars_, reduce))
            work = block(
                Store(total, (), start, name, Role.INIT),
                self.reduction(None, Store(total, (), step, name, Role.UPDATE), reduce),
                Store(self.buffer, vars_, Load(total, (), dtype), name, Role.MOVE),
            )
            return Alloc(total, work)
        width, extent = self.lanes, self.extents.get(self.lane_axis, self.lane_axis.extent)
        total = Buffer(f"{name}_part", (width,), dtype, Scope.REGISTER)
        strip, lane = reduce[self.lane_axis], Var(f"{self.lane_axis.name}_lane")
        at: dict[Axis, Expr] = {**reduce, self.lane_axis: strip * width + lane}
        step = combine(body.op, Load(total, (lane,), dtype), self.value(vars_, at))
        left = index(width) if extent % width == 0 else te.minimum(width, extent - strip * width)
        inner = For(lane, left, LoopKind.VECTORIZED, Store(total, (lane,), step, name, Role.UPDATE), width)
        strips = For(strip, index(-(-extent // width)), LoopKind.SERIAL, inner)
        work = block(
            _filled(total, start, name),
            self.reduction(self.lane_axis, strips, reduce),
            folded(total, (), Store(self.buffer, vars_, start, name, Role.MOVE), body, name),
        )
        return Alloc(total, work)


def _filled(buffer: Buffer, value: Expr, name: str) -> Stmt:
    lane = Var("lane")
    store = Store(buffer, (lane,), value, name, Role.INIT)
    return For(lane, index(buffer.shape[-1]), LoopKind.VECTORIZED, store, buffer.shape[-1])


def folded(lanes: Buffer, at: tuple[Expr, ...], target: Store, body: Reduce, name: str) -> Stmt:
    """``target``, its value and every lane of ``lanes[at]`` combined: the upper half onto the lower, until one is left."""
    steps: list[Stmt] = []
    left = lanes.shape[-1]
    while left > 1:
        half = 1 << (left - 1).bit_length() - 1
        lane = Var("lane")
        low, high = (Load(lanes, (*at, place), lanes.dtype) for place in (lane, lane + half))
        step = Store(lanes, (*at, lane), combine(body.op, low, high), name, Role.MOVE)
        steps.append(For(lane, index(left - half), LoopKind.VECTORIZED, step, left - half))
        left = half
    total = combine(body.op, target.value, Load(lanes, (*at, index(0)), lanes.dtype))
    return block(*steps, Store(target.buffer, target.indices, total, name, Role.MOVE))
