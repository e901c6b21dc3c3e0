"""Stores that go past the caches: whole lines are written to memory without having been fetched.

x86 has them for vectors of 16 bytes that begin at multiples of 16, as large arrays of numpy's do; whole vectors at multiples of
their own size those arrays do not have. Elements at other addresses are stored as usual: it is looked at when they are.

Such stores are not in order with others. A fence makes them seen before whatever tells other threads that they are done.
"""

from __future__ import annotations

from ansorlite.codegen import casts, memory, types
from ansorlite.codegen.architecture import architecture_of
from ansorlite.codegen.builder import alias
from ansorlite.codegen.context import Context, Lanes, Storage
from ansorlite.te import dtypes


def store(c: Context, place: Storage, dtype: str, lanes: Lanes, value: str, pointer: str) -> None:
    """Store all lanes of ``value`` side by side, past the caches where that can be."""
    b, n = c.b, lanes.count
    stored = casts.to_memory(b, dtype, n, value)
    piece_bytes = architecture_of(c.target).streamed
    if not piece_bytes or n * dtypes.size(dtype) < piece_bytes:
        memory.contiguous_store(c, place, dtype, lanes, stored, pointer)
        return
    c.streams_out = True
    kind, count = types.memory_type(dtype, n), piece_bytes // dtypes.size(dtype)
    past = f", align {piece_bytes}{alias(place.scope)}, !nontemporal {b.module.node('!{i32 1}')}"
    address = b.op(f"ptrtoint ptr {pointer} to i64")
    rest = b.op(f"and i64 {address}, {piece_bytes - 1}")
    aligned, usual, after = b.label("aligned"), b.label("usual"), b.label("stored")
    b.branch(b.op(f"icmp eq i64 {rest}, 0"), aligned, usual)
    b.start(aligned)
    for first in range(0, n, count):
        piece = b.shuffle(kind, stored, "poison", list(range(first, first + count)))
        at = b.op(f"getelementptr i8, ptr {pointer}, i64 {first * dtypes.size(dtype)}")
        b.do(f"store {types.memory_type(dtype, count)} {piece}, ptr {at}{past}")
    b.jump(after)
    b.start(usual)
    memory.contiguous_store(c, place, dtype, lanes, stored, pointer)
    b.jump(after)
    b.start(after)


def fence(c: Context) -> None:
    """At the end of a function: what it stored past the caches is there before what follows its return."""
    if c.streams_out:
        c.b.call("void", architecture_of(c.target).fence)
