"""Walking and rebuilding statements."""

from ansorlite.loops.nodes import For, Stmt, Store, block
from ansorlite.loops.printer import text
from ansorlite.loops.visit import loads, map_exprs, map_outermost, map_stmt, stores
from ansorlite.te.expr import const
from ansorlite.te.traversal import substitute

from .build import argument, load, loop, store, tiled_matmul


def test_mapping_nothing_gives_the_same_object() -> None:
    body = tiled_matmul(5, 13, 7, 8).body
    assert map_stmt(body, lambda _: None) is body
    assert map_outermost(body, lambda _: None) is body
    assert map_exprs(body, lambda expr: expr) is body


def test_what_is_replaced_as_a_whole_is_not_walked() -> None:
    y = argument("Y", 4)
    inner = loop("j", 2, lambda j: store(y, (j,), const(1.0, "float32")))
    outer = loop("i", 3, lambda _: inner)
    asked: list[Stmt] = []

    def rule(stmt: Stmt) -> Stmt | None:
        asked.append(stmt)
        return inner if stmt is outer else None

    assert map_outermost(outer, rule) is inner
    assert asked == [outer]
    assert map_stmt(outer, rule) is inner
    assert asked[1:] == [inner.body, inner, outer]


def test_removing_a_statement_closes_the_block() -> None:
    y = argument("Y", 4)
    first, second = store(y, (0,), const(1.0, "float32")), store(y, (1,), const(2.0, "float32"))
    body = loop("i", 3, lambda i: block(first, second, store(y, (i,), load(y, 0))))

    def rule(stmt: Stmt) -> Stmt | None:
        return block() if stmt is first else None

    assert text(map_stmt(body, rule)) == "for i in 0..3:\n    Y[1] = 2.0\n    Y[i] = Y[0]"


def test_mapping_expressions_reaches_extents_indices_and_values() -> None:
    y = argument("Y", 8)
    outer = loop("i", 4, lambda i: loop("j", i + 1, lambda j: store(y, (i + j,), load(y, i))))
    assert isinstance(outer, For)
    inside = map_exprs(outer.body, lambda expr: substitute(expr, {outer.var: const(2, "int64")}))
    assert text(inside) == "for j in 0..2 + 1:\n    Y[2 + j] = Y[2]"


def test_loads_and_stores_in_program_order() -> None:
    function = tiled_matmul(5, 13, 7, 8)
    assert [s.buffer.name for s in stores(function.body)] == ["acc", "acc", "C"]
    assert all(isinstance(s, Store) for s in stores(function.body))
    assert [x.buffer.name for x in loads(function.body)] == ["acc", "A", "B", "acc"]
