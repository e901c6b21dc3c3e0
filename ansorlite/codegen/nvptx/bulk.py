"""Bulk copies from global to shared memory (``cp.async.bulk``, from sm_90 on): runs of neighbours, each asked for by one thread.

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
from ansorlite.codegen.nvptx.warpgroup import FENCE
from ansorlite.codegen.scope import Binding
from ansorlite.loops.nodes import Alloc, Await, Block, Buffer, FetchGroup, For, If, Load, Role, Scope, Stmt, children, statements
from ansorlite.loops.phases import phases
from ansorlite.loops.runs import Runs, runs_of, shifted
from ansorlite.loops.visit import stores
from ansorlite.machine.gpu import Gpu
from ansorlite.te.expr import Const
from ansorlite.te.index.form import flat
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
        copies: the phases that do, and what.
        barriers: how many there are, a power of two: groups that are on their way at once have one each; 0: there are none.
    """

    copies: Mapping[For, Runs]
    barriers: int
    algebra: IndexAlgebra

    @property
    def nbytes(self) -> int:
        """Of shared memory that the barriers take."""
        return aligned(_BARRIER * self.barriers)

    @property
    def buffers(self) -> frozenset[Buffer]:
        """What is copied to."""
        return frozenset(runs.store.buffer for runs in self.copies.values())


def plan(block: For, gpu: Gpu) -> Plan:
    """What of the fetches of ``block`` bulk copies do: where all that is stored to a buffer comes in runs that are worth it."""
    algebra = IndexAlgebra()
    nothing = Plan({}, 0, algebra)
    if not gpu.bulk_bytes:
        return nothing
    _bind(block, algebra)
    stored = {store.buffer for store in stores(block)}
    copies: dict[For, Runs] = {}
    others: set[Buffer] = set()
    fetching = [phase for each in statements(block) if isinstance(each, FetchGroup) for phase in phases(each)]
    for phase in fetching:
        runs = runs_of(phase, algebra)
        if runs is not None and _fits(runs, gpu, stored):
            copies[phase] = runs
    for store in (store for phase in phases(block) if phase not in copies for store in stores(phase)):
        others.add(store.buffer)
    copies = {phase: runs for phase, runs in copies.items() if runs.store.buffer not in others}
    shared = sum(aligned(s.buffer.nbytes) for s in statements(block) if isinstance(s, Alloc) and s.buffer.scope is Scope.SHARED)
    _, most = _in_flight(block.body, 0)
    found = Plan(copies, 1 << max(most - 1, 0).bit_length(), algebra)
    return found if copies and shared + found.nbytes <= gpu.block_shared else nothing


def _bind(stmt: Stmt, algebra: IndexAlgebra) -> None:
    """Tell what the variables of all loops run to."""
    if isinstance(stmt, For):
        algebra.bind(stmt.var, stmt.extent)
    for child in children(stmt):
        _bind(child, algebra)


