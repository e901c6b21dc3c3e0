"""The text of loop functions."""

from textwrap import dedent

from ansorlite.loops.nodes import Alloc, Buffer, Function, If, LoopKind, Role, Scope, Stmt, Store, block, index
from ansorlite.loops.printer import text
from ansorlite.te.expr import Var, const, select

from .build import argument, load, loop, store, tiled_matmul


def test_matmul() -> None:
    assert text(tiled_matmul(5, 13, 7, 8)) == dedent(
        """\
        def matmul(A: float32[5, 7], B: float32[7, 13]) -> C: float32[5, 13]:
            parallel i in 0..5:
                for j0 in 0..2:
                    alloc acc: float32[8] in REGISTER
                    vectorized(4) j1 in 0..8:
                        acc[j1] = 0.0
                    for r in 0..7:
                        vectorized(4) j2 in 0..min(8, 13 - j0 * 8):
                            acc[j2] = acc[j2] + A[i, r] * B[r, j0 * 8 + j2]
                    vectorized(4) j3 in 0..min(8, 13 - j0 * 8):
                        C[i, j0 * 8 + j3] = acc[j3]"""
    )


def test_names_are_made_distinct_and_an_alloc_in_the_middle_shows_its_end() -> None:
    y, t = argument("Y", 4), Buffer("Y", (), "float32", Scope.LOCAL)

    def body(i: Var) -> Stmt:
        inner = loop("i", 2, lambda j: store(y, (i,), load(y, j) + load(t)), LoopKind.UNROLLED)
        return block(Alloc(t, block(store(t, (), const(1.0, "float32")), inner)), If(i < 2, store(y, (0,), load(y, 1))))

    assert text(Function("f", (y,), 1, loop("i", 4, body))) == dedent(
        """\
        def f() -> Y: float32[4]:
            for i in 0..4:
                alloc Y_1: float32[] in LOCAL:
                    Y_1[] = 1.0
                    unrolled i_1 in 0..2:
                        Y[i] = Y[i_1] + Y_1[]
                if i < 2:
                    Y[0] = Y[1]"""
    )


def test_labels_of_stores() -> None:
    y = argument("Y", 1)
    one = const(1.0, "float32")
    body = block(
        Store(y, (index(0),), one, "S", Role.COMPUTE),
        Store(y, (index(0),), one, "S", Role.INIT),
        Store(y, (index(0),), one, "", Role.MOVE),
    )
    assert text(body).splitlines() == ["Y[0] = 1.0  # S", "Y[0] = 1.0  # S.init", "Y[0] = 1.0  # move"]


def test_select_and_empty_block() -> None:
    x, y, i = argument("X", 4), argument("Y", 4), Var("i")
    assert text(store(y, (i,), select(i < 3, load(x, i - 1), 0.0))) == "Y[i] = if_then_else(i < 3, X[i - 1], 0.0)"
    assert text(block()) == "pass"
