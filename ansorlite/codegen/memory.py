"""Loads and stores, scalar and vector: contiguous, reversed, strided, gathered, masked."""

from __future__ import annotations

from collections.abc import Callable

from ansorlite.alignment import WHOLE_STRIDE
from ansorlite.codegen import casts, types
from ansorlite.codegen.builder import Builder, alias
from ansorlite.codegen.context import Context, Lanes, Storage
from ansorlite.codegen.types import Operand
from ansorlite.loops.nodes import Buffer
from ansorlite.target import Target, masks
from ansorlite.te import dtypes

_NOWHERE = "nowhere"


def scalar_load(c: Context, place: Storage, dtype: str, pointer: str, alignment: int) -> str:
    """One element; under a guard that does not hold, some other readable one, and no branch."""
    guard = c.guard
    if c.lanes is not None and c.lanes.guarded:
        some = c.b.call("i1", f"llvm.vector.reduce.or.v{c.lanes.count}i1", (f"<{c.lanes.count} x i1>", c.lanes.mask or ""))
        guard = some if guard is None else c.b.op(f"and i1 {guard}, {some}")
    if guard is not None:
        if not c.b.module.has(_NOWHERE):
            c.b.module.define(_NOWHERE, f"@{_NOWHERE} = internal constant [8 x i8] zeroinitializer, align 8")
        pointer = c.b.op(f"select i1 {guard}, ptr {pointer}, ptr @{_NOWHERE}")
        alignment = min(alignment, place.alignment(dtype))
    memory = types.MEMORY[dtype]
    loaded = c.b.op(f"load {memory}, ptr {pointer}, align {alignment}{alias(place.scope)}")
    return casts.from_memory(c.b, dtype, 1, loaded)


def scalar_store(c: Context, place: Storage, dtype: str, pointer: str, value: str, alignment: int) -> None:
    stored = casts.to_memory(c.b, dtype, 1, value)
    c.b.do(f"store {types.MEMORY[dtype]} {stored}, ptr {pointer}, align {alignment}{alias(place.scope)}")


def register_load(c: Context, place: Storage, dtype: str, lanes: int, offset: int) -> Operand:
    """Elements of a register buffer."""
    return Operand(casts.from_memory(c.b, dtype, lanes, c.registers.load(place.pointer, dtype, lanes, offset)), lanes)


def register_store(c: Context, place: Storage, dtype: str, lanes: Lanes | None, value: str, offset: int) -> None:
    """Store to a register buffer the lanes that are on: a masked store would keep it in memory, so it is a blend."""
    n = 1 if lanes is None else lanes.count
    stored = casts.to_memory(c.b, dtype, n, value)
    if lanes is not None and lanes.mask is not None:
        old = c.registers.load(place.pointer, dtype, n, offset)
        stored = c.b.select(types.memory_type(dtype, n), n, lanes.mask, stored, old)
    c.registers.store(place.pointer, dtype, n, offset, stored)


def _pointers(b: Builder, dtype: str, lanes: int, pointer: str, stride: int, offsets: str | None) -> str:
    """Addresses of all lanes: ``pointer + lane * stride + offsets[lane]`` elements."""
    element = types.MEMORY[dtype]
    steps = types.iota(lanes, stride)
    if offsets is not None:
        steps = b.op(f"add <{lanes} x i64> {steps}, {offsets}") if stride else offsets
    return b.op(f"getelementptr {element}, ptr {pointer}, <{lanes} x i64> {steps}")


def _offset(b: Builder, dtype: str, pointer: str, elements: int) -> str:
    return b.op(f"getelementptr {types.MEMORY[dtype]}, ptr {pointer}, i64 {elements}") if elements else pointer


