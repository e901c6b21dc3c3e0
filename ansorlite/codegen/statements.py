"""From statements to LLVM: stores, conditions, allocations, and which way a loop goes."""

from __future__ import annotations

from dataclasses import replace

from ansorlite.codegen import (
    addresses,
    control,
    crowded,
    matrix_tile,
    memory,
    prefetch,
    register_tile,
    streaming,
    transposed,
    unswitch,
    vectorized,
)
from ansorlite.codegen.context import Context, Lanes, Storage
from ansorlite.codegen.expressions import Spread, conjunction, evaluate, spread, spread_over
from ansorlite.codegen.steady import partitioned
from ansorlite.codegen.trimmed import trimmed, written_out
from ansorlite.loops.nodes import (
    Alloc,
    Await,
    Block,
    Buffer,
    FetchGroup,
    For,
    If,
    Intrinsic,
    LoopKind,
    Prefetch,
    Role,
    Stmt,
    Store,
    block,
)
from ansorlite.te import dtypes
from ansorlite.te.index.form import flat
from ansorlite.te.index.ranges import Interval, bounds


def emit(c: Context, stmt: Stmt) -> None:
    """Write ``stmt`` at the end of the function so far."""
    match stmt:
        case Block(body):
            around = c.next_rows
            for part in body:
                c.next_rows = c.last_readers.get(part, around)
                emit(c, part)
            c.next_rows = around
        case Store():
            with c.scope.layer(statement=True):
                if stmt.role is not Role.FETCH or not c.dialect.fetch(c, stmt):
                    _store(c, stmt)
        case For():
            crowded.emit(c, stmt, _loop)
        case If():
            _condition(c, stmt)
        case Alloc():
            _allocate(c, stmt)
        case Prefetch():
            _prefetch(c, stmt)
        case Intrinsic():
            c.dialect.intrinsic(c, stmt, emit)
        case FetchGroup():
            c.dialect.group(c, stmt, emit)
        case Await():
            c.dialect.wait(c, stmt)
        case _:
            raise TypeError(f"{type(stmt).__name__} is not a statement of the loop IR")


def _store(c: Context, stmt: Store) -> None:
    buffer = stmt.buffer
    place = c.places[buffer]
    c.stored = buffer
    value = evaluate(c, stmt.value)
    at = spread(c, flat(stmt, place.strides))
    c.versions[buffer] += 1
    lanes = None if c.lanes is None else replace(c.lanes, mask=None) if _ends_row(c.lanes, buffer, place, at) else c.lanes
    text = value.text if lanes is None else spread_over(c, value, buffer.dtype, lanes.count)
    if place.register:
        if not at.terms and (lanes is None or (at.stride == 1 and at.offsets is None)):
            memory.register_store(c, place, buffer.dtype, lanes, text, at.constant)
            return
        c.registers.write_back(place.pointer)
    pointer, _ = addresses.base(c, place, buffer.dtype, at.terms)
    pointer = addresses.element(c, pointer, buffer.dtype, at.constant)
    alignment = max(dtypes.size(buffer.dtype), addresses.alignment(c, place, buffer.dtype, at.constant, at.terms))
    if lanes is None:
        memory.scalar_store(c, place, buffer.dtype, pointer, text, alignment)
    elif stmt.streamed and lanes.mask is None and at.stride == 1 and at.offsets is None:
        streaming.store(c, place, buffer.dtype, lanes, text, pointer)
    else:
        memory.vector_store(c, place, buffer.dtype, lanes, text, pointer, at.stride, at.offsets, alignment)


def _ends_row(lanes: Lanes, buffer: Buffer, place: Storage, at: Spread) -> bool:
    """Whether the lanes that are off fall on the padding at the end of a row."""
    if not place.row or lanes.active is None or at.stride != 1 or at.offsets is not None or not buffer.shape:
        return False
    column = at.constant % place.row
    whole_rows = all(term.coefficient % place.row == 0 for term in at.terms)
    return whole_rows and column + lanes.active == buffer.shape[-1] and column + lanes.count <= place.row


def _condition(c: Context, stmt: If) -> None:
    with c.scope.layer(statement=True):
        condition = evaluate(c, stmt.cond)
    if condition.literal:
        if condition.text == "true":
            emit(c, stmt.body)
    elif condition.lanes == 1:
        with control.conditional(c, condition.text):
            emit(c, stmt.body)
    else:
        assert c.lanes is not None
        with c.within(conjunction(c, c.lanes, condition), c.guard), c.scope.inside(c.b.slot()):
            emit(c, stmt.body)


def _prefetch(c: Context, stmt: Prefetch) -> None:
    place = c.places[stmt.load.buffer]
    with c.scope.layer(statement=True):
        at = spread(c, flat(stmt.load, place.strides))
        pointer, _ = addresses.base(c, place, stmt.load.dtype, at.terms)
        prefetch.line(c, addresses.element(c, pointer, stmt.load.dtype, at.constant), prefetch.SECOND_CACHE)


def _allocate(c: Context, stmt: Alloc) -> None:
    buffer = stmt.buffer
    place = c.dialect.storage(c, buffer)
    c.places[buffer] = place
    product = matrix_tile.product_in(c, stmt)
    if product is None:
        emit(c, stmt.body)
    else:
        emit(c, block(*product.before))
        matrix_tile.emit(c, product.tile, product.start, product.end)
        emit(c, block(*product.after))
    c.registers.forget(place.pointer)
    del c.places[buffer]


def _loop(c: Context, loop: For) -> None:
    unswitched = unswitch.match(c, loop)
    if unswitched is not None:
        unswitch.emit(c, unswitched, _loop)
        return
    if loop.kind is LoopKind.VECTORIZED:
        vectorized.emit(c, loop, emit)
        return
    if c.dialect.loop(c, loop, emit):
        return
    across, tile, matrix = transposed.match(c, loop), register_tile.match(c, loop), matrix_tile.match(c, loop)
    if matrix is not None:
        matrix_tile.emit(c, matrix)
    elif across is not None:
        transposed.emit(c, across)
    elif tile is not None:
        register_tile.emit(c, tile, emit)
    elif (numbers := written_out(c, loop)) is not None:
        for number in numbers:
            with control.bound(c, loop.var, str(number), (number, number)):
                emit(c, trimmed(loop).body)
    else:
        _serial(c, loop)


def _serial(c: Context, loop: For) -> None:
    found = trimmed(loop)
    with c.scope.layer(statement=True):
        begin, end = evaluate(c, found.begin), evaluate(c, found.end)
    if begin.text == "0" and end.literal:
        for first, after in partitioned(c, loop, int(end.text), 1):
            _iterations(c, loop, found.body, (str(first), str(after)), (first, first), (after, after))
    else:
        _iterations(c, loop, found.body, (begin.text, end.text), bounds(found.begin, c.ranges), bounds(found.end, c.ranges))


def _iterations(c: Context, loop: For, body: Stmt, ends: tuple[str, str], begin: Interval, end: Interval) -> None:
    """The iterations of ``loop`` from the first of ``ends``, which lies in ``begin``, to before the second, in ``end``."""

    def iteration(counter: str) -> None:
        with control.bound(c, loop.var, counter, (begin[0], end[1] - 1)):
            emit(c, body)

    if begin[0] == begin[1] == end[0] - 1 == end[1] - 1:
        iteration(ends[0])
    else:
        control.counted(c, *ends, 1, begin[1] < end[0], loop, iteration)
