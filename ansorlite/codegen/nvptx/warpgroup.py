"""Products of tiles on Hopper's matrix units, ``wgmma``: four warps together, by instructions that read shared memory themselves.

A descriptor says where a factor lies there: core matrices, 8 rows (or columns) of 16 bytes side by side, and how far it is to
the next one along the steps, and along the rows (PTX ISA, wgmma: matrix descriptor, no swizzle, steps side by side). What threads
have stored such instructions see after a fence, which stands before barriers (``FENCE``).

Sums are not to be touched from the first product that adds to them until they are waited for. So they are operands of what is
before (``wgmma.fence``), of each product, and of what waits: whoever reads or writes them otherwise reads what the wait gives, or
writes what the fence takes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ansorlite.codegen import memory
from ansorlite.codegen.context import Context, Storage
from ansorlite.codegen.nvptx.fragments import At, Fragments, held, tiles
from ansorlite.codegen.scope import Binding
from ansorlite.errors import TargetError
from ansorlite.loops.nodes import Block, For, Intrinsic, Load, LoopKind, Multiply, Scope, Stmt, index, statements
from ansorlite.loops.products import Product
from ansorlite.machine.matrix import COLUMNS, HELD_ACROSS, LANES_DOWN, PIECE_BYTES, ROWS
from ansorlite.te.expr import Expr, Var

#: Inline assembly before a barrier.
FENCE: Final = 'call void asm sideeffect "fence.proxy.async.shared::cta;", "~{memory}"()'

#: By dtype of the factors: types in the instruction, and what comes after its descriptors.
_INSTRUCTIONS: Final[Mapping[str, tuple[str, str]]] = {
    "float16": ("f32.f16.f16", "1, 1, 1, 0, 0"),
    "bfloat16": ("f32.bf16.bf16", "1, 1, 1, 0, 0"),
    "int8": ("s32.s8.s8", "1"),
}
#: By dtype of sums: LLVM's type of one, and its constraint.
_REGISTERS: Final[Mapping[str, tuple[str, str]]] = {"float32": ("float", "f"), "int32": ("i32", "r")}
#: What a descriptor counts in.
_UNIT: Final = 16
#: Bits of an address that it has.
_ADDRESS: Final = (1 << 18) - 1


def reads_shared(stmt: Stmt) -> bool:
    """Whether it is a product whose unit reads shared memory itself."""
    return isinstance(stmt, Intrinsic) and isinstance(stmt.does, Multiply) and stmt.does.unit.from_shared


def multiply(c: Context, product: Product, fragments: Fragments, flying: Flying) -> None:
    """Write a product of tiles, as a group of its own. Its sums are flying then.

    Raises:
        TargetError: a factor does not lie in core matrices in shared memory.
    """
    group = _group(c, fragments)
    columns = tiles(product.columns)
    right = _factor(c, fragments, product.b, fragments.b, group, columns)
    lefts = [_factor(c, fragments, product.a, fragments.a, group, [row]) for row in tiles(product.rows)]
    place, sums = c.places[product.sums.buffer], product.unit.sums
    rows = [_offsets(c, product, row, columns) for row in tiles(product.rows)]
    flying.begin(c, place, sums, [offset for row in rows for offset in row])
    for row, left in zip(rows, lefts, strict=True):
        _multiply(c, product, row, COLUMNS * len(columns), left, right)
    c.b.call("void", "llvm.nvvm.wgmma.commit_group.sync.aligned")
    del c.scope.variables[group]


class Flying:
    """Sums that products may still add to: by the memory that they are kept in, which of its elements, and their dtype."""

    def __init__(self) -> None:
        self._sums: dict[str, tuple[Storage, str, list[int]]] = {}

    def begin(self, c: Context, place: Storage, dtype: str, offsets: Sequence[int]) -> None:
        """Sums that are about to be added to. Those that are flying already are added to in order, by themselves."""
        known = self._sums.setdefault(place.pointer, (place, dtype, []))[2]
        fresh = [offset for offset in offsets if offset not in known]
        if fresh:
            _through(c, place, dtype, fresh, "wgmma.fence.sync.aligned;")
            known += fresh

    def land(self, c: Context) -> None:
        """Wait for all of them."""
        text = "wgmma.wait_group.sync.aligned 0;"
        for place, dtype, offsets in self._sums.values():
            _through(c, place, dtype, offsets, text)
            text = ""
        self._sums.clear()


def straight(stmt: Stmt) -> bool:
    """Whether products stand behind all else, without loops or conditions: nothing comes between them then."""
    match stmt:
        case Block(body):
            first = next((number for number, child in enumerate(body) if _multiplies(child)), len(body))
            return all(map(_only_products, body[first:]))
    return _only_products(stmt)


def _only_products(stmt: Stmt) -> bool:
    match stmt:
        case Block(body):
            return all(map(_only_products, body))
        case For(kind=LoopKind.UNROLLED | LoopKind.VTHREAD):
            return _only_products(stmt.body)
    return isinstance(stmt, Intrinsic) and isinstance(stmt.does, Multiply)


def _multiplies(stmt: Stmt) -> bool:
    return any(isinstance(each, Intrinsic) and isinstance(each.does, Multiply) for each in statements(stmt))


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


def _multiply(c: Context, product: Product, offsets: Sequence[int], columns: int, left: str, right: str) -> None:
    types, rest = _INSTRUCTIONS[product.unit.factors]
    count = len(offsets)
    registers = ", ".join(f"${number}" for number in range(count))
    shape = f"m64n{columns}k{product.unit.steps}"
    text = f"wgmma.mma_async.sync.aligned.{shape}.{types} {{{registers}}}, ${2 * count}, ${2 * count + 1}, {rest};"
    _through(c, c.places[product.sums.buffer], product.unit.sums, offsets, text, ("l", f"i64 {left}"), ("l", f"i64 {right}"))


def _through(c: Context, place: Storage, dtype: str, offsets: Sequence[int], text: str, *operands: tuple[str, str]) -> None:
    """An instruction that takes sums where they are, and gives them back there.

    Args:
        operands: that it has besides: constraint, and type and name.
    """
    kind, constraint = _REGISTERS[dtype]
    before = [f"{kind} {memory.register_load(c, place, dtype, 1, offset).text}" for offset in offsets]
    count = len(before)
    constraints = [*[f"={constraint}"] * count, *map(str, range(count)), *(each for each, _ in operands), "~{memory}"]
    whole = f"{{ {', '.join([kind] * count)} }}" if count > 1 else kind
    arguments = ", ".join([*before, *(operand for _, operand in operands)])
    made = c.b.op(f'call {whole} asm sideeffect "{text}", "{",".join(constraints)}"({arguments})')
    for number, offset in enumerate(offsets):
        value = c.b.op(f"extractvalue {whole} {made}, {number}") if count > 1 else made
        memory.register_store(c, place, dtype, None, value, offset)
