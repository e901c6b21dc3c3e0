"""Copies from global to shared memory that land later (``cp.async``, from sm_80 on): of 4, 8 or 16 bytes a thread.

They go past the registers, those of 16 bytes past the first cache, too. Where a condition does not hold zeros are copied.
"""

from __future__ import annotations

from math import copysign, gcd
from typing import Final

from ansorlite.codegen import addresses
from ansorlite.codegen.context import Context
from ansorlite.codegen.expressions import Spread, evaluate, spread
from ansorlite.codegen.scope import dependence
from ansorlite.loops.nodes import Load, Scope, Store
from ansorlite.te import dtypes
from ansorlite.te.expr import Const, Expr, Select
from ansorlite.te.index.form import flat

_INTRINSICS: Final = "llvm.nvvm.cp.async"
#: Bytes that one copy moves at most, and at least.
_MOST: Final = 16
_LEAST: Final = 4


def copy(c: Context, stmt: Store) -> bool:
    """Write ``stmt`` as such copies; whether it can be: it stores what it loads, or zeros, in runs of whole words."""
    found = _parts(stmt.value)
    if found is None or c.guard is not None or (c.lanes is not None and c.lanes.mask is not None):
        return False
    condition, load = found
    if load.buffer not in c.places or load.buffer.scope in (Scope.SHARED, Scope.PRIVATE, Scope.LOCAL, Scope.REGISTER):
        return False
    if condition is not None and c.lanes is not None and c.lanes.var in dependence(condition).variables:
        return False
    source, target = c.places[load.buffer], c.places[stmt.buffer]
    lanes, item = (1 if c.lanes is None else c.lanes.count), dtypes.size(stmt.buffer.dtype)
    taken, put = spread(c, flat(load, source.strides)), spread(c, flat(stmt, target.strides))
    if lanes > 1 and not (_in_a_row(taken) and _in_a_row(put)):
        return False
    known = (
        addresses.alignment(c, source, load.dtype, taken.constant, taken.terms),
        addresses.alignment(c, target, stmt.buffer.dtype, put.constant, put.terms),
    )
    size = gcd(*known, lanes * item, _MOST)
    if size < _LEAST:
        return False
    holds = None if condition is None else evaluate(c, condition)
    if holds is not None and holds.literal and holds.text == "false":
        return False
    begin, _ = addresses.base(c, source, load.dtype, taken.terms)
    end, _ = addresses.base(c, target, stmt.buffer.dtype, put.terms)
    for first in range(0, lanes, size // item):
        to = addresses.element(c, end, stmt.buffer.dtype, put.constant + first)
        of = addresses.element(c, begin, load.dtype, taken.constant + first)
        _write(c, to, of, size, None if holds is None or holds.literal else holds.text)
    c.versions[stmt.buffer] += 1
    return True


def _parts(value: Expr) -> tuple[Expr | None, Load] | None:
    """What is copied, and under which condition; zero where that does not hold."""
    match value:
        case Load():
            return None, value
        case Select(condition, Load() as load, Const(zero)) if zero == 0 and copysign(1.0, zero) > 0:
            return condition, load
    return None


def _in_a_row(at: Spread) -> bool:
    return at.stride == 1 and at.offsets is None


def _write(c: Context, to: str, of: str, size: int, condition: str | None) -> None:
    """One copy, of zeros where ``condition``, an i1, does not hold."""
    b = c.b
    shared = b.op(f"addrspacecast ptr {to} to ptr addrspace(3)")
    outside = b.op(f"addrspacecast ptr {of} to ptr addrspace(1)")
    name = f"{_INTRINSICS}.{'cg' if size == _MOST else 'ca'}.shared.global.{size}"
    kinds, operands = "ptr addrspace(3), ptr addrspace(1)", f"ptr addrspace(3) {shared}, ptr addrspace(1) {outside}"
    if condition is not None:
        count = b.op(f"select i1 {condition}, i32 {size}, i32 0")
        name, kinds, operands = f"{name}.s", f"{kinds}, i32", f"{operands}, i32 {count}"
    b.module.declare(f"void @{name}({kinds})")
    b.do(f"call void @{name}({operands})")


def commit(c: Context) -> None:
    """End a group of copies."""
    name = f"{_INTRINSICS}.commit.group"
    c.b.module.declare(f"void @{name}()")
    c.b.do(f"call void @{name}()")


def wait(c: Context, pending: int) -> None:
    """Until all groups but the last ``pending`` ones of this thread have landed."""
    name = f"{_INTRINSICS}.wait.group"
    c.b.module.declare(f"void @{name}(i32)")
    c.b.do(f"call void @{name}(i32 {pending})")