def _fits(runs: Runs, gpu: Gpu, stored: set[Buffer]) -> bool:
    store = runs.store
    assert isinstance(store.value, Load)
    source = store.value.buffer
    whole = runs.aligned % _UNIT == 0 and runs.nbytes % _UNIT == 0 and runs.nbytes >= gpu.bulk_bytes
    return whole and store.role is Role.FETCH and source.scope in _OUTSIDE and source not in stored


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
        begun, waited: where threads keep how many groups there were so far, and how many they have waited for.
        current: the address of the barrier of the group being written, an SSA name.
    """

    plan: Plan
    thread: str
    threads: int
    short: str = field(default="", init=False)
    memory: str = field(default="", init=False)
    begun: str = field(default="", init=False)
    waited: str = field(default="", init=False)
    current: str = field(default="", init=False)

    def begin(self, c: Context, memory: str) -> None:
        """Make the barriers; all threads meet after this."""
        b = c.b
        self.memory = b.at_entry(f"ptrtoint ptr addrspace(3) {memory} to i32")
        self.short = b.at_entry(f"trunc i64 {self.thread} to i32")
        self.begun, self.waited = b.at_entry("alloca i32"), b.at_entry("alloca i32")
        for counter in (self.begun, self.waited):
            b.do_at_entry(f"store i32 0, ptr {counter}")
        for number in range(self.plan.barriers):
            at = b.op(f"add i32 {self.memory}, {_BARRIER * number}")
            self._some(c, 1, "mbarrier.init.shared::cta.b64 [$0], 1;", f"i32 {at}")
        # Copies are to see them as they are now.
        b.do(FENCE)

    def open(self, c: Context) -> None:
        """A group begins."""
        self.current = self._address(c, c.b.op(f"load i32, ptr {self.begun}"))

    def close(self, c: Context) -> None:
        """A group ends: what it copies is known."""
        self._some(c, 1, "mbarrier.arrive.shared::cta.b64 state, [$0];", f"i32 {self.current}")
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

    def copy(self, c: Context, runs: Runs) -> None:
        """Write a phase: each thread asks for a run, or for several."""
        expect = "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [$0], $1;"
        self._some(c, 1, expect, f"i32 {self.current}", f"i32 {runs.count * runs.nbytes}")
        c.scope.variables[runs.number] = Binding(self.thread, 0, None)
        c.ranges[runs.number] = (0, self.threads - 1)
        for by in range(0, runs.count, self.threads):
            self._one(c, runs, by)
        del c.scope.variables[runs.number]
        c.versions[runs.store.buffer] += 1

    def _one(self, c: Context, runs: Runs, by: int) -> None:
        store = shifted(runs, by, self.plan.algebra)
        assert isinstance(store.value, Load)
        with c.scope.layer(statement=True):
            places = []
            for access in (store, store.value):
                place, dtype = c.places[access.buffer], access.buffer.dtype
                at = spread(c, flat(access, place.strides))
                pointer, _ = addresses.base(c, place, dtype, at.terms)
                places.append(addresses.element(c, pointer, dtype, at.constant))
        b = c.b
        to = b.op(f"ptrtoint ptr addrspace(3) {b.op(f'addrspacecast ptr {places[0]} to ptr addrspace(3)')} to i32")
        source = b.op(f"ptrtoint ptr addrspace(1) {b.op(f'addrspacecast ptr {places[1]} to ptr addrspace(1)')} to i64")
        name = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
        operands = f"i32 {to}", f"i64 {source}", f"i32 {runs.nbytes}", f"i32 {self.current}"
        self._some(c, runs.count - by, f"{name} [$0], [$1], $2, [$3];", *operands)

    def _some(self, c: Context, count: int, instruction: str, *operands: str) -> None:
        """One instruction that the first ``count`` threads do. It is no branch, so that warps stay together."""
        number = len(operands)
        constraints = ",".join([*("l" if each.startswith("i64") else "r" for each in operands), "r", "r", "~{memory}"])
        chosen = f"setp.lt.u32 some, ${number}, ${number + 1};"
        text = f"{{ .reg .pred some; .reg .b64 state; {chosen} @some {instruction} }}"
        given = ", ".join([*operands, f"i32 {self.short}", f"i32 {count}"])
        c.b.do(f'call void asm sideeffect "{text}", "{constraints}"({given})')

    def _address(self, c: Context, group: str) -> str:
        """Of the barrier of a group."""
        b = c.b
        number = b.op(f"and i32 {group}, {self.plan.barriers - 1}")
        return b.op(f"add i32 {self.memory}, {b.op(f'mul i32 {number}, {_BARRIER}')}")


def _count(c: Context, counter: str) -> None:
    before = c.b.op(f"load i32, ptr {counter}")
    c.b.do(f"store i32 {c.b.op(f'add i32 {before}, 1')}, ptr {counter}")
