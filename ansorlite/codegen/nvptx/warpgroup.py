"""Products of tiles on Hopper's matrix units, ``wgmma``: four warps together, by instructions that read shared memory themselves.

A descriptor says where a factor lies there: core matrices, 8 rows (or columns) of 16 bytes side by side, and how far it is to
the next one along the steps, and along the rows (PTX ISA, wgmma: matrix descriptor, no swizzle, steps side by side). What threads
have stored such instructions see after a fence, which stands before barriers (``FENCE``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ansorlite.codegen import memory
from ansorlite.codegen.context import Context
from ansorlite.codegen.nvptx.fragments import At, Fragments, held, tiles
from ansorlite.codegen.scope import Binding
from ansorlite.errors import TargetError
from ansorlite.loops.nodes import Intrinsic, Load, Multiply, Scope, Stmt, index
from ansorlite.loops.products import Product
from ansorlite.machine.matrix import COLUMNS, HELD_ACROSS, LANES_DOWN, PIECE_BYTES, ROWS
from ansorlite.te.expr import Expr, Var

#: Inline assembly before a barrier.
FENCE: Final = 'call void asm sideeffect "fence.proxy.async.shared::cta;", "~{memory}"()'

#: By dtype of the factors: types in the instruction, what comes after its descriptors, LLVM's type of a sum and its constraint.
_INSTRUCTIONS: Final[Mapping[str, tuple[str, str, str, str]]] = {
    "float16": ("f32.f16.f16", "1, 1, 1, 0, 0", "float", "f"),
    "bfloat16": ("f32.bf16.bf16", "1, 1, 1, 0, 0", "float", "f"),
    "int8": ("s32.s8.s8", "1", "i32", "r"),
}
#: What a descriptor counts in.
_UNIT: Final = 16
#: Bits of an address that it has.
_ADDRESS: Final = (1 << 18) - 1


def reads_shared(stmt: Stmt) -> bool:
    """Whether it is a product whose unit reads shared memory itself."""
    return isinstance(stmt, Intrinsic) and isinstance(stmt.does, Multiply) and stmt.does.unit.from_shared


def multiply(c: Context, product: Product, fragments: Fragments) -> None:
    """Write a product of tiles.

    Raises:
        TargetError: a factor does not lie in core matrices in shared memory.
    """
    b = c.b
    group = _group(c, fragments)
    columns = tiles(product.columns)
    right = _factor(c, fragments, product.b, fragments.b, group, columns)
    lefts = [_factor(c, fragments, product.a, fragments.a, group, [row]) for row in tiles(product.rows)]
    _do(c, "fence.sync.aligned")
    made = [_multiply(c, product, row, columns, left, right) for row, left in zip(tiles(product.rows), lefts, strict=True)]
    _do(c, "commit_group.sync.aligned")
    b.module.declare("void @llvm.nvvm.wgmma.wait_group.sync.aligned(i64 immarg)")
    b.do("call void @llvm.nvvm.wgmma.wait_group.sync.aligned(i64 0)")
    place, sums = c.places[product.sums.buffer], product.unit.sums
    for row, (kind, result) in zip(tiles(product.rows), made, strict=True):
        for number, offset in enumerate(_offsets(c, product, row, columns)):
            memory.register_store(c, place, sums, None, b.op(f"extractvalue {kind} {result}, {number}"), offset)
    del c.scope.variables[group]


def _do(c: Context, name: str) -> None:
    c.b.call("void", f"llvm.nvvm.wgmma.{name}")


def _group(c: Context, fragments: Fragments) -> Var:
    """The number of the warpgroup, as a variable."""
    group = Var("group")
    warp = c.scope.variables[fragments.v.lanes.warp].text
    c.scope.variables[group] = Binding(fragments.once(f"udiv i64 {warp}, 4"), 0, None)
    fragments.bind(group, max(1, fragments.threads // 128))
    return group


def _factor(c: Context, f: Fragments, load: Load, offset: Expr, group: Var, columns: list[At]) -> str:
    """The descriptor of a factor: of a tile of rows, or of all of columns."""
    p, lanes, of_rows = f.product, f.v.lanes, load is f.product.a
    warp = Var("warp")
    f.bind(warp, 4)
    whole = f.located(offset, {lanes.warp: group * 4 + warp})
    item = f.item
    # Elements from a row, or a column, to the next; and to the 8th.
    if of_rows:
        near, far = f.stride(whole, lanes.down), f.stride(whole, p.down)
        even = f.stride(whole, warp) == (None if far is None else far * ROWS // LANES_DOWN)
    else:
        near, pair = f.stride(whole, p.across), f.stride(whole, lanes.across)
        far = None if near is None else COLUMNS * near
        even = near is not None and pair == HELD_ACROSS * near and f.stride(whole, warp) == 0
    along = f.stride(whole, p.piece)
    zero = index(0)
    corner: At = {warp: zero, lanes.down: zero, lanes.across: zero, p.down: zero, p.across: zero, p.piece: zero, p.step: zero}
    forms = [f.form(whole, {**tile, **corner}) for tile in columns]
    first = forms[0]
    if not of_rows and len(forms) > 1:
        far = forms[1].constant - first.constant
        told = [(form.terms, form.constant) for form in forms]
        even = even and told == [(first.terms, first.constant + number * far) for number in range(len(forms))]
    sides = f.stride(whole, p.step) == 1 and near is not None and near * item == PIECE_BYTES
    if load.buffer.scope is not Scope.SHARED or not (even and sides) or far is None or along is None:
        raise TargetError(f"{p.unit.name} reads core matrices in shared memory, and {load.buffer.name} does not lie so")
    if not f.aligned(load, first, _UNIT) or far * item % _UNIT or along * item % _UNIT:
        raise TargetError(f"{p.unit.name} reads rows of 16 bytes at multiples of these, and {load.buffer.name} does not lie so")
    b = c.b
    pointer = b.op(f"addrspacecast ptr {f.pointer(load, first)} to ptr addrspace(3)")
    short = b.op(f"and i32 {b.op(f'ptrtoint ptr addrspace(3) {pointer} to i32')}, {_ADDRESS}")
    start = b.op(f"zext i32 {b.op(f'lshr i32 {short}, 4')} to i64")
    return b.op(f"or i64 {start}, {(along * item // _UNIT) << 16 | (far * item // _UNIT) << 32}")


def _offsets(c: Context, product: Product, row: At, columns: list[At]) -> list[int]:
    return [offset for column in columns for offset in held(c, product, {**row, **column})]


def _multiply(c: Context, product: Product, row: At, columns: list[At], left: str, right: str) -> tuple[str, str]:
    """The type and the name of the sums, which are there when they have been waited for."""
    types, rest, kind, constraint = _INSTRUCTIONS[product.unit.factors]
    sums, place = product.unit.sums, c.places[product.sums.buffer]
    before = [memory.register_load(c, place, sums, 1, offset).text for offset in _offsets(c, product, row, columns)]
    count = len(before)
    registers = ", ".join(f"${number}" for number in range(count))
    shape = f"m64n{COLUMNS * len(columns)}k{product.unit.steps}"
    text = f"wgmma.mma_async.sync.aligned.{shape}.{types} {{{registers}}}, ${2 * count}, ${2 * count + 1}, {rest};"
    constraints = [*[f"={constraint}"] * count, *map(str, range(count)), "l", "l", "~{memory}"]
    whole = f"{{ {', '.join([kind] * count)} }}"
    arguments = ", ".join([*(f"{kind} {text_}" for text_ in before), f"i64 {left}", f"i64 {right}"])
    return whole, c.b.op(f'call {whole} asm sideeffect "{text}", "{",".join(constraints)}"({arguments})')
