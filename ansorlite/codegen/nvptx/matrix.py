"""Products of tiles on NVIDIA's matrix units: ``mma.sync``, by one warp, and ``wgmma``, by four (``warpgroup.py``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product as combinations
from typing import Final

from ansorlite.codegen import memory
from ansorlite.codegen.context import Context
from ansorlite.codegen.nvptx import warpgroup
from ansorlite.codegen.nvptx.fragments import At, Fragments, bound, held, tiles
from ansorlite.loops.products import Product
from ansorlite.te.expr import Var

#: By dtype of the factors: LLVM's name of the instruction, and the type of its words.
_INSTRUCTIONS: Final[Mapping[str, tuple[str, str]]] = {
    "float16": ("m16n8k16.row.col.f32.f32", "<2 x half>"),
    "bfloat16": ("m16n8k16.row.col.bf16", "i32"),
    "int8": ("m16n8k32.row.col.s8", "i32"),
}
#: LLVM's types of sums.
_SUMS: Final[Mapping[str, str]] = {"float32": "float", "int32": "i32"}


def emit(c: Context, product: Product, thread: Var, threads: int, number: str, flying: warpgroup.Flying) -> None:
    """Write a product of tiles.

    Args:
        thread: the variable of the loop over the threads, of which there are ``threads``.
        number: what it is, an SSA name that is known all over the kernel.
        flying: sums of warpgroups: those of this product are among them then.
    """
    with c.scope.layer(statement=True), bound(c, number, threads) as lanes:
        fragments = Fragments(c, product, thread, threads, lanes)
        if product.unit.from_shared:
            warpgroup.multiply(c, product, fragments, flying)
        else:
            _by_warp(c, product, fragments)
    c.versions[product.sums.buffer] += 1


def _by_warp(c: Context, product: Product, fragments: Fragments) -> None:
    rows, columns = tiles(product.rows), tiles(product.columns)
    a = [fragments.of_rows(at) for at in rows]
    b = fragments.of_columns(columns)
    for (row, left), (column, right) in combinations(zip(rows, a, strict=True), zip(columns, b, strict=True)):
        _multiply(c, product, {**row, **column}, left, right)


def _multiply(c: Context, product: Product, tile: At, a: Sequence[str], b: Sequence[str]) -> None:
    name, word = _INSTRUCTIONS[product.unit.factors]
    sums, place = product.unit.sums, c.places[product.sums.buffer]
    kind, offsets = _SUMS[sums], held(c, product, tile)
    before = [memory.register_load(c, place, sums, 1, offset).text for offset in offsets]
    words = [text if word == "i32" else c.b.op(f"bitcast i32 {text} to {word}") for text in (*a, *b)]
    whole = f"{{ {', '.join([kind] * 4)} }}"
    made = c.b.call(whole, f"llvm.nvvm.mma.{name}", *((word, text) for text in words), *((kind, text) for text in before))
    for number, offset in enumerate(offsets):
        memory.register_store(c, place, sums, None, c.b.op(f"extractvalue {whole} {made}, {number}"), offset)
