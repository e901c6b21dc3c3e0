"""Stores across the lanes: vectors of neighbouring rows, transposed in registers, are stored as pieces of neighbours.

Where memory is contiguous along a loop, and strided along the vectorized one inside of it::

    unrolled i in 0..8:
        vectorized(16) j in 0..16:
            C[j, i] = ...

the 8 vectors are shuffled into 16 of 8 elements, a store each, in the place of 128 stores of one element: a scatter
stores its elements one by one. Longer loops are taken in blocks of so many rows and columns; where blocks do not divide the
columns, the last one is moved inwards.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ansorlite.codegen import addresses, casts, control, memory, types, vectorized
from ansorlite.codegen.architecture import architecture_of
from ansorlite.codegen.builder import Builder
from ansorlite.codegen.context import Context, Lanes, Storage
from ansorlite.codegen.expressions import evaluate, spread, spread_over
from ansorlite.codegen.scope import dependence
from ansorlite.loops.nodes import For, LoopKind, Stmt, Store
from ansorlite.loops.visit import loads
from ansorlite.once import once_for_each
from ansorlite.target import Target, masks
from ansorlite.te import dtypes
from ansorlite.te.expr import Const, Var
from ansorlite.te.index.form import flat
from ansorlite.te.index.ranges import Interval

#: Bytes of a vector whose halves AVX works on.
_TWO_HALVES: Final = 32
#: What is in rows that nobody asked for.
_POISON: Final = "poison"
#: Elements of which LLVM has fences.
_FENCED: Final = ("float32", "float64")
#: Of a smaller share of the rows that there could be, LLVM finds shuffles that are needed by none.
_MANY: Final = 0.75


@dataclass(frozen=True)
class Across:
    """Iterations of vectors that are stored across them.

    Attributes:
        loop: over the rows.
        rows: how many there are.
        inner: the vectorized loop.
        columns: how many elements it covers, a whole vector at least.
        lanes: of each vector.
        store: the statement.
    """

    loop: For
    rows: int
    inner: For
    columns: int
    lanes: int
    store: Store


def match(c: Context, loop: For) -> Across | None:
    """What ``loop`` stores across the lanes; ``None`` where it does something else."""
    inner = loop.body
    if loop.kind is LoopKind.PARALLEL or not isinstance(inner, For) or inner.kind is not LoopKind.VECTORIZED:
        return None
    rows, columns, store = loop.extent, inner.extent, inner.body
    if not isinstance(rows, Const) or not isinstance(columns, Const) or not isinstance(store, Store):
        return None
    found = Across(loop, int(rows.value), inner, int(columns.value), vectorized.lanes_of(inner, c.target), store)
    whole = found.rows > 1 and found.columns >= found.lanes > 1
    return found if whole and c.lanes is None and c.guard is None and _strides(c, found) else None


def _strides(c: Context, found: Across) -> bool:
    """Whether memory is contiguous along the iterations and strided along the lanes, and is not what the values are made of."""
    store, place = found.store, c.places[found.store.buffer]
    if place.register or _reads_own(store):
        return False
    form = flat(store, place.strides)
    steps = {atom: coefficient for atom, coefficient in form.terms if isinstance(atom, Var)}
    others = [atom for atom, _ in form.terms if not isinstance(atom, Var)]
    even = all(dependence(atom).variables.isdisjoint((found.loop.var, found.inner.var)) for atom in others)
    return even and steps.get(found.loop.var) == 1 and abs(steps.get(found.inner.var, 0)) > 1


@once_for_each
def _reads_own(store: Store) -> bool:
    """Whether it stores to the buffer that its value is made of."""
    return any(load.buffer is store.buffer for load in loads(store.value))


def emit(c: Context, across: Across) -> None:
    """Write it, at most as many iterations at once as a vector has elements."""
    native = masks.masks_natively(c.target, [across.store.buffer.dtype])
    whole = across.rows // across.lanes * across.lanes
    begin = 0
    if across.loop.kind is LoopKind.SERIAL and whole > across.lanes:
        values = (0, whole - across.lanes)
        control.counted(
            c, "0", str(whole), across.lanes, True, across.loop, lambda base: _rows(c, across, base, values, across.lanes)
        )
        begin = whole
    while begin < across.rows:
        many = min(across.lanes, across.rows - begin)
        many = many if native else 1 << (many.bit_length() - 1)
        _rows(c, across, str(begin), (begin, begin), many)
        begin += many


def _rows(c: Context, across: Across, row: str, values: Interval, many: int) -> None:
    """``many`` rows from ``row`` on, which lies between ``values``."""
    whole, rest = divmod(across.columns, across.lanes)

    def block(first: str, between: Interval) -> None:
        _block(c, across, row, values, many, first, between)

    if whole <= vectorized.UNROLLED_CHUNKS:
        for number in range(whole):
            block(str(number * across.lanes), (number * across.lanes, number * across.lanes))
    else:
        end = whole * across.lanes
        control.counted(c, "0", str(end), across.lanes, True, across.inner, lambda base: block(base, (0, end - across.lanes)))
    if rest:
        last = across.columns - across.lanes
        block(str(last), (last, last))


def _block(c: Context, across: Across, row: str, rows: Interval, many: int, first: str, columns: Interval) -> None:
    """The vectors that begin at ``first``, which lies between ``columns``, of ``many`` rows."""
    store, lanes = across.store, Lanes(across.inner.var, across.lanes)
    place, dtype = c.places[store.buffer], store.buffer.dtype
    values: list[str] = []
    corner: list[tuple[str, int]] = []

    def value(c: Context, _: Stmt) -> None:
        with c.scope.layer(statement=True):
            c.stored = store.buffer
            computed = spread_over(c, evaluate(c, store.value), dtype, lanes.count)
            values.append(casts.to_memory(c.b, dtype, lanes.count, computed))
            if not corner:
                at = spread(c, flat(store, place.strides))
                pointer = addresses.base(c, place, dtype, at.terms)[0]
                corner.append((addresses.element(c, pointer, dtype, at.constant), at.stride))

    for number in range(many):
        at_row = str(int(row) + number) if row[0] != "%" else c.b.op(f"add nsw i64 {row}, {number}") if number else row
        with control.bound(c, across.loop.var, at_row, (rows[0] + number, rows[1] + number)):
            vectorized.chunk(c, across.inner, first, columns, lanes, value)
    c.versions[store.buffer] += 1
    ((pointer, stride),) = corner
    _store(c, place, dtype, values, lanes.count, pointer, stride)


def _store(c: Context, place: Storage, dtype: str, rows: list[str], lanes: int, pointer: str, stride: int) -> None:
    """Element ``(row, lane)`` at ``pointer + lane * stride + row``."""
    many = len(rows)
    width = 1 << (many - 1).bit_length()
    piece = Lanes(Var("row"), width, None if many == width else types.first_lanes(many, width), active=many)
    kind, share = types.memory_type(dtype, lanes), lanes // width
    rows = rows + [_POISON] * (width - many)
    in_halves = width == lanes and lanes * dtypes.size(dtype) == _TWO_HALVES and not _permutes(c.target)
    network = _Network(c.b, types.MEMORY[dtype], lanes, fenced=dtype in _FENCED and many >= _MANY * width)
    whole = _in_halves(network, rows) if in_halves else _interleaved(network, rows)
    for lane in range(lanes):
        begin = lane % share * width
        value = memory.neighbours(c.b, kind, whole[lane // share], begin, width)
        at = addresses.element(c, pointer, dtype, lane * stride)
        memory.contiguous_store(c, place, dtype, piece, value, at)


def _permutes(target: Target) -> bool:
    """Whether one instruction picks any elements of two vectors."""
    return architecture_of(target).permutes or "+avx512vl" in target.features.split(",")


@dataclass(frozen=True)
class _Network:
    """Shuffles of vectors, pass after pass.

    Attributes:
        fenced: whether LLVM is kept from looking back from one pass to those before.
    """

    b: Builder
    element: str
    lanes: int
    fenced: bool

    def shuffle(self, x: str, y: str, picks: list[int]) -> str:
        return _POISON if x == y == _POISON else self.b.shuffle(types.vector(self.element, self.lanes), x, y, picks)

    def done(self, rows: list[str]) -> list[str]:
        """The rows after a pass, fenced off: LLVM would try to make one shuffle of each and those that it is made of, in vain,
        which took as long as all else of instruction selection. A fence of arithmetic is no instruction."""
        return [self._fenced(row) for row in rows] if self.fenced else rows

    def _fenced(self, row: str) -> str:
        return row if row == _POISON else self.b.intrinsic("arithmetic.fence", self.element, self.lanes, row)


def _in_halves(network: _Network, rows: list[str]) -> list[str]:
    """As :func:`_interleaved`, of as many rows as there are lanes, by half as many instructions where those work on each half of
    a vector by itself, as AVX's do.

    Of an element's index, row first, the leading bits of row and lane change places by moves of halves; then each pass
    interleaves vectors within their halves, and puts the next bit of the row at the end.
    """
    count = len(rows)
    width = count // 2
    low = [half * count + lane for half in (0, 1) for lane in range(width)]
    pairs = list(zip(rows[:width], rows[width:], strict=True))
    rows = [network.shuffle(x, y, [pick + part for pick in low]) for part in (0, width) for x, y in pairs]
    low = [half * width + lane // 2 + lane % 2 * count for half in (0, 1) for lane in range(width)]
    bit = width // 2
    while bit:
        rows = network.done(rows)
        for first in (number for number in range(count) if not number & bit):
            x, y = rows[first], rows[first + bit]
            rows[first] = network.shuffle(x, y, low)
            rows[first + bit] = network.shuffle(x, y, [pick + width // 2 for pick in low])
        bit //= 2
    return rows


def _interleaved(network: _Network, rows: list[str]) -> list[str]:
    """The same elements with those of one lane, of all rows, side by side. The number of rows is a power of two.

    Each pass interleaves the first half of the vectors with the second: of an element's index, lane last, the leading bit goes to
    the end. After as many passes as a row's number has bits, the lane is what counts first.
    """
    lanes = network.lanes
    low = [lane // 2 + lane % 2 * lanes for lane in range(lanes)]
    high = [pick + lanes // 2 for pick in low]
    half = len(rows) // 2
    for number in range(half.bit_length()):
        rows = network.done(rows) if number else rows
        pairs = list(zip(rows[:half], rows[half:], strict=True))
        rows = [network.shuffle(x, y, picks) for x, y in pairs for picks in (low, high)]
    return rows
