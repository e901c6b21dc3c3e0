"""Bulk copies from global to shared memory (``cp.async.bulk``, from sm_90 on): runs of neighbours, each asked for by one thread,
and boxes of an array, as a tensor map says (``tensor_maps.py``).

They land when a barrier in shared memory (an mbarrier) ends a phase: when it has had its one arrival, and all bytes that it was
told to expect. Each group of fetches takes the next barrier of a ring of them, and an await waits for one group after another.
Threads count both: groups so far, and those that they have waited for. A barrier is taken again only after an await of all
threads for its last phase.

Where threads store to a buffer nothing is copied to it in bulk, too: so the two ways to shared memory need no fence between them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from ansorlite.alignment import aligned
from ansorlite.codegen import addresses
from ansorlite.codegen.context import Context
from ansorlite.codegen.expressions import spread
from ansorlite.codegen.nvptx import alone, tensor_maps, warpgroup
from ansorlite.codegen.nvptx.tensor_maps import TensorMap
from ansorlite.codegen.scope import Binding
from ansorlite.loops.boxes import Box, box_of
from ansorlite.loops.nodes import Alloc, Await, Block, Buffer, FetchGroup, For, If, Load, Role, Scope, Stmt, children, statements
from ansorlite.loops.phases import phases
from ansorlite.loops.runs import Runs, runs_of, shifted
from ansorlite.loops.visit import loads, stores
from ansorlite.machine.gpu import Gpu
from ansorlite.te.expr import Const
from ansorlite.te.index.form import Affine, flat
from ansorlite.te.index.simplify import IndexAlgebra

#: Bytes that addresses and sizes of such copies are multiples of.
_UNIT: Final = 16
#: Bytes of a barrier.
_BARRIER: Final = 8
#: Scopes of buffers outside of what a block has of its own.
_OUTSIDE: Final = (Scope.ARGUMENT, Scope.CONSTANT, Scope.PREPARED, Scope.GLOBAL)


@dataclass(frozen=True)
class Plan:
    """What a block copies in bulk.

    Attributes:
        copies: the phases that copy runs, and which.
        boxes: those that copy a box, and which.
        maps: the tensor maps that these need.
        map_of: the number of the map of each box.
        barriers: how many there are, a power of two: groups that are on their way at once have one each; 0: there are none.
    """

    copies: Mapping[For, Runs]
    boxes: Mapping[For, Box]
    maps: tuple[TensorMap, ...]
    map_of: Mapping[For, int]
    barriers: int
    algebra: IndexAlgebra

    @property
    def nbytes(self) -> int:
        """Of shared memory that barriers and maps take."""
        return aligned(_BARRIER * self.barriers) + tensor_maps.NBYTES * len(self.maps)

    @property
    def boxed(self) -> frozenset[Buffer]:
        """What boxes are copied to: it begins at a multiple of the bytes that they go to."""
        return frozenset(box.target for box in self.boxes.values())


def plan(block: For, gpu: Gpu, threads: int) -> Plan | None:
    """What of the fetches of a ``block`` bulk copies do; ``None``: nothing.

    They do where all that is stored to a buffer comes in runs, or boxes, that are worth it.
    """
    algebra = IndexAlgebra()
    if not gpu.bulk_bytes:
        return None
    _bind(block, algebra)
    stored = {store.buffer for store in stores(block)}
    # Maps are made by each block, which takes its time: they are for what matrix units read as they put it there.
    fed = {load.buffer for each in statements(block) if warpgroup.reads_shared(each) for load in loads(each)}
    copies: dict[For, Runs] = {}
    boxes: dict[For, Box] = {}
    fetching = [phase for each in statements(block) if isinstance(each, FetchGroup) for phase in phases(each)]
    for phase in fetching:
        if any(store.role is not Role.FETCH for store in stores(phase)) or not _outside(phase, stored):
            continue
        runs = runs_of(phase, algebra)
        if runs is not None and _fits(runs, gpu):
            copies[phase] = runs
        elif gpu.map_bytes and all(store.buffer in fed for store in stores(phase)):
            box = box_of(phase, algebra)
            if box is not None and tensor_maps.takes(box, gpu, threads):
                boxes[phase] = box
    others = {store.buffer for phase in phases(block) if phase not in copies | boxes for store in stores(phase)}
    copies = {phase: runs for phase, runs in copies.items() if runs.store.buffer not in others}
    boxes = {phase: box for phase, box in boxes.items() if box.target not in others}
    _, most = _in_flight(block.body, 0)
    found = Plan(copies, boxes, *tensor_maps.maps_of(boxes), 1 << max(most - 1, 0).bit_length(), algebra)
    # Where boxes are copied to, room may be left before it.
    shared = sum(aligned(s.buffer.nbytes) for s in statements(block) if isinstance(s, Alloc) and s.buffer.scope is Scope.SHARED)
    shared += found.nbytes + tensor_maps.NBYTES * len(found.boxed)
    return found if (copies or boxes) and shared <= gpu.block_shared else None


def _bind(stmt: Stmt, algebra: IndexAlgebra) -> None:
    """Tell what the variables of all loops run to."""
    if isinstance(stmt, For):
        algebra.bind(stmt.var, stmt.extent)
    for child in children(stmt):
        _bind(child, algebra)


def _outside(phase: For, stored: set[Buffer]) -> bool:
    """Whether a phase loads what lies in memory, and is not stored to by the block."""
    return all(load.buffer.scope in _OUTSIDE and load.buffer not in stored for load in loads(phase))


def _fits(runs: Runs, gpu: Gpu) -> bool:
    return runs.aligned % _UNIT == 0 and runs.nbytes % _UNIT == 0 and runs.nbytes >= gpu.bulk_bytes


def _in_flight(stmt: Stmt, before: int) -> tuple[int, int]:
    """How many groups may not have been waited for after ``stmt``, and at most meanwhile, if there were ``before`` so many."""
    match stmt:
        case FetchGroup():
            return before + 1, before + 1
        case Await(pending):
            return min(before, pending), before
        case Block(body):
            most = before
            for part in body:
                before, here = _in_flight(part, before)
                most = max(most, here)
            return before, most
        case If(_, body):
            after, most = _in_flight(body, before)
            return max(before, after), most
        case For(extent=Const(count)) if int(count) > 0:
            after, most = _in_flight(stmt.body, before)
            for _ in range(int(count) - 1):
                again, here = _in_flight(stmt.body, after)
                most = max(most, here)
                if again == after:
                    break
                after = again
            return after, most
    most = before
    for child in children(stmt):
        before, here = _in_flight(child, before)
        most = max(most, here)
    return before, most


@dataclass
class Barriers:
    """Writes bulk copies, and the barriers that they land at.

    Attributes:
        thread: the number of the thread, an SSA name that is known all over the kernel.
        threads: of a block.
        short: the same as an i32.
        memory: the address of the barriers in shared memory, an operand of i32.
        maps: writes tensor maps, where there are such.
        begun, waited: where threads keep how many groups there were so far, and how many they have waited for.
        current: the address of the barrier of the group being written, an SSA name.
    """

    plan: Plan
    thread: str
    threads: int
    short: str = field(default="", init=False)
    memory: str = field(default="", init=False)
    maps: tensor_maps.Writer | None = field(default=None, init=False)
    begun: str = field(default="", init=False)
    waited: str = field(default="", init=False)
    current: str = field(default="", init=False)

    def begin(self, c: Context, memory: str, handed: str) -> None:
        """Make the maps and the barriers; all threads meet after this.

        Args:
            memory: the name of shared memory.
            handed: where the block hands its maps to the machine, an SSA name of type i64.
        """
        b = c.b
        begin = b.at_entry(f"ptrtoint ptr addrspace(3) {memory} to i32")
        self.memory = b.at_entry(f"add i32 {begin}, {tensor_maps.NBYTES * len(self.plan.maps)}")
        self.short = b.at_entry(f"trunc i64 {self.thread} to i32")
        if self.plan.maps:
            self.maps = tensor_maps.Writer(self.plan.maps, self.threads, self.short, begin, handed)
            self.maps.make(c)
        self.begun, self.waited = b.at_entry("alloca i32"), b.at_entry("alloca i32")
        for counter in (self.begun, self.waited):
            b.do_at_entry(f"store i32 0, ptr {counter}")
        for number in range(self.plan.barriers):
            at = b.op(f"add i32 {self.memory}, {_BARRIER * number}")
            alone.do(c, self.short, 1, "mbarrier.init.shared::cta.b64 [$0], 1;", f"i32 {at}")
        # Copies are to see them as they are now.
        b.do(warpgroup.FENCE)

    def open(self, c: Context) -> None:
        """A group begins."""
        self.current = self._address(c, c.b.op(f"load i32, ptr {self.begun}"))

    def close(self, c: Context) -> None:
        """A group ends: what it copies is known."""
        alone.do(c, self.short, 1, "mbarrier.arrive.shared::cta.b64 state, [$0];", f"i32 {self.current}")
        _count(c, self.begun)

    def wait(self, c: Context, pending: int) -> None:
        """Until all groups but the last ``pending`` ones have landed."""
        b = c.b
        head, body, done = b.label("wait"), b.label("landing"), b.label("landed")
        # Registers are as they are on both ways.
        c.registers.flush()
        b.jump(head)
        b.start(head)
        waited, begun = b.op(f"load i32, ptr {self.waited}"), b.op(f"load i32, ptr {self.begun}")
        b.branch(b.op(f"icmp slt i32 {b.op(f'add i32 {waited}, {pending}')}, {begun}"), body, done)
        b.start(body)
        phase = b.op(f"and i32 {b.op(f'lshr i32 {waited}, {self.plan.barriers.bit_length() - 1}')}, 1")
        tried = "mbarrier.try_wait.parity.shared::cta.b64 landed, [$0], $1;"
        again = "W${:uid}"
        text = f"{{ .reg .pred landed; {again}: {tried} @!landed bra {again}; }}"
        b.do(f'call void asm sideeffect "{text}", "r,r,~{{memory}}"(i32 {self._address(c, waited)}, i32 {phase})')
        _count(c, self.waited)
        b.jump(head)
        b.start(done)

    def phase(self, c: Context, loop: For) -> bool:
        """Write a phase that copies in bulk; whether it does."""
        if loop in self.plan.copies:
            self._runs(c, self.plan.copies[loop])
        elif loop in self.plan.boxes:
            self._box(c, self.plan.boxes[loop], self.plan.map_of[loop])
        return loop in self.plan.copies or loop in self.plan.boxes

    def _runs(self, c: Context, runs: Runs) -> None:
        """Each thread asks for a run, or for several."""
        self._expect(c, runs.count * runs.nbytes)
        c.scope.variables[runs.number] = Binding(self.thread, 0, None)
        c.ranges[runs.number] = (0, self.threads - 1)
        for by in range(0, runs.count, self.threads):
            self._one(c, runs, by)
        del c.scope.variables[runs.number]
        c.versions[runs.store.buffer] += 1

    def _expect(self, c: Context, nbytes: int) -> None:
        expect = "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [$0], $1;"
        alone.do(c, self.short, 1, expect, f"i32 {self.current}", f"i32 {nbytes}")

    def _box(self, c: Context, box: Box, number: int) -> None:
        """One thread asks for all of it."""
        assert self.maps is not None
        self._expect(c, box.nbytes)
        with c.scope.layer(statement=True):
            to = _element(c, box.target, box.to)
            self.maps.copy(c, box, number, _in_shared(c, to), self.current)
        c.versions[box.target] += 1

    def _one(self, c: Context, runs: Runs, by: int) -> None:
        store = shifted(runs, by, self.plan.algebra)
        assert isinstance(store.value, Load)
        with c.scope.layer(statement=True):
            to, of = (_element(c, at.buffer, flat(at, c.places[at.buffer].strides)) for at in (store, store.value))
        b = c.b
        source = b.op(f"ptrtoint ptr addrspace(1) {b.op(f'addrspacecast ptr {of} to ptr addrspace(1)')} to i64")
        name = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
        operands = f"i32 {_in_shared(c, to)}", f"i64 {source}", f"i32 {runs.nbytes}", f"i32 {self.current}"
        alone.do(c, self.short, runs.count - by, f"{name} [$0], [$1], $2, [$3];", *operands)

    def _address(self, c: Context, group: str) -> str:
        """Of the barrier of a group."""
        b = c.b
        number = b.op(f"and i32 {group}, {self.plan.barriers - 1}")
        return b.op(f"add i32 {self.memory}, {b.op(f'mul i32 {number}, {_BARRIER}')}")


def _element(c: Context, buffer: Buffer, form: Affine) -> str:
    """The address of an element."""
    place, at = c.places[buffer], spread(c, form)
    pointer, _ = addresses.base(c, place, buffer.dtype, at.terms)
    return addresses.element(c, pointer, buffer.dtype, at.constant)


def _in_shared(c: Context, pointer: str) -> str:
    """An address in shared memory as an i32."""
    return c.b.op(f"ptrtoint ptr addrspace(3) {c.b.op(f'addrspacecast ptr {pointer} to ptr addrspace(3)')} to i32")


def _count(c: Context, counter: str) -> None:
    before = c.b.op(f"load i32, ptr {counter}")
    c.b.do(f"store i32 {c.b.op(f'add i32 {before}, 1')}, ptr {counter}")