def vector_load(
    c: Context, place: Storage, dtype: str, lanes: Lanes, pointer: str, stride: int, offsets: str | None, alignment: int
) -> Operand:
    """The elements at ``pointer + lane * stride + offsets[lane]``, as values; lanes that are off are never read.

    Args:
        pointer: address of lane 0.
        stride: elements, known.
        offsets: a vector of int64 elements to add, when the addresses are not evenly spaced.
        alignment: what ``pointer`` is known to be a multiple of.
    """
    b, n = c.b, lanes.count
    kind = types.memory_type(dtype, n)
    mask = None if place.padded and lanes.overrun and stride == 1 else lanes.mask

    def load(at: str, known: int = place.alignment(dtype)) -> str:
        return b.op(f"load {kind}, ptr {at}, align {known}{alias(place.scope)}")

    if offsets is None and stride == 1 and mask is None:
        loaded = load(pointer, alignment)
    elif offsets is None and stride == 1:
        loaded = _masked(c, place, "load", dtype, n, pointer, mask or "")
    elif offsets is None and stride == -1 and mask is None:
        backwards = load(_offset(b, dtype, pointer, 1 - n))
        loaded = b.shuffle(kind, backwards, "poison", list(reversed(range(n))))
    elif offsets is None and _loads_whole(stride, lanes):
        loaded = _strided(b, dtype, n, lanes.active or n, pointer, stride, load)
    elif offsets is None and not lanes.guarded and (mask is None or lanes.active is not None):
        loaded = _one_by_one(b, place, dtype, n, lanes.active or n, pointer, stride)
    else:
        at = _pointers(b, dtype, n, pointer, stride, offsets)
        loaded = _masked(c, place, "gather", dtype, n, at, mask or types.splat("true", "i1", n))
    return Operand(casts.from_memory(b, dtype, n, loaded), n)


def zero_padding(
    op: Callable[[str], str], do: Callable[[str], None], place: Storage, buffer: Buffer, inside: Buffer, target: Target
) -> None:
    """Write zeros to what loads of a temporary may touch but no store writes: the ends of padded rows, a vector past the end.

    What they find there is computed in lanes that are off. On a stack, or in memory that was used before, it may be denormal
    numbers, as half of an address is one, and x86 processors take each operation on such a number in a hundred cycles or more
    (docs/decisions/zeros-in-padding.md).

    Args:
        op: writes an instruction; its name.
        do: writes an instruction without a result.
        inside: ``buffer`` with the rows that it has in memory.
    """
    if not dtypes.is_float(buffer.dtype):
        return
    kind = types.memory_type(buffer.dtype, target.lanes(buffer.dtype))
    rows = () if inside is buffer else range(0, inside.size, inside.shape[-1])
    for start in (*rows, inside.size):
        at = op(f"getelementptr {types.MEMORY[buffer.dtype]}, ptr {place.pointer}, i64 {start}")
        do(f"store {kind} zeroinitializer, ptr {at}, align {place.alignment(buffer.dtype)}{alias(place.scope)}")


def _loads_whole(stride: int, lanes: Lanes) -> bool:
    """Whether whole vectors can be loaded without touching anything beyond the elements of the lanes that are on."""
    active = lanes.count if lanes.mask is None else lanes.active
    return 2 <= stride <= WHOLE_STRIDE and active is not None and (active - 1) * stride + 1 >= lanes.count


def _strided(b: Builder, dtype: str, n: int, active: int, pointer: str, stride: int, load: Callable[[str], str]) -> str:
    """Elements ``0, stride, 2 * stride, ...``: picked from whole vectors, the last of which ends at the last element."""
    kind, last = types.memory_type(dtype, n), (active - 1) * stride
    starts = [*range(0, last + 1 - n, n), last + 1 - n]
    pieces = [load(_offset(b, dtype, pointer, start)) for start in starts]
    homes = [max(p for p, start in enumerate(starts) if start <= min(lane * stride, last)) for lane in range(n)]
    result = b.shuffle(kind, pieces[0], "poison", [min(lane * stride, n - 1) for lane in range(n)])
    for piece in range(1, len(pieces)):
        picks = [n + min(lane * stride, last) - starts[piece] if homes[lane] == piece else lane for lane in range(n)]
        result = b.shuffle(kind, result, pieces[piece], picks)
    return result


def _one_by_one(b: Builder, place: Storage, dtype: str, n: int, active: int, pointer: str, stride: int) -> str:
    """Elements ``0, stride, 2 * stride, ...``, each loaded by itself: a gather takes as long for two lanes as for sixteen."""
    memory, result = types.MEMORY[dtype], "poison"
    for lane in range(active):
        at = _offset(b, dtype, pointer, lane * stride)
        element = b.op(f"load {memory}, ptr {at}, align {place.alignment(dtype)}{alias(place.scope)}")
        result = b.op(f"insertelement {types.memory_type(dtype, n)} {result}, {memory} {element}, i64 {lane}")
    return result


