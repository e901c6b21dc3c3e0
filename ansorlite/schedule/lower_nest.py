"""Lowering of one nest: the anchor's loops, band by band, with everything that is computed inside of them.

What stands where, for the structure S S R S R S of a tiled matrix product::

    parallel i0 j0:
      i1 j1:                                 stages attached after the first band come before this line
        alloc tile                           accumulators of what is below the epilogue's place
        init tile                            before the first loop that reduces
        k0:                                  packed operands come before the band they are attached to
          i2 j2:
            reg = tile                       the innermost tile lives in registers while the inner reduction runs
            k1: i3 j3: reg += ...
            tile = reg
        epilogue: i2 j2 i3 j3: D = f(tile)

A tile is indexed by the loops inside of it, not by coordinates: where shifted tiles overlap in the output, each still
has accumulators of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from math import prod

from ansorlite.analysis.access import axes_of
from ansorlite.loops.fetch_ahead import fetches
from ansorlite.loops.nodes import (
    THREADS,
    Alloc,
    Buffer,
    For,
    If,
    Intrinsic,
    Load,
    LoopKind,
    Multiply,
    Role,
    Scope,
    Stmt,
    Store,
    block,
    index,
)
from ansorlite.loops.pipeline import pipelined
from ansorlite.schedule.coordinates import Level, Position, box_corner, levels, loops_over, nested
from ansorlite.schedule.fusing import runs
from ansorlite.schedule.lower_dealt import DealtLowering
from ansorlite.schedule.lower_region import RegionLowering, folded
from ansorlite.schedule.nest import Attached, Fetched, Multiplied, Nest, Packed, Program
from ansorlite.schedule.no_ops import may_leave_out, needed_at
from ansorlite.schedule.parallel import fused_loop, parallel_loop
from ansorlite.schedule.reading import Reader, fixed, on_buffers, region
from ansorlite.te.expr import Axis, Expr, Reduce, Var
from ansorlite.te.index.ranges import Interval
from ansorlite.te.reductions import combine, identity
from ansorlite.te.tensor import Tensor
from ansorlite.te.traversal import free_vars, reads


@dataclass(frozen=True, eq=False)
class Region:
    """The region of a stage that a nest computes.

    Attributes:
        corner: the lower one, in the stage's coordinates.
        ranges: of the variables in it.
        at_root: whether no loops are around it.
    """

    corner: tuple[Expr, ...]
    ranges: Mapping[Var, Interval]
    at_root: bool


class NestLowering:
    """One nest of one program: of root loops, or of those over the region of an attached stage.

    Attributes:
        root_packs: packed copies made at the root, whose buffers the whole kernel must allocate.
    """

    def __init__(
        self,
        nest: Nest,
        program: Program,
        buffers: Mapping[Tensor, Buffer],
        reads: Mapping[Tensor, Reader],
        region: Region | None = None,
    ) -> None:
        self.program = program
        self.nest = nest
        self.region = region
        self.base: Mapping[Axis, Expr] = {} if region is None else dict(zip(nest.anchor.axes, region.corner, strict=True))
        self.levels = levels(nest)
        self.extents = {axis: int(count) for axis, count in program.parts.items()}
        self.buffers = buffers
        self.reads = dict(reads)
        self.body = nest.anchor.body
        self.epilogue_at = int(nest.epilogue_at)
        self.reduce_at = int(nest.reduce_at)
        self.root_packs: list[Buffer] = []
        self.ranges: dict[Var, Interval] = {} if region is None else dict(region.ranges)
        self.packs: dict[Tensor, tuple[Buffer, list[Level]]] = {}
        # Accumulators: in a tile inside the nest, or in the anchor's own buffer, where no levels index them.
        self.tile_levels: list[Level] | None = None
        self.tile = buffers.get(nest.anchor)
        self.registers: tuple[Buffer, list[Level]] | None = None
        #: What the loop that copies ahead makes rings of.
        self.rings: list[Buffer] = []

    def lower(self) -> Stmt:
        """The whole nest."""
        return self.enter(0, Position(self.levels, {}))

    # Band by band ---------------------------------------------------------------------------------------------------

    def enter(self, band: int, position: Position) -> Stmt:
        """Everything inside the loops of the first ``band`` bands."""
        before: list[Stmt] = []
        local: list[Buffer] = []
        for stage in self.nest.attached:
            if stage.at == band:
                self.attach(stage, position, before, local)
        for pack in self.nest.packed:
            if pack.at == band:
                self.pack(pack, position, before, local)
        with_tile = self.nest.epilogue is not None and band == self.epilogue_at
        result = block(*before, self.accumulate(band, position) if with_tile else self.deeper(band, position))
        for buffer in reversed(local):
            result = Alloc(buffer, result)
        return result

    def deeper(self, band: int, position: Position) -> Stmt:
        """The loops of ``band`` around everything further in, or the statement that they are all for."""
        if self.is_reduction and band == self.register_band:
            return self.in_registers(band, position)
        if self.nest.multiplied is not None and band == self.nest.inner_reduction:
            inside = self.by_unit(self.nest.multiplied, band, position)
        else:
            inside = self.statement(position) if band == len(self.nest.bands) else self.band_loops(band, position)
        starts_here = self.is_reduction and band == self.reduce_at
        if starts_here and (self.register_band is None or band < self.register_band):
            return block(self.start_tile(band, position), inside)
        return inside

    def band_loops(self, band: int, position: Position) -> Stmt:
        here = [level for level in self.levels if level.band == band]
        opened, position = loops_over(here, position)
        self.note(opened)
        inside = self.enter(band + 1, position)
        if band == 0:
            fused = self.parallel_levels
            inside = self.with_fetches(opened[fused:], inside, position)
            return parallel_loop([(var, level.trip) for level, var, _ in opened[:fused]], inside)
        return self.with_fetches(opened, inside, position)

    def with_fetches(self, opened: list[tuple[Level, Var, Expr]], inside: Stmt, position: Position) -> Stmt:
        """``inside`` in loops, each of which asks for what its later iterations read."""
        for run in reversed(list(runs(opened, (level.fused for level, _, _ in opened)))):
            level, var, extent = run[0]
            loop = For(var, extent, LoopKind.SERIAL, inside)
            here = [each for each in self.nest.fetched if each.loop == level.position]
            asked = [self.asked(each, level, loop, position) for each in here]
            inside = block(*asked, inside)
            for most in self.needed(run[-1][0], position):
                inside = If(most >= 0, inside, no_op=True)
            inside = nested(run, inside)
            ring = self.nest.ring
            if ring is not None and self.rings and any(each.position in ring.loops for each, _, _ in run):
                assert isinstance(inside, For)
                inside = pipelined(inside, self.rings, int(ring.stages))
        return inside

    def needed(self, loop: Level, position: Position) -> list[Expr]:
        """What is negative in iterations of ``loop`` that change nothing, and are to be left out."""
        if not may_leave_out(self.nest, loop):  # loops over threads are fused, and then none of the levels
            return []
        below = self.levels.index(loop) + 1
        known = Position(self.levels, {level: position.at[level] for level in self.levels[:below]})
        written_out = {var for level, at in known.at.items() if level.unrolled for var in free_vars(at)}
        return needed_at(self.nest, loop, self.levels[below:], lambda axis: self.element(axis, known), self.ranges, written_out)

    def asked(self, fetched: Fetched, level: Level, loop: For, position: Position) -> Stmt:
        """Prefetches of what is read of a tensor some iterations of ``loop`` later."""
        tensor, below = fetched.tensor, self.levels.index(level) + 1
        pack = next((pack for pack in self.nest.packed if pack.tensor is tensor and pack.at <= level.band), None)
        assert self.nest.anchor.body is not None
        read = next(read for read in reads(self.nest.anchor.body) if read.tensor is tensor)
        used = free_vars(read)
        chosen = [inner for inner in self.levels[below:] if inner.axis in used]
        outside = Position(self.levels, {outer: position.at[outer] for outer in self.levels[:below]})
        opened, at = loops_over(chosen, outside)
        if pack is not None:
            buffer, levels_of_copy = self.packs[tensor]
            load: Expr = Load(buffer, tuple(at.at[each] for each in levels_of_copy), buffer.dtype)
        else:
            coordinates = {axis: self.element(axis, at) for axis in axes_of(self.nest.anchor) if axis in used}
            load = on_buffers(read, coordinates, self.reads)
        assert isinstance(load, Load)
        loops = [For(var, extent, LoopKind.SERIAL, block()) for _, var, extent in opened]
        return fetches(load, loops, loop, int(fetched.distance), stage=self.nest.anchor.name)

    @property
    def parallel_levels(self) -> int:
        """How many of the real loops are fused and parallel."""
        return sum(int(loop.trip) > 1 for loop in self.nest.loops[: int(self.nest.parallel)])

    def note(self, opened: Iterable[tuple[Level, Var, Expr]]) -> None:
        self.ranges |= {var: (0, level.trip - 1) for level, var, _ in opened}

    # The anchor's statement ------------------------------------------------------------------------------------------

    @property
    def is_reduction(self) -> bool:
        return isinstance(self.body, Reduce)

    @property
    def register_band(self) -> int | None:
        """The reduction band around the innermost tile, when that tile lives in registers while the band runs."""
        return self.nest.inner_reduction if self.nest.promoted and self.nest.multiplied is None else None

    def inner_levels(self, band: int) -> list[Level]:
        """The space loops in ``band`` and further in: what a tile there is indexed by."""
        return [level for level in self.levels if level.band >= band and not level.reduce]

    @property
    def lane_level(self) -> Level | None:
        """The vectorised reduce loop, if it is a reduce axis that is vectorised."""
        last = self.levels[-1] if self.levels else None
        return last if last is not None and last.lanes > 1 and last.reduce else None

    def accumulate(self, band: int, position: Position) -> Stmt:
        """The reduction, into a tile of accumulators, and its epilogue."""
        inner = self.inner_levels(band)
        threads = [level for level in inner if level.bound in THREADS] if position.thread is None else []
        self.tile_levels = [level for level in inner if level not in threads]
        shape = tuple(level.trip for level in self.tile_levels)
        scope = Scope.REGISTER if self.nest.tile_is_constant else Scope.LOCAL
        if threads:
            # What threads keep while others run, too.
            scope, shape = Scope.PRIVATE, (prod(level.trip for level in threads), *shape)
        self.tile = Buffer(f"{self.nest.anchor.name}_tile", shape, self.nest.anchor.dtype, scope)
        return Alloc(self.tile, block(self.deeper(band, position), self.run_epilogue(band, position)))

    def tile_indices(self, position: Position) -> tuple[Expr, ...]:
        """Where the accumulator of the element that ``position`` stands at is kept."""
        if self.tile_levels is None:
            return tuple(self.coordinate(axis, position) for axis in self.nest.anchor.axes)
        elements = tuple(position.at[level] for level in self.tile_levels)
        if self.tile is None or self.tile.scope is not Scope.PRIVATE:
            return elements
        assert position.thread is not None
        return (position.thread, *elements)

    def coordinate(self, axis: Axis, position: Position) -> Expr:
        """Where ``position`` stands in the nest on an axis of the anchor; the part's number for the axis that counts parts."""
        if axis in self.extents and not axis.reduce:
            factor = next((level for level in self.levels if level.axis is self.nest.factor and level.band == 0), None)
            return position.at[factor] if factor is not None and not factor.reduce else index(0)
        return position.corner(axis)

    def element(self, axis: Axis, position: Position) -> Expr:
        """Where ``position`` stands on an axis of the anchor."""
        here = self.coordinate(axis, position)
        return self.base[axis] + here if axis in self.base else here

    def start_tile(self, band: int, position: Position) -> Stmt:
        """Every accumulator below ``band`` set to the reduction's start."""
        return self.each(self.inner_levels(band), position, lambda at: self.kept(at, self.tile_store(at, self.start, Role.INIT)))

    def kept(self, position: Position, body: Stmt) -> Stmt:
        """``body``, which touches the accumulator at ``position``: one in the anchor's own buffer only if it is there."""
        return position.guarded(self.nest.anchor.axes, body) if self.tile_levels is None else body

    def each(self, chosen: list[Level], position: Position, make: Callable[[Position], Stmt]) -> Stmt:
        """``make`` at every iteration of the ``chosen`` loops."""
        opened, inside = loops_over(chosen, position)
        return nested(opened, make(inside))

    @property
    def start(self) -> Expr:
        assert isinstance(self.body, Reduce)
        return identity(self.body.op, self.nest.anchor.dtype)

    def tile_store(self, at: Position, value: Expr, role: Role) -> Store:
        assert self.tile is not None
        return Store(self.tile, self.tile_indices(at), value, self.nest.anchor.name, role)

    def tile_load(self, at: Position) -> Load:
        assert self.tile is not None
        return Load(self.tile, self.tile_indices(at), self.tile.dtype)

    def in_registers(self, band: int, position: Position) -> Stmt:
        """The reduction ``band`` with its innermost tile in registers: the tile's own, or a buffer that it is moved to."""
        name, dtype = self.nest.anchor.name, self.nest.anchor.dtype
        inner = self.inner_levels(band)
        starts_here = self.reduce_at >= band
        if self.lane_level is not None:
            return self.in_lanes(inner, self.lane_level, band, position)
        if self.tile is not None and self.tile_levels is not None and not self.nest.apart:
            self.registers = (self.tile, self.tile_levels)
            return block(*([self.start_tile(band, position)] if starts_here else []), self.band_loops(band, position))
        registers = Buffer(f"{name}_reg", tuple(level.trip for level in inner), dtype, Scope.REGISTER)
        self.registers = (registers, inner)

        def store(at: Position, value: Expr, role: Role) -> Store:
            return Store(registers, tuple(at.at[level] for level in inner), value, name, role)

        def first(at: Position) -> Stmt:
            return store(at, self.start, Role.INIT) if starts_here else self.kept(at, store(at, self.tile_load(at), Role.MOVE))

        def last(at: Position) -> Stmt:
            return self.kept(at, self.tile_store(at, Load(registers, tuple(at.at[level] for level in inner), dtype), Role.MOVE))

        loops = self.band_loops(band, position)
        return Alloc(registers, block(self.each(inner, position, first), loops, self.each(inner, position, last)))

    def by_unit(self, by: Multiplied, band: int, position: Position) -> Stmt:
        """The reduction ``band`` and the tile inside of it: in each step instructions of a matrix unit for all of the tile."""
        here = [level for level in self.levels if level.band == band]
        outer = [level for level in here if not by.has(level.axis, level.step)]
        opened, position = loops_over(outer, position)
        self.note(opened)
        tile = [level for level in self.inner_levels(band + 1) if level.bound is None]
        # Tiles first, those of rows before those of columns; then what is in one.
        tile.sort(key=lambda level: (by.has(level.axis, level.step), level.axis is by.column))
        chosen, at = loops_over([*tile, *(level for level in here if level not in outer)], position)
        whole: list[tuple[Level, Var, Expr]] = [(level, var, index(level.trip)) for level, var, _ in chosen]
        return nested(opened, Intrinsic(Multiply(by.unit), nested(whole, self.step(at), plain=True)))

    def in_lanes(self, inner: list[Level], lane: Level, band: int, position: Position) -> Stmt:
        """The reduction ``band`` in a vector of partial results for each element, folded at the end."""
        assert isinstance(self.body, Reduce)
        body, name, chosen = self.body, self.nest.anchor.name, [*inner, lane]
        scope = Scope.REGISTER if all(level.unrolled for level in inner) else Scope.LOCAL
        registers = Buffer(f"{name}_reg", tuple(level.trip for level in chosen), self.nest.anchor.dtype, scope)
        self.registers = (registers, chosen)
        # The partial results start with full vectors, however short the reduction's last run is.
        whole = [*inner, replace(lane, exact=True)]

        def first(at: Position) -> Stmt:
            return Store(registers, tuple(at.at[level] for level in whole), self.start, name, Role.INIT)

        def last(at: Position) -> Stmt:
            kept = self.start if self.reduce_at >= band else self.tile_load(at)
            at_registers = tuple(at.at[level] for level in inner)
            return self.kept(at, folded(registers, at_registers, self.tile_store(at, kept, Role.MOVE), body, name))

        loops = self.band_loops(band, position)
        return Alloc(registers, block(self.each(whole, position, first), loops, self.each(inner, position, last)))

    def statement(self, position: Position) -> Stmt:
        """What the innermost loop of the anchor does, where that is within its axes."""
        return position.guarded(axes_of(self.nest.anchor), self.step(position))

    def step(self, position: Position) -> Stmt:
        """One element, or one step of its sum."""
        anchor = self.nest.anchor
        coordinates = {axis: self.element(axis, position) for axis in axes_of(anchor)}
        if not isinstance(self.body, Reduce):
            assert self.body is not None
            value = on_buffers(self.body, coordinates, self.local_reads(position))
            if self.tile_levels is not None:
                return self.tile_store(position, value, Role.COMPUTE)
            out = self.tile_indices(position)
            return Store(self.buffers[anchor], out, value, anchor.name, streamed=bool(self.nest.streamed))
        value = on_buffers(self.body.body, coordinates, self.local_reads(position))
        if self.registers is None:
            return self.tile_store(position, combine(self.body.op, self.tile_load(position), value), Role.UPDATE)
        target, chosen = self.registers
        at = self.tile_indices(position) if target is self.tile else tuple(position.at[level] for level in chosen)
        return Store(target, at, combine(self.body.op, Load(target, at, target.dtype), value), anchor.name, Role.UPDATE)

    def run_epilogue(self, band: int, position: Position) -> Stmt:
        """The element-wise consumer over the tile that has just been completed."""
        epilogue, body = self.nest.epilogue, self.nest.epilogue.body if self.nest.epilogue is not None else None
        assert epilogue is not None
        assert body is not None

        def make(at: Position) -> Stmt:
            coordinates = {own: self.coordinate(a, at) for own, a in zip(epilogue.axes, self.nest.anchor.axes, strict=True)}
            reads = self.reads | {self.nest.anchor: lambda _: self.tile_load(at)}
            out = tuple(coordinates[axis] for axis in epilogue.axes)
            value = on_buffers(body, coordinates, reads)
            store = Store(self.buffers[epilogue], out, value, epilogue.name, streamed=bool(self.nest.streamed))
            return at.guarded(self.nest.anchor.axes, store)

        return self.each(self.inner_levels(band), position, make)

    # What is attached ------------------------------------------------------------------------------------------------

    def attach(self, stage: Attached, position: Position, before: list[Stmt], local: list[Buffer]) -> None:
        """Computes the region of ``stage`` that the loops below ``position`` need."""
        lengths = tuple(int(length) for length in stage.lengths)
        corner = box_corner(stage, self.nest, position, self.base, lengths, self.ranges)
        at_root = stage.at == 0 and self.region is None
        if at_root:
            buffer = self.buffers[stage.tensor]
        else:
            scope = Scope.SHARED if stage.shared else self.scope(int(stage.at))
            chunks = int(self.program.swizzles.get(stage.tensor, 1))
            buffer = Buffer(stage.tensor.name, lengths, stage.tensor.dtype, scope, padding(self.program, stage.tensor), chunks)
            local.append(buffer)
        if stage.slots > 1:
            self.rings.append(buffer)
        if stage.dealt:
            dealt = DealtLowering(stage, corner, buffer, self.reads, self.extents)
            before.append(dealt.lower())
            local += dealt.temporaries
        elif stage.nest is None:
            before.append(RegionLowering(stage, corner, buffer, self.reads, self.extents).lower())
        else:
            box = Region(corner, self.ranges, at_root)
            buffers = {**self.buffers, stage.tensor: buffer}
            before.append(NestLowering(stage.nest, self.program, buffers, self.reads, box).lower())
        if not at_root:
            self.reads[stage.tensor] = region(buffer, corner)

    def scope(self, band: int) -> Scope:
        """Of a temporary after so many bands: all threads see what is there before any loop."""
        if band > 0 or (self.region is not None and not self.region.at_root):
            return Scope.LOCAL
        return Scope.PREPARED if self.nest.prepared else Scope.GLOBAL

    def pack(self, pack: Packed, position: Position, before: list[Stmt], local: list[Buffer]) -> None:
        """Copies or computes what the loops below ``position`` read of a tensor, in the order in which they read it."""
        band, axes = int(pack.at), frozenset(pack.copy.axes)
        chosen = [level for level in self.levels if level.band >= band and level.axis in axes]
        scope = Scope.PREPARED if pack.prepared else Scope.SHARED if pack.shared else self.scope(band)
        # What is behind one iteration of a loop is behind a run along the next dimension.
        behind = (0, *(int(pack.pads.get(self.nest.loops[level.position].name, 0)) for level in chosen[:-1]))
        pads = behind[: len(chosen)] if pack.pads else ()
        buffer = Buffer(pack.copy.name, tuple(level.trip for level in chosen), pack.tensor.dtype, scope, pads)
        (self.root_packs if band == 0 and self.region is None else local).append(buffer)
        by_position = {level.position: level for level in chosen}
        loops = [[by_position[p] for p, here in loop.parts if here and p in by_position] for loop in pack.loops]
        inside, bound = position, {}
        for level in (level for parts in loops for level in parts):
            ((_, var, extent),), inside = loops_over([level], inside)
            bound[level] = var, extent
        indices = tuple(inside.at[level] for level in chosen)
        assert pack.copy.body is not None
        corners = {axis: inside.corner(axis) for axis in pack.copy.axes}
        element = on_buffers(
            pack.copy.body, corners | {a: self.base[a] + at for a, at in corners.items() if a in self.base}, self.reads
        )
        body: Stmt = inside.guarded(pack.copy.axes, Store(buffer, indices, element, pack.copy.name))
        shared: list[tuple[Var, int]] = []
        made = [(loop, parts) for loop, parts in zip(pack.loops, loops, strict=True) if parts]
        for run in reversed(list(runs(made, (None if loop.moved else parts[0].fused for loop, parts in made)))):
            loop, walked = run[0][0], [level for _, parts in run for level in parts]
            counted = [(bound[level][0], level.trip) for level in walked]
            if loop.parallel:
                shared = counted + shared
                continue
            kind = LoopKind.VECTORIZED if loop.lanes > 1 else LoopKind.UNROLLED if loop.unrolled else LoopKind.SERIAL
            if kind is LoopKind.SERIAL and not loop.moved and walked[0].bound is not None:
                kind = walked[0].bound
            if len(walked) == 1:
                body = For(*bound[walked[0]], kind, body, int(loop.lanes))
            else:
                body = fused_loop(counted, body, kind, int(loop.lanes))
        before.append(parallel_loop(shared, body))
        self.packs[pack.tensor] = (buffer, chosen)

    def local_reads(self, position: Position) -> dict[Tensor, Reader]:
        """The readers of the anchor's statement: packed operands are read by loops, not by coordinates."""
        packed = {t: fixed(b, tuple(position.at[level] for level in chosen)) for t, (b, chosen) in self.packs.items()}
        return self.reads | packed


def padding(program: Program, tensor: Tensor) -> tuple[int, ...]:
    """Of the buffer of a tensor."""
    return tuple(int(pad) for pad in program.pads.get(tensor, ()))
