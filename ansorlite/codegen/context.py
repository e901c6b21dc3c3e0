"""The state of the function being written, which all parts of the emitter pass along."""

from __future__ import annotations

import collections
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from ansorlite.codegen.builder import Builder, Slot
from ansorlite.codegen.next_rows import NextRows
from ansorlite.codegen.registers import Registers
from ansorlite.codegen.scope import LayerStack
from ansorlite.codegen.workspace import WorkspaceLayout
from ansorlite.loops.matrix_tile import Tiles
from ansorlite.loops.nodes import Await, Buffer, FetchGroup, For, Intrinsic, Stmt, Store
from ansorlite.target import Target
from ansorlite.te import dtypes
from ansorlite.te.expr import Var
from ansorlite.te.index.ranges import Interval


@dataclass(frozen=True)
class Storage:
    """Where a buffer is.

    Attributes:
        pointer: SSA name of the first element's address.
        strides: elements between neighbours, per dimension.
        depth: the layer in which ``pointer`` was computed.
        scope: alias scope; ``None`` for stack slots, which LLVM tells apart by itself.
        padded: whether a load may run past the end by less than a vector.
        register: whether it is to become registers.
        row: elements of a row with its padding, of a temporary; else 0.
        unaligned: whether elements may lie at any address, as words of a caller's bytes do.
        aligned: bytes, a power of two, of which ``pointer`` is a multiple, where accesses of several elements must know; else 0.
    """

    pointer: str
    strides: tuple[int, ...]
    depth: int
    scope: int | None
    padded: bool
    register: bool = False
    row: int = 0
    unaligned: bool = False
    aligned: int = 0

    def alignment(self, dtype: str) -> int:
        """What addresses of elements are multiples of."""
        return 1 if self.unaligned else dtypes.size(dtype)


@dataclass(frozen=True)
class Lanes:
    """The vector being computed: iterations ``base + 0 .. base + count - 1`` of a vectorized loop.

    Attributes:
        mask: literal or SSA name of the lanes that are on; ``None``: all.
        guarded: whether a condition, not only the loop's end, is in ``mask``; then possibly no lane is on.
        overrun: whether a load from a padded buffer may ignore ``mask``: the first lane is on, and no guard is in it.
        active: how many lanes are on, when that is known.
    """

    var: Var
    count: int
    mask: str | None = None
    guarded: bool = False
    overrun: bool = False
    active: int | None = None


@dataclass(frozen=True)
class Counter:
    """The counter of a loop being written: what is needed to make pointers step along with it.

    Attributes:
        begin, step: of the counter.
        before, latch: the blocks from which the loop's head is entered.
        barrier: the layer of the loop.
        phis, increments: the places for what a pointer is in the head, and for its step at the end of an iteration.
    """

    begin: int
    step: int
    before: str
    latch: str
    barrier: int
    phis: Slot
    increments: Slot


@dataclass
class Stream:
    """What one iteration loads through a pointer that steps along with a loop's counter.

    Attributes:
        step: bytes from one iteration to the next.
        depends: layers of what its address is made of.
        loads: first byte and end of each load, from the pointer on.
        even: whether that is known of all of them.
    """

    counter: Counter
    step: int
    depends: frozenset[int]
    loads: set[tuple[int, int]] = field(default_factory=set)
    even: bool = True

    @property
    def continuous(self) -> bool:
        """Whether the iterations read one stretch of memory, each where the last one ended."""
        within = self.even and all(begin >= 0 and end <= self.step for begin, end in self.loads)
        return within and sum(end - begin for begin, end in self.loads) >= self.step > 0


#: Writes a statement in a context.
Body = Callable[["Context", Stmt], None]


class Dialect(Protocol):
    """What the functions of one kind of machine have of their own."""

    def storage(self, c: Context, buffer: Buffer) -> Storage:
        """Where a temporary lives."""

    def loop(self, c: Context, loop: For, body: Body) -> bool:
        """Write a loop whose iterations the machine runs at once; whether it is such a loop."""

    def intrinsic(self, c: Context, stmt: Intrinsic, body: Body) -> None:
        """Write what several threads do together."""

    def fetch(self, c: Context, stmt: Store) -> bool:
        """Write a store of role FETCH as a copy that lands later; whether it is written, else it is as any other."""

    def group(self, c: Context, stmt: FetchGroup, body: Body) -> None:
        """Write fetches that land together."""

    def wait(self, c: Context, stmt: Await) -> None:
        """Wait for what was fetched."""


@dataclass
class Context:
    """One function being written.

    Attributes:
        lanes: set within a vectorized loop.
        guard: a scalar condition under which alone scalar loads may be executed.
        workspace: SSA name of the workspace's address.
        thread: number of the running thread: a literal or an SSA name.
        loops: layer and iterations of each loop around this point, the outermost first; infinite where these are not known.
        counters: of the loops around this point, by name, where it is known at what they begin.
        streams: by the name of the pointer.
        versions: how often each buffer was stored to so far: a loaded value is good for one version.
        registers: what is known of the register buffers.
        stored: the buffer that the statement being written stores to.
        streams_out: whether the function so far stores past the caches.
        starts_teams: whether it calls teams, so that others' functions run on its thread, too.
        crowded: within steps of a register tile that are written out: whether each loads for itself what registers are short for.
        step: within such a step: its layer.
        holds: whether multiply-adds leave elements that were spread as they are (:mod:`ansorlite.codegen.factors`).
        tiles: what its matrix registers are configured for; ``None``: it has used none so far.
        last_readers: parts of loops' bodies that are the last to read some rows, with what is read next.
        next_rows: of the part that is being written.
    """

    b: Builder
    target: Target
    layout: WorkspaceLayout
    workspace: str
    dialect: Dialect
    thread: str = "0"
    scope: LayerStack = field(default_factory=LayerStack)
    places: dict[Buffer, Storage] = field(default_factory=dict)
    ranges: dict[Var, Interval] = field(default_factory=dict)
    lanes: Lanes | None = None
    guard: str | None = None
    loops: tuple[tuple[int, float], ...] = ()
    counters: dict[str, Counter] = field(default_factory=dict)
    streams: dict[str, Stream] = field(default_factory=dict)
    versions: collections.Counter[Buffer] = field(default_factory=collections.Counter)
    stored: Buffer | None = None
    streams_out: bool = False
    starts_teams: bool = False
    tiles: Tiles | None = None
    crowded: bool | None = None
    step: int | None = None
    holds: bool = False
    last_readers: Mapping[Stmt, NextRows] = field(default_factory=dict)
    next_rows: NextRows = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.registers = Registers(self.b)

    def varies(self, expr_variables: frozenset[Var]) -> bool:
        """Whether something that depends on these variables differs between lanes."""
        return self.lanes is not None and self.lanes.var in expr_variables

    def within(self, lanes: Lanes | None, guard: str | None) -> _Within:
        """Other lanes and guard for the time of a ``with``."""
        return _Within(self, lanes, guard)


class _Within:
    """What :meth:`Context.within` returns: a class of its own, being entered thousands of times a program."""

    __slots__ = ("_c", "_guard", "_lanes")

    def __init__(self, c: Context, lanes: Lanes | None, guard: str | None) -> None:
        self._c = c
        self._lanes = lanes
        self._guard = guard

    def __enter__(self) -> None:
        self._swap()

    def __exit__(self, *_: object) -> None:
        self._swap()

    def _swap(self) -> None:
        c = self._c
        c.lanes, self._lanes = self._lanes, c.lanes
        c.guard, self._guard = self._guard, c.guard