def _masked(c: Context, place: Storage, operation: str, dtype: str, lanes: int, pointer: str, mask: str) -> str:
    """``llvm.masked.load`` or ``gather``; lanes that are off give zero."""
    kind, pointers = types.memory_type(dtype, lanes), "ptr" if operation == "load" else f"<{lanes} x ptr>"
    mangled = f"{types.suffix(types.MEMORY[dtype], lanes)}.{'p0' if operation == 'load' else f'v{lanes}p0'}"
    name = f"llvm.masked.{operation}.{mangled}"
    c.b.module.declare(f"{kind} @{name}({pointers}, i32, <{lanes} x i1>, {kind})")
    operands = f"{pointers} {pointer}, i32 {place.alignment(dtype)}, <{lanes} x i1> {mask}, {kind} zeroinitializer"
    return c.b.op(f"call {kind} @{name}({operands}){alias(place.scope)}")


def vector_store(
    c: Context,
    place: Storage,
    dtype: str,
    lanes: Lanes,
    value: str,
    pointer: str,
    stride: int,
    offsets: str | None,
    alignment: int,
) -> None:
    """Stores all lanes that are on. Arguments as for :func:`vector_load`."""
    b, n = c.b, lanes.count
    stored = casts.to_memory(b, dtype, n, value)
    if offsets is None and stride == 1:
        contiguous_store(c, place, dtype, lanes, stored, pointer, alignment)
    else:
        at, mask = _pointers(b, dtype, n, pointer, stride, offsets), lanes.mask or types.splat("true", "i1", n)
        _masked_store(c, place, "scatter", dtype, n, stored, at, mask)


def contiguous_store(
    c: Context, place: Storage, dtype: str, lanes: Lanes, stored: str, pointer: str, alignment: int | None = None
) -> None:
    """Stores all lanes that are on of a vector as memory has it, side by side. ``alignment``: by default the element's."""
    kind, least = types.memory_type(dtype, lanes.count), alignment or dtypes.size(dtype)
    if lanes.mask is None:
        c.b.do(f"store {kind} {stored}, ptr {pointer}, align {least}{alias(place.scope)}")
    elif lanes.active is not None and masks.stores_in_pieces(c.target):
        for begin, width in masks.powers_of_two(lanes.active):
            piece, at = neighbours(c.b, kind, stored, begin, width), _offset(c.b, dtype, pointer, begin)
            aligned = least if begin == 0 else min(least, dtypes.size(dtype))
            c.b.do(f"store {types.memory_type(dtype, width)} {piece}, ptr {at}, align {aligned}{alias(place.scope)}")
    else:
        _masked_store(c, place, "store", dtype, lanes.count, stored, pointer, lanes.mask)


def neighbours(b: Builder, kind: str, x: str, begin: int, count: int) -> str:
    """``count`` elements of ``x`` from ``begin`` on. One alone is a scalar: see ``types.vector``."""
    if count == 1:
        return b.op(f"extractelement {kind} {x}, i64 {begin}")
    return b.shuffle(kind, x, "poison", list(range(begin, begin + count)))


def _masked_store(
    c: Context, place: Storage, operation: str, dtype: str, lanes: int, stored: str, pointer: str, mask: str
) -> None:
    """``llvm.masked.store`` or ``scatter``."""
    kind, pointers = types.memory_type(dtype, lanes), "ptr" if operation == "store" else f"<{lanes} x ptr>"
    mangled = f"{types.suffix(types.MEMORY[dtype], lanes)}.{'p0' if operation == 'store' else f'v{lanes}p0'}"
    name = f"llvm.masked.{operation}.{mangled}"
    c.b.module.declare(f"void @{name}({kind}, {pointers}, i32, <{lanes} x i1>)")
    call = f"call void @{name}({kind} {stored}, {pointers} {pointer}, i32 {dtypes.size(dtype)}, <{lanes} x i1> {mask})"
    c.b.do(call + alias(place.scope))
