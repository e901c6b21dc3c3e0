"""The verifier's checks: each looks at one node in its place and says what is wrong with it, or ``None``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from ansorlite.loops.in_flight import touched_in_flight
from ansorlite.loops.kernel_module import When, kernel_module
from ansorlite.loops.nodes import (
    BINDINGS,
    INDEPENDENT,
    THREADS,
    Alloc,
    Await,
    Buffer,
    FetchGroup,
    Fold,
    For,
    Function,
    If,
    Intrinsic,
    Load,
    LoopKind,
    Multiply,
    Role,
    Scope,
    Store,
    may_nest,
    statements,
)
from ansorlite.loops.phases import obstacle, phases, race
from ansorlite.loops.products import lanes_problem, product_of
from ansorlite.loops.visit import loads, stores, trips
from ansorlite.te import dtypes
from ansorlite.te.expr import Binary, Const, Expr, Select, Var
from ansorlite.te.index.form import Affine, flat
from ansorlite.te.index.simplify import IndexAlgebra
from ansorlite.te.ops import BinaryOp
from ansorlite.te.traversal import free_vars

#: Scopes of params; those of PREPARED and GLOBAL ones are buffers that the launches of a kernel hand on.
PARAM_SCOPES: Final = (Scope.ARGUMENT, Scope.CONSTANT, Scope.PREPARED, Scope.GLOBAL)


@dataclass(frozen=True)
class Site:
    """Where a node is.

    Attributes:
        algebra: knows the ranges of the loop variables.
        loops: the loops around the node, outermost first.
        buffers: every buffer that exists here, with the number of loops around its allocation.
        guarded: whether the node is under an ``If`` or in an arm of a select.
        inside_intrinsic: whether the node is part of what an intrinsic does.
        grouped: whether it is in a group of fetches.
        seen: every variable and buffer bound before, here or elsewhere.
    """

    function: Function
    algebra: IndexAlgebra
    loops: tuple[For, ...] = ()
    buffers: Mapping[Buffer, int] = field(default_factory=dict)
    guarded: bool = False
    seen: frozenset[Var | Buffer] = frozenset()
    inside_intrinsic: bool = False
    grouped: bool = False

    def kind(self, kind: LoopKind) -> tuple[For, ...]:
        return tuple(loop for loop in self.loops if loop.kind is kind)


# Function --------------------------------------------------------------------------------------------------------


def params_are_arguments(function: Function, _: Site) -> str | None:
    wrong = [buffer.name for buffer in function.params if buffer.scope not in PARAM_SCOPES]
    if wrong:
        return f"params {', '.join(wrong)} are not of a scope for params"
    return None if len(set(function.params)) == len(function.params) else "a buffer is a param twice"


def pads_suit_the_buffer(alloc: Alloc, _: Site) -> str | None:
    pads = alloc.buffer.pads
    wrong = pads and (len(pads) != len(alloc.buffer.shape) or min(pads) < 0 or alloc.buffer.scope is Scope.REGISTER)
    return f"{alloc.buffer.name}, of {len(alloc.buffer.shape)} dimensions, is padded by {pads}" if wrong else None


def swizzle_suits_the_buffer(alloc: Alloc, _: Site) -> str | None:
    """Whole runs of chunks make a row."""
    buffer, chunks = alloc.buffer, alloc.buffer.swizzle
    if chunks == 1:
        return None
    fits = chunks > 1 and not chunks & (chunks - 1) and len(buffer.shape) > 1
    if fits and buffer.strides[-2] * dtypes.size(buffer.dtype) % (chunks * 16) == 0:
        return None
    return f"{buffer.name}, of rows of {buffer.strides[-2:][0]} elements, is swizzled by {chunks} chunks"


def params_are_dense(function: Function, _: Site) -> str | None:
    padded = [b.name for b in function.params if any(b.pads) and b.scope in (Scope.ARGUMENT, Scope.CONSTANT)]
    return f"params {', '.join(padded)} are padded" if padded else None


def has_outputs(function: Function, _: Site) -> str | None:
    fits = 1 <= function.outputs <= len(function.params)
    return None if fits else f"{function.outputs} outputs of {len(function.params)} params"


def prepared_follows_from_constants(function: Function, _: Site) -> str | None:
    for part in kernel_module(function).at(When.ONCE):
        accesses: tuple[Load | Store, ...] = (*loads(part.body), *stores(part.body))
        for access in accesses:
            if access.buffer.scope in (Scope.ARGUMENT, Scope.GLOBAL):
                return f"{access.buffer.name}, of scope {access.buffer.scope.name}, is used where constants are prepared"
    return None


# Loops, conditions, allocations -------------------------------------------------------------------------------------


def variable_is_bound_once(loop: For, place: Site) -> str | None:
    return f"{loop.var.name} is the variable of two loops" if loop.var in place.seen else None


def variable_is_in_scope(var: Var, place: Site) -> str | None:
    return None if any(loop.var is var for loop in place.loops) else f"{var.name} is used outside of its loop"


def extent_is_an_index(loop: For, _: Site) -> str | None:
    for what, expr in (("variable", loop.var), ("extent", loop.extent)):
        if expr.dtype != dtypes.INDEX:
            return f"the {what} is {expr.dtype}"
    return None


def extent_is_constant(loop: For, _: Site) -> str | None:
    if loop.kind not in (*INDEPENDENT, LoopKind.UNROLLED) or isinstance(loop.extent, Const):
        return None
    return f"the extent of a loop of kind {loop.kind.name} is not constant"


def lanes_suit_the_kind(loop: For, _: Site) -> str | None:
    if loop.kind is LoopKind.VECTORIZED:
        return None if loop.lanes >= 1 else f"{loop.lanes} lanes"
    return None if loop.lanes == 1 else f"{loop.lanes} lanes in a loop that is not vectorized"


def vectorized_is_innermost(loop: For, _: Site) -> str | None:
    if loop.kind is not LoopKind.VECTORIZED:
        return None
    for inner in statements(loop.body):
        if isinstance(inner, For | Alloc):
            return f"a vectorized loop holds a {type(inner).__name__}"
    return None


def parallel_is_not_nested(loop: For, place: Site) -> str | None:
    if loop.kind is LoopKind.PARALLEL and place.kind(LoopKind.PARALLEL):
        return "a parallel loop is inside another"
    return None


def bound_loops_nest_in_order(loop: For, place: Site) -> str | None:
    for outer in place.loops:
        if loop.kind in BINDINGS and outer.kind in BINDINGS and not may_nest(outer.kind, loop.kind):
            return f"a loop of kind {loop.kind.name} is inside of one of kind {outer.kind.name}"
    return None


def condition_is_bool(stmt: If, _: Site) -> str | None:
    return None if stmt.cond.dtype == "bool" else f"the condition is {stmt.cond.dtype}"


def buffer_is_new(alloc: Alloc, place: Site) -> str | None:
    known = alloc.buffer in place.buffers or alloc.buffer in place.seen
    return f"{alloc.buffer.name} is allocated twice" if known else None


def scope_suits_the_place(alloc: Alloc, place: Site) -> str | None:
    scope = alloc.buffer.scope
    if scope in (Scope.ARGUMENT, Scope.CONSTANT):
        return f"{alloc.buffer.name} is of scope {scope.name}, but allocated"
    if scope is Scope.PREPARED and place.loops:
        return f"{alloc.buffer.name} is of scope PREPARED, but allocated in a loop"
    threads = [loop.var.name for loop in place.loops if loop.kind in BINDINGS and loop.kind is not LoopKind.BLOCK]
    if scope is Scope.SHARED and threads:
        return f"{alloc.buffer.name} is of scope SHARED, but allocated by each iteration of {threads[0]}"
    if scope is Scope.GLOBAL and place.kind(LoopKind.PARALLEL):
        return f"{alloc.buffer.name} is of scope GLOBAL, but allocated by each parallel iteration"
    if scope is Scope.PRIVATE and (not place.kind(LoopKind.BLOCK) or _threads_around(place)):
        return f"{alloc.buffer.name} is of scope {scope.name}, but not allocated in a block outside of its threads"
    return None


def _threads_around(place: Site) -> tuple[For, ...]:
    return tuple(loop for loop in place.loops if loop.kind in THREADS)


def private_elements_are_the_threads_own(access: Load | Store, place: Site) -> str | None:
    if access.buffer.scope is not Scope.PRIVATE or place.inside_intrinsic:
        return None
    around = _threads_around(place)
    if not around or not access.indices:
        return f"{access.buffer.name}, of scope PRIVATE, is used outside of the threads"
    thread: Expr = around[0].var
    for inner in around[1:]:
        thread = thread * trips(inner) + inner.var
    if place.algebra.form(access.indices[0]) != place.algebra.form(thread):
        return f"the first index of {access.buffer.name}, of scope PRIVATE, is not the thread"
    return None


def product_suits_the_threads(intrinsic: Intrinsic, place: Site) -> str | None:
    if not isinstance(intrinsic.does, Multiply):
        return None
    product = product_of(intrinsic)
    if isinstance(product, str):
        return product
    around = [loop for loop in _threads_around(place) if loop.kind is LoopKind.THREAD]
    if not around or not place.kind(LoopKind.BLOCK):
        return "a product of tiles is not in a loop over the threads of a block"
    return lanes_problem(product, around[0].var, trips(around[0]), place.algebra)


def fold_suits_the_threads(intrinsic: Intrinsic, place: Site) -> str | None:
    does = intrinsic.does
    if not isinstance(does, Fold):
        return None
    for buffer in (does.source, does.result):
        if buffer not in place.buffers:
            return f"{buffer.name} is not allocated here"
        if buffer.scope is not Scope.PRIVATE or len(buffer.shape) != 1 or buffer.dtype != does.source.dtype:
            return f"{buffer.name} is no PRIVATE buffer of one element for each thread"
    threads = does.source.shape[0]
    if does.width < 1 or does.width & (does.width - 1) or threads % does.width or does.result.shape[0] != threads:
        return f"a group of {does.width} does not divide {threads} threads"
    if _threads_around(place) or not place.kind(LoopKind.BLOCK):
        return "an operation of threads together is not in a block outside of its threads"
    return None


def whole_blocks_wait(stmt: FetchGroup | Await, place: Site) -> str | None:
    if isinstance(stmt, Await) and stmt.pending < 0:
        return f"{stmt.pending} groups are pending"
    if _threads_around(place) or not place.kind(LoopKind.BLOCK) or place.grouped:
        return "a group of fetches, or an await, is not in a block outside of its threads and of other groups"
    return None


def fetches_are_grouped(store: Store, place: Site) -> str | None:
    if store.role is not Role.FETCH or (place.grouped and store.buffer.scope is Scope.SHARED):
        return None
    return f"{store.buffer.name}, of scope {store.buffer.scope.name}, is fetched in no group, or is not shared"


# Accesses --------------------------------------------------------------------------------------------------------


def buffer_exists(access: Load | Store, place: Site) -> str | None:
    return None if access.buffer in place.buffers else f"{access.buffer.name} is not a param and not allocated here"


def buffer_may_be_stored(store: Store, place: Site) -> str | None:
    inputs = place.function.params[: len(place.function.params) - place.function.outputs]
    return f"{store.buffer.name} is an input, but stored" if store.buffer in inputs else None


def indices_suit_the_buffer(access: Load | Store, _: Site) -> str | None:
    rank = len(access.buffer.shape)
    if len(access.indices) != rank:
        return f"{access.buffer.name} has {rank} dimensions but {len(access.indices)} indices"
    wrong = {i.dtype for i in access.indices} - {dtypes.INDEX}
    return f"an index of {access.buffer.name} is {', '.join(wrong)}" if wrong else None


def load_has_the_buffers_dtype(load: Load, _: Site) -> str | None:
    return None if load.dtype == load.buffer.dtype else f"{load.buffer.name} is {load.buffer.dtype}, loaded as {load.dtype}"


def value_has_the_buffers_dtype(store: Store, _: Site) -> str | None:
    same = store.value.dtype == store.buffer.dtype
    return None if same else f"{store.buffer.name} is {store.buffer.dtype}, the value {store.value.dtype}"


def register_indices_are_constant(access: Load | Store, place: Site) -> str | None:
    """Constant once UNROLLED and VECTORIZED loops are expanded."""
    if access.buffer.scope is not Scope.REGISTER:
        return None
    expanded = {loop.var for loop in place.loops if loop.kind in (LoopKind.UNROLLED, LoopKind.VECTORIZED)}
    for expr in access.indices:
        for var in free_vars(expr) - expanded:
            return f"an index of {access.buffer.name}, of scope REGISTER, depends on {var.name}, whose loop is not expanded"
        if any(True for _ in loads(expr)):
            return f"an index of {access.buffer.name}, of scope REGISTER, is loaded"
    return None


def indices_are_within_bounds(access: Load | Store, place: Site) -> str | None:
    """Reports what is certain: bounds that are attained, or an index that is never inside."""
    if place.guarded:
        return None
    fixed = {loop.var for loop in place.loops if isinstance(loop.extent, Const)}
    for dimension, (expr, extent) in enumerate(zip(access.indices, access.buffer.shape, strict=True)):
        low, high = place.algebra.range(expr)
        attained = all(atom in fixed for atom, _ in place.algebra.form(expr).terms)
        never_inside = high < 0 or low >= extent
        if never_inside or (attained and (low < 0 or high >= extent)):
            return f"index {dimension} of {access.buffer.name}{list(access.buffer.shape)} runs from {low} to {high}"
    return None


# Promises of parallel and vectorized loops -----------------------------------------------------------------------------


def parallel_iterations_do_not_collide(store: Store, place: Site) -> str | None:
    """What one iteration accumulates must be its own: storing the same value twice is harmless, adding twice is not."""
    if not any(load.buffer is store.buffer for load in loads(store.value)):
        return None
    for depth, loop in enumerate(place.loops):
        if loop.kind not in INDEPENDENT or place.buffers[store.buffer] > depth or _runs_once(loop):
            continue
        if not _tells_apart(flat_index(store, place.algebra), loop.var):
            return f"independent iterations of {loop.var.name} may update the same element of {store.buffer.name}"
    return None


def lanes_do_not_depend_on_each_other(loop: For, place: Site) -> str | None:
    """Lanes store to elements of their own, and no lane loads what another one stores in the same step."""
    if loop.kind is not LoopKind.VECTORIZED or loop.lanes == 1 or _runs_once(loop):
        return None
    inside = list(stores(loop.body))
    for position, store in enumerate(inside):
        stored = flat_index(store, place.algebra)
        if not _tells_apart(stored, loop.var):
            return f"lanes of {loop.var.name} may store to the same element of {store.buffer.name}"
        for other_position, other in enumerate(inside):
            for load in loads(other.value):
                if load.buffer is store.buffer:
                    distance = _distance(stored, flat_index(load, place.algebra), loop.var)
                    # In lockstep a later statement sees what all lanes stored, an earlier one or the same none of it.
                    wrong = distance < 0 if other_position > position else distance > 0
                    if wrong and abs(distance) < loop.lanes:
                        return f"a lane of {loop.var.name} loads what another lane stores to {store.buffer.name}"
    return None


def threads_take_one_way(loop: For, place: Site) -> str | None:
    """All threads of a block come to all of its phases, and nothing is stored by none of them: no barrier is ever divergent."""
    del place
    return obstacle(loop) if loop.kind is LoopKind.BLOCK and any(phases(loop.body)) else None


def threads_do_not_race(loop: For, place: Site) -> str | None:
    """Within a phase no thread loads what another one stores; between phases there are barriers."""
    outermost = loop.kind in THREADS and not _threads_around(place) and place.kind(LoopKind.BLOCK)
    return race(loop, place.algebra) if outermost else None


def nothing_in_flight_is_touched(loop: For, place: Site) -> str | None:
    """What was fetched is neither loaded nor stored to before its await."""
    del place
    return touched_in_flight(loop) if loop.kind is LoopKind.BLOCK else None


def _runs_once(loop: For) -> bool:
    return isinstance(loop.extent, Const) and loop.extent.value == 1


def flat_index(access: Load | Store, algebra: IndexAlgebra) -> Affine:
    """The element number within the buffer."""
    return algebra.form(flat(access, access.buffer.strides).expr())


def _tells_apart(address: Affine, var: Var) -> bool:
    """Whether iterations of ``var`` touch elements of their own, as far as can be told.

    A clamp may send two of them to one element; a quotient is taken to come with its remainder.
    """
    return any(not _clamps(atom) and var in free_vars(atom) for atom, _ in address.terms)


def _clamps(atom: Expr) -> bool:
    return isinstance(atom, Select) or (isinstance(atom, Binary) and atom.op in (BinaryOp.MIN, BinaryOp.MAX))


def _distance(stored: Affine, loaded: Affine, var: Var) -> int:
    """How many iterations after the store the load of the same element comes; 0 if never or not known."""
    a, b = dict(stored.terms), dict(loaded.terms)
    step = a.get(var, 0)
    if a != b or step == 0:
        return 0
    distance, rest = divmod(stored.constant - loaded.constant, step)
    return 0 if rest else distance
