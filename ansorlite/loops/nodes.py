"""Loop IR: what a schedule is lowered to, and what every back end is given.

A :class:`Function` is a tree of statements over :class:`Buffer` elements. Values and indices are the expression nodes
of ``te.expr`` with two leaves of their own: :class:`te.expr.Var` (a loop variable) and :class:`Load`.

Meaning (the interpreter is the living definition):

* Everything runs in program order, as if every loop were serial. Loop kinds are promises and wishes, never meaning:
  ``PARALLEL`` promises that iterations may run in any order at once, ``VECTORIZED`` that iterations may run in
  lockstep, ``UNROLLED`` wishes for straight-line code. ``BLOCK``, ``VTHREAD``, ``WARP``, ``LANE`` and ``THREAD`` promise what
  ``PARALLEL`` does, and wish for what a GPU has of that name; they nest in this order, each in the ones before it, and none in
  itself; ``THREAD`` stands for ``WARP`` and ``LANE`` together. A machine without such runs them one iteration after another.
* A *phase* of a block is an outermost loop of its threads (``THREAD``, or ``WARP`` with ``LANE``). All phases inside a BLOCK loop
  are run by the same threads; what one of these keeps from phase to phase is in a PRIVATE buffer. Barriers are not written
  down: back ends put them where a phase needs what another one stored.
* An :class:`Intrinsic` does what its body does.
* A store of role FETCH may land later than where it stands: at the :class:`Await` that says so. Until then nobody touches the
  element. FETCHes are in a :class:`FetchGroup`; groups and awaits are in a block, outside of its threads' loops.
* A :class:`Select` executes only the taken arm, so a :class:`Load` behind one may have an index that is out of bounds
  when the arm is not taken. Everywhere else every index is within its buffer.
* A fresh :class:`Alloc` holds garbage. Buffers never alias, except that an argument may be passed twice if it is only read.
* Parallel iterations may store the same value to the same element (shifted tiles recompute an overlap).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final

from ansorlite.machine.matrix import MatrixUnit
from ansorlite.te import dtypes
from ansorlite.te.expr import Const, Expr, Var
from ansorlite.te.ops import ReduceOp
from ansorlite.visible import visible


class Scope(Enum):
    """Where a buffer lives, and who sees it."""

    ARGUMENT = "given by the caller; seen by all threads"
    CONSTANT = "as ARGUMENT, but only read, and the same in every call"
    PREPARED = "as GLOBAL, but what is stored there follows from CONSTANT params alone; a param once the function is split"
    GLOBAL = "a temporary seen by all threads; allocated outside of parallel loops"
    LOCAL = "a temporary private to the thread that runs the enclosing Alloc; stack or thread workspace"
    SHARED = "as LOCAL, but seen by all threads of the block that runs the enclosing Alloc; allocated outside of their loops"
    REGISTER = "as LOCAL, but small, and every index is constant once UNROLLED and VECTORIZED loops are expanded"
    PRIVATE = "as SHARED, inside of a BLOCK loop, but elements for each thread: the first index is the thread that touches them"


@dataclass(frozen=True, eq=False)
class Buffer:
    """A row-major array. Identity is equality.

    Attributes:
        shape: extents in elements; ``()`` is one element.
        pads: for each dimension the elements between the end of a run along it and the next one, which nobody uses; ``()`` where
            there are none, as of all that is given by callers.
        swizzle: a wish how it lies in the banks of shared memory: so many neighbouring chunks of 16 bytes of a row, a power of
            two, change places from row to row (``swizzle.py``); with 1 they do not.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    scope: Scope
    pads: tuple[int, ...] = ()
    swizzle: int = 1

    @property
    def strides(self) -> tuple[int, ...]:
        """Elements between neighbours, per dimension."""
        strides, pads = [1], self.pads or (0,) * len(self.shape)
        for extent, pad in zip(reversed(self.shape[1:]), reversed(pads[1:]), strict=False):
            strides.append(strides[-1] * extent + pad)
        return tuple(reversed(strides)) if self.shape else ()

    @property
    def size(self) -> int:
        """Number of elements, with those that nobody uses."""
        return self.shape[0] * self.strides[0] if self.shape else 1

    @property
    def nbytes(self) -> int:
        return self.size * dtypes.size(self.dtype)

    def __repr__(self) -> str:
        return f"Buffer({visible(self.name)}, {self.shape}, {self.dtype}, {self.scope.name})"


@dataclass(frozen=True, eq=False)
class Load(Expr):
    """One element of a buffer."""

    buffer: Buffer
    indices: tuple[Expr, ...]
    dtype: str

    def children(self) -> tuple[Expr, ...]:
        return self.indices

    def with_children(self, children: tuple[Expr, ...]) -> Expr:
        return Load(self.buffer, children, self.dtype)


class LoopKind(Enum):
    SERIAL = "for"
    PARALLEL = "parallel"
    VECTORIZED = "vectorized"
    UNROLLED = "unrolled"
    BLOCK = "block"
    VTHREAD = "vthread"
    WARP = "warp"
    LANE = "lane"
    THREAD = "thread"


#: The kinds of loops that are bound to what a GPU has, as they nest: the outermost first.
BINDINGS: Final = (LoopKind.BLOCK, LoopKind.VTHREAD, LoopKind.WARP, LoopKind.LANE, LoopKind.THREAD)
#: Those over the threads of a block.
THREADS: Final = (LoopKind.WARP, LoopKind.LANE, LoopKind.THREAD)
#: The kinds of loops whose iterations may run in any order, at once.
INDEPENDENT: Final = (LoopKind.PARALLEL, *BINDINGS)


