"""What the lanes of a warp give matrix units, and keep of the sums.

What each lane gives of the factors, and keeps of the sums, is the PTX ISA's (matrix fragments for mma.m16n8k16). Of 16 rows and
two pieces of steps a lane has four words: of rows ``lane // 4`` and 8 further down, of the first piece and of the second. Of 8
columns it has two: of column ``lane // 4``, of the first piece and of the second. Each word is steps from ``lane % 4`` words on.

Where rows of 16 bytes lie in shared memory, ``ldmatrix`` loads four times 8 of them at once: each lane gives the address of one
row, and gets what is its own. Where instead 8 rows lie side by side, step by step, it turns them. Else lanes load their words.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product as combinations
from typing import Final

from ansorlite.codegen import addresses
from ansorlite.codegen.builder import alias
from ansorlite.codegen.context import Context
from ansorlite.codegen.expressions import spread
from ansorlite.codegen.scope import Binding
from ansorlite.loops.nodes import For, Load, Scope, index
from ansorlite.loops.products import Lanes, Product, offset_by_lanes
from ansorlite.loops.visit import trips
from ansorlite.machine.matrix import HELD_ACROSS, HELD_DOWN, LANES_ACROSS, PIECE_BYTES, WARP
from ansorlite.te import dtypes
from ansorlite.te.expr import Binary, Expr, Var
from ansorlite.te.index.form import Affine, flat
from ansorlite.te.index.simplify import IndexAlgebra
from ansorlite.te.ops import BinaryOp
from ansorlite.te.traversal import free_vars, substitute

#: Bytes of a word.
_WORD: Final = 4

#: Which iteration of each loop over tiles.
At = dict[Var, Expr]


def tiles(loops: Sequence[For]) -> list[At]:
    """All iterations of loops over tiles."""
    numbers = combinations(*(range(trips(loop)) for loop in loops))
    return [{loop.var: index(number) for loop, number in zip(loops, each, strict=True)} for each in numbers]


@dataclass(frozen=True)
class LaneVars:
    """The parts of a thread's number, as variables.

    Attributes:
        lanes: as units keep sums.
        row: of 8 addresses of rows.
        second: of the second 8 lanes of 16.
        upper: of the upper half of a warp.
        word: ``lanes.across`` under another name.
    """

    lanes: Lanes
    row: Var
    second: Var
    upper: Var
    word: Var

    @property
    def extents(self) -> dict[Var, int]:
        return {self.row: 8, self.second: 2, self.upper: 2, self.word: LANES_ACROSS}


@contextmanager
def bound(c: Context, number: str, threads: int) -> Iterator[LaneVars]:
    v = LaneVars(Lanes(Var("warp"), Var("down"), Var("across")), Var("row"), Var("second"), Var("upper"), Var("word"))
    lane = once(c, f"urem i64 {number}, {WARP}")
    across = once(c, f"urem i64 {lane}, {LANES_ACROSS}")
    eighth = once(c, f"udiv i64 {lane}, 8")
    texts = {
        v.lanes.warp: (once(c, f"udiv i64 {number}, {WARP}"), max(1, threads // WARP)),
        v.lanes.down: (once(c, f"udiv i64 {lane}, {LANES_ACROSS}"), 8),
        v.lanes.across: (across, LANES_ACROSS),
        v.row: (once(c, f"urem i64 {lane}, 8"), 8),
        v.second: (once(c, f"urem i64 {eighth}, 2"), 2),
        v.upper: (once(c, f"udiv i64 {lane}, 16"), 2),
        v.word: (across, LANES_ACROSS),
    }
    for var, (text, count) in texts.items():
        c.scope.variables[var] = Binding(text, 0, None)
        c.ranges[var] = (0, count - 1)
    yield v
    for var in texts:
        del c.scope.variables[var]


def once(c: Context, text: str) -> str:
    """An instruction of what is known all over the kernel; its name."""
    known: str | None = c.scope.get(text)
    if known is None:
        known = c.b.at_entry(text)
        c.scope.keep(text, known, 0)
    return known


class Fragments:
    """Loads what lanes give of the factors."""

    def __init__(self, c: Context, product: Product, thread: Var, threads: int, v: LaneVars) -> None:
        self.c = c
        self.product = product
        self.threads = threads
        self.v = v
        self.item = dtypes.size(product.unit.factors)
        self.algebra = IndexAlgebra()
        v.lanes.bind(self.algebra, max(threads, WARP))
        for var, extent in v.extents.items():
            self.algebra.bind(var, index(extent))
        for load in (product.a, product.b):
            for at in load.indices:
                for var in free_vars(at) - {thread}:
                    self.algebra.bind(var, index(self._extent(var)))
        self.algebra.bind(thread, index(threads))
        self.a = offset_by_lanes(product.a, thread, v.lanes, self.algebra)
        self.b = offset_by_lanes(product.b, thread, v.lanes, self.algebra)

    def bind(self, var: Var, extent: int) -> None:
        """Make a variable known."""
        self.algebra.bind(var, index(extent))
        self.c.ranges[var] = (0, extent - 1)

    def once(self, text: str) -> str:
        return once(self.c, text)

    def _extent(self, var: Var) -> int:
        p = self.product
        own = {p.down: HELD_DOWN, p.across: HELD_ACROSS, p.piece: 2, p.step: p.unit.piece}
        own |= {loop.var: trips(loop) for loop in (*p.rows, *p.columns)}
        return own[var] if var in own else int(self.c.ranges[var][1]) + 1

    # Which elements -----------------------------------------------------------------------------------------------

    def form(self, offset: Expr, at: Mapping[Var, Expr]) -> Affine:
        return self.algebra.form(substitute(offset, dict(at)))

    def located(self, offset: Expr, at: Mapping[Var, Expr]) -> Expr:
        """``offset`` at other variables."""
        return self.algebra.simplify(substitute(offset, dict(at)))

    def stride(self, offset: Expr, var: Var) -> int | None:
        """Elements from one value of ``var`` to the next; ``None`` where that is not always the same."""
        form = self.algebra.form(offset)
        if any(var in free_vars(atom) for atom, _ in form.terms if atom is not var):
            return None
        return dict(form.terms).get(var, 0)

    def aligned(self, load: Load, form: Affine, nbytes: int) -> bool:
        """Whether an element lies at a multiple of so many bytes, whatever the variables are."""
        return self.c.places[load.buffer].aligned % nbytes == 0 and self._divisor(form) * self.item % nbytes == 0

    def _divisor(self, form: Affine) -> int:
        """A number that divides an index, whatever the variables are; 0 of 0."""
        found = form.constant
        for atom, coefficient in form.terms:
            inside = 1
            if isinstance(atom, Binary) and atom.op in (BinaryOp.MIN, BinaryOp.MAX):
                inside = math.gcd(self._divisor(self.algebra.form(atom.a)), self._divisor(self.algebra.form(atom.b)))
            found = math.gcd(found, coefficient * inside)
        return found

    def pointer(self, load: Load, form: Affine) -> str:
        place = self.c.places[load.buffer]
        at = spread(self.c, form)
        pointer, _ = addresses.base(self.c, place, load.dtype, at.terms)
        return addresses.element(self.c, pointer, load.dtype, at.constant)

    # Words --------------------------------------------------------------------------------------------------------

    def of_rows(self, tile: At) -> list[str]:
        """The four words of a tile of rows: (first piece: both rows, second piece: both rows)."""
        p, v, load = self.product, self.v, self.product.a
        lanes: At = {p.down: v.second, p.piece: v.upper}
        forms = self._matrices(load, self.a, v.lanes.down, self.stride(self.a, v.lanes.down), [tile], lanes)
        if forms is not None:
            return self._ldmatrix(load, *forms, 4)
        return [
            self._word(load, self.a, {**tile, p.down: index(down), p.piece: index(piece)})
            for piece in range(2)
            for down in range(HELD_DOWN)
        ]

    def of_columns(self, tiles: Sequence[At]) -> list[list[str]]:
        """The two words of each tile of columns: of the first piece, and of the second."""
        p, v, load = self.product, self.v, self.product.b
        # Columns are numbered by lane and by what it keeps.
        near, far = self.stride(self.b, p.across), self.stride(self.b, v.lanes.across)
        stride = near if near is not None and far == HELD_ACROSS * near else None
        found: list[list[str]] = []
        rest = list(tiles)
        while rest:
            pair = rest[:2]
            forms = self._matrices(load, self.b, v.lanes.across, stride, pair, {p.across: index(0), p.piece: v.second})
            if forms is None and len(pair) > 1:
                pair = rest[:1]
                forms = self._matrices(load, self.b, v.lanes.across, stride, pair, {p.across: index(0), p.piece: v.second})
            if forms is not None:
                words = self._ldmatrix(load, *forms, 2 * len(pair))
                found += [words[2 * number : 2 * number + 2] for number in range(len(pair))]
            else:
                pair = rest[:1]
                column: At = {v.lanes.across: v.lanes.down // HELD_ACROSS, p.across: v.lanes.down % HELD_ACROSS}
                found.append([self._word(load, self.b, {**pair[0], **column, p.piece: index(piece)}) for piece in range(2)])
            rest = rest[len(pair) :]
        return found

    def _matrices(
        self, load: Load, offset: Expr, lane: Var, stride: int | None, tiles: Sequence[At], lanes: At
    ) -> tuple[Affine, bool] | None:
        """Where each lane's row of 16 bytes is for ``ldmatrix``, and whether what it loads is to be turned; ``None``: nowhere.

        Args:
            lane: the variable along rows, or columns, which neighbours of are ``stride`` elements apart.
            tiles: one, or two of which the upper half of the warp has the second.
            lanes: what else lanes give.
        """
        p, row = self.product, self.v.row
        if stride is None or load.buffer.scope is not Scope.SHARED:
            return None
        if self.stride(offset, p.step) == 1:
            turned, at = False, {lane: index(0), p.step: index(0)}
            along = stride
        elif stride == 1 and self.item == 2 and (along_steps := self.stride(offset, p.step)) is not None:
            turned, at = True, {lane: index(0), p.step: index(0)}
            along = along_steps
        else:
            return None
        forms = [self.form(offset, {**tile, **lanes, **at}) for tile in tiles]
        form = forms[0].plus(Affine(((row, 1),), 0), along)
        if len(forms) > 1:
            if forms[0].terms != forms[1].terms:
                return None
            form = form.plus(Affine(((self.v.upper, 1),), 0), forms[1].constant - forms[0].constant)
        return (form, turned) if self.aligned(load, form, PIECE_BYTES) else None

    def _ldmatrix(self, load: Load, form: Affine, turned: bool, count: int) -> list[str]:
        b = self.c.b
        pointer = b.op(f"addrspacecast ptr {self.pointer(load, form)} to ptr addrspace(3)")
        kind = f"{{ {', '.join(['i32'] * count)} }}"
        name = f"llvm.nvvm.ldmatrix.sync.aligned.m8n8.x{count}.{'trans.' if turned else ''}b16.p3"
        loaded = b.call(kind, name, ("ptr addrspace(3)", pointer))
        return [b.op(f"extractvalue {kind} {loaded}, {number}") for number in range(count)]

    def _word(self, load: Load, offset: Expr, at: Mapping[Var, Expr]) -> str:
        """The steps from ``word`` on that are one word."""
        c, b, p = self.c, self.c.b, self.product
        count = _WORD // self.item
        forms = [self.form(offset, {**at, p.step: self.v.word * count + number}) for number in range(count)]
        first = forms[0]
        together = all(f.terms == first.terms and f.constant == first.constant + n for n, f in enumerate(forms))
        suffix = alias(c.places[load.buffer].scope)
        if together and self.aligned(load, first, _WORD):
            return b.op(f"load i32, ptr {self.pointer(load, first)}, align {_WORD}{suffix}")
        bits, word = 8 * self.item, ""
        for number, form in enumerate(forms):
            element = b.op(f"load i{bits}, ptr {self.pointer(load, form)}, align {self.item}{suffix}")
            wide = b.op(f"zext i{bits} {element} to i32")
            placed = b.op(f"shl i32 {wide}, {bits * number}") if number else wide
            word = b.op(f"or i32 {word}, {placed}") if word else placed
        return word


def held(c: Context, product: Product, tile: At) -> list[int]:
    """Where the thread keeps its four sums of a tile: (upper row: both columns, lower row: both columns)."""
    place = c.places[product.sums.buffer]
    offset = flat(product.sums, place.strides).expr()
    found = []
    for down, across in combinations(range(HELD_DOWN), range(HELD_ACROSS)):
        at = substitute(offset, {**tile, product.down: index(down), product.across: index(across)})
        form = spread(c, IndexAlgebra().form(at))
        assert not form.terms
        found.append(form.constant)
    return found
