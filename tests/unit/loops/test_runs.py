"""Which neighbours in memory a phase of threads copies as one."""

from __future__ import annotations

import pytest

from ansorlite.loops.nodes import Buffer, For, If, LoopKind, Scope, Stmt, Store, index
from ansorlite.loops.runs import runs_of, shifted
from ansorlite.te.expr import Binary, Expr, Var, select
from ansorlite.te.index.divisor import divisor
from ansorlite.te.index.form import flat
from ansorlite.te.index.simplify import IndexAlgebra
from ansorlite.te.ops import BinaryOp
from ansorlite.te.traversal import substitute
from tests.unit.loops.build import argument, load, loop, store

THREAD = LoopKind.THREAD
X = argument("X", 64, 32)
K = Var("k")


def smaller(a: Expr, b: Expr) -> Expr:
    return Binary(BinaryOp.MIN, a, b, a.dtype)


def rows(stride: int = 16) -> Buffer:
    return Buffer("S", (8, 16), "float32", Scope.SHARED, pads=(0, stride - 16))


def copying(target: Buffer, *, lanes: int = 4, threads: int = 32, below: int | None = None) -> For:
    """8 rows of 16 elements, from row 8 * k on."""

    def element(q: Expr, v: Expr) -> Stmt:
        row, column = q * lanes // 16, q * lanes % 16 + v
        return store(target, (row, column), load(X, K * 8 + row, column))

    def mine(t: Expr) -> Stmt:
        def nth(n: Expr) -> Stmt:
            q = n * threads + t
            vector = loop("v", lanes, lambda v: element(q, v), LoopKind.VECTORIZED)
            return vector if below is None else If(q < below, vector)

        return loop("n", 128 // (lanes * threads) or 1, nth, LoopKind.UNROLLED)

    phase = loop("t", threads, mine, THREAD)
    assert isinstance(phase, For)
    return phase


def algebra() -> IndexAlgebra:
    result = IndexAlgebra()
    result.bind(K, index(8))
    return result


@pytest.mark.parametrize(
    ("phase", "count", "elements", "aligned"),
    [
        (copying(rows()), 8, 16, 16),
        (copying(rows(20)), 8, 16, 16),
        (copying(rows(17)), 8, 16, 4),
        (copying(rows(), lanes=1, threads=64), 8, 16, 16),
        (copying(rows(), lanes=2, threads=24, below=64), 0, 0, 0),
        (copying(rows(), threads=32, below=16), 4, 16, 16),
        (copying(rows(), threads=32, below=18), 9, 8, 16),
    ],
)
def test_rows_are_runs(phase: For, count: int, elements: int, aligned: int) -> None:
    known = algebra()
    runs = runs_of(phase, known)
    if not count:
        # Some elements are copied by nobody, so that it begins with no whole row.
        assert runs is None or runs.elements * runs.count < 128
        return
    assert runs is not None
    assert (runs.count, runs.elements, runs.aligned) == (count, elements, aligned)
    assert runs.nbytes == 4 * elements
    for number in range(count):
        for access, width in ((runs.store, runs.store.buffer.strides[0]), (runs.store.value, 32)):
            assert isinstance(access, Store) or hasattr(access, "indices")
            at = flat(access, access.buffer.strides).expr()  # type: ignore[attr-defined]
            first = known.simplify(substitute(at, {runs.number: index(number), K: index(3)}))
            row, column = divmod(number * elements, 16)
            begin = row * width + column + (3 * 8 * 32 if width == 32 and access is runs.store.value else 0)
            assert getattr(first, "value", None) == begin
    further = shifted(runs, 1, known)
    moved = known.simplify(substitute(further.indices[0], {runs.number: index(0)}))
    assert getattr(moved, "value", None) == elements // 16


def test_what_is_no_copy_in_runs() -> None:
    turned = loop("t", 32, lambda t: store(rows(), (t % 8, t // 8), load(X, t // 8, t % 8)), THREAD)
    assert isinstance(turned, For)
    runs = runs_of(turned, algebra())
    assert runs is not None
    assert runs.elements == 1
    scaled = loop("t", 32, lambda t: store(rows(), (t // 16, t % 16), load(X, t // 16, t % 16) * 2.0), THREAD)
    guarded = loop("t", 32, lambda t: store(rows(), (t // 16, t % 16), select(t < 8, load(X, t // 16, t % 16), 0.0)), THREAD)
    mixed = loop("t", 32, lambda t: store(rows(), (t // 16, t % 16), load(X, smaller(K * 8 + t, index(9)), t % 16)), THREAD)
    for phase in (scaled, guarded, mixed):
        assert isinstance(phase, For)
        assert runs_of(phase, algebra()) is None


def test_edges_are_aligned_where_both_of_their_ends_are() -> None:
    assert divisor(smaller(K * 48, index(208)) + 16) == 16
    assert divisor(K * 4 // 2 % 6 * 3) == 6
    assert divisor(select(K < 2, K * 4, index(6))) == 2
    assert divisor(K * (K * 4)) == 4
    assert divisor(index(0)) == 0
    assert divisor(K // 3) == 1