def may_nest(outer: LoopKind, inner: LoopKind) -> bool:
    """Whether a loop of one of ``BINDINGS`` may be inside of a loop of another one."""
    apart = {outer, inner} == {LoopKind.THREAD, LoopKind.WARP} or {outer, inner} == {LoopKind.THREAD, LoopKind.LANE}
    return not apart and BINDINGS.index(outer) < BINDINGS.index(inner)


class Stmt:
    """A statement. Immutable; compared by identity."""


@dataclass(frozen=True, eq=False)
class For(Stmt):
    """``for var in range(extent): body``.

    Attributes:
        extent: an int64 expression; a :class:`Const` except for the last, shorter tile of a reduction.
            Extents of PARALLEL, UNROLLED and bound loops are always constant.
        lanes: for VECTORIZED: how many iterations one vector holds; the extent need not be a multiple of it.
            A VECTORIZED loop is innermost: its body is stores and ifs, no loops or allocations. 1 otherwise.
    """

    var: Var
    extent: Expr
    kind: LoopKind
    body: Stmt
    lanes: int = 1


class Role(Enum):
    """Which part of a stage a store is."""

    COMPUTE = "the element itself"
    INIT = "a reduction's start value"
    UPDATE = "a reduction's step"
    MOVE = "a copy between memory and registers, or the fold of partial sums; made by lowering"
    FETCH = "the element itself, in memory that threads share, for a later iteration: it may land later, at an Await"


@dataclass(frozen=True, eq=False)
class Store(Stmt):
    """``buffer[indices] = value``.

    Attributes:
        stage: name of the schedule's stage that this statement computes (a label for people, features and profiles).
        role: which part of the stage it is.
        streamed: a wish that it go past the caches: what is stored will not be read soon.
    """

    buffer: Buffer
    indices: tuple[Expr, ...]
    value: Expr
    stage: str = ""
    role: Role = Role.COMPUTE
    streamed: bool = False


@dataclass(frozen=True, eq=False)
class Block(Stmt):
    """Statements one after another."""

    body: tuple[Stmt, ...]


@dataclass(frozen=True, eq=False)
class If(Stmt):
    """``if cond: body``; there is no else.

    Attributes:
        no_op: a promise that ``body`` would change nothing where ``cond`` does not hold, and may run there: adding zeros, say.
    """

    cond: Expr
    body: Stmt
    no_op: bool = False


@dataclass(frozen=True, eq=False)
class Alloc(Stmt):
    """``buffer`` exists, uninitialised, for the time of ``body``."""

    buffer: Buffer
    body: Stmt


@dataclass(frozen=True, eq=False)
class Prefetch(Stmt):
    """A wish that what ``load`` reads be brought into the second cache: it will be read soon. It changes nothing.

    Attributes:
        stage: name of the schedule's stage that reads it; none where a pass has found it out.
    """

    load: Load
    stage: str = ""


@dataclass(frozen=True)
class Fold:
    """Threads join what they have: each gets that of its group of ``width`` neighbours, joined by ``op``, in whatever order.

    Attributes:
        source, result: PRIVATE buffers of one element for each thread; they may be the same.
        width: a power of two, which divides the number of threads.
    """

    op: ReduceOp
    source: Buffer
    result: Buffer
    width: int


@dataclass(frozen=True)
class Multiply:
    """Groups of threads add the product of two tiles to what each thread keeps of the sums; ``loops/products.py`` says which."""

    unit: MatrixUnit


@dataclass(frozen=True, eq=False)
class Intrinsic(Stmt):
    """Does what ``body`` does. A back end that has instructions for ``does`` uses these, others run the body."""

    does: Fold | Multiply
    body: Stmt


@dataclass(frozen=True, eq=False)
class FetchGroup(Stmt):
    """The FETCHes of ``body``, which holds the phases that they are in, land together."""

    body: Stmt


@dataclass(frozen=True, eq=False)
class Await(Stmt):
    """All groups of FETCHes so far have landed, for all threads of the block, except perhaps the last ``pending`` ones."""

    pending: int


@dataclass(frozen=True, eq=False)
class Function:
    """A whole kernel.

    Attributes:
        params: buffers of scope ARGUMENT or CONSTANT in call order: inputs, then outputs. An argument is its row-major elements:
            a schedule may have merged or divided dimensions of the tensor.
        outputs: how many of the last ``params`` are written; the others are only read.
    """

    name: str
    params: tuple[Buffer, ...]
    outputs: int
    body: Stmt


def index(value: int) -> Const:
    """An int64 literal."""
    return Const(value, dtypes.INDEX)


def block(*statements: Stmt) -> Stmt:
    """The statements in a row: nested blocks flattened, a single one as itself."""
    flat: list[Stmt] = []
    for statement in statements:
        flat.extend(statement.body if isinstance(statement, Block) else (statement,))
    return flat[0] if len(flat) == 1 else Block(tuple(flat))


def children(stmt: Stmt) -> tuple[Stmt, ...]:
    """The direct sub-statements."""
    match stmt:
        case Block(body):
            return body
        case For() | If() | Alloc() | Intrinsic() | FetchGroup():
            return (stmt.body,)
        case _:
            return ()


def statements(stmt: Stmt) -> Iterator[Stmt]:
    """Every statement below and including ``stmt``, in program order, parents first."""
    stack = [stmt]
    while stack:
        node = stack.pop()
        yield node
        stack += reversed(children(node))
