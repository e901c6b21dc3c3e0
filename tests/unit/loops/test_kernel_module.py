"""A kernel as functions with launches: what goes into which, and what each is given."""

from __future__ import annotations

import numpy as np

from ansorlite.loops.interpreter import interpret
from ansorlite.loops.kernel_module import Launch, When, kernel_module
from ansorlite.loops.nodes import Alloc, Buffer, Function, Scope, Stmt, Store, block
from ansorlite.loops.printer import text
from ansorlite.loops.verifier import verify
from ansorlite.te.expr import Expr, Var

from .build import argument, load, loop, store

X, Y = argument("X", 4), argument("Y", 4)
W, V = (Buffer(name, (4,), "float32", Scope.CONSTANT) for name in "WV")
FIRST, SECOND = (Buffer(name, (4,), "float32", Scope.PREPARED) for name in ("first", "second"))


def each(target: Buffer, *sources: Buffer) -> Stmt:
    """The sums of elements."""

    def body(i: Var) -> Store:
        total: Expr = load(sources[0], i)
        for source in sources[1:]:
            total = total + load(source, i)
        return store(target, (i,), total)

    return loop("i", 4, body)


def test_each_part_gets_what_it_needs() -> None:
    t = Buffer("T", (4,), "float32", Scope.GLOBAL)
    body = block(each(FIRST, W), each(t, X, V), each(SECOND, FIRST, W), each(Y, t, SECOND))
    whole = Function("f", (X, W, V, Y), 1, Alloc(t, Alloc(FIRST, Alloc(SECOND, body))))
    verify(whole)
    module = kernel_module(whole)
    prepare, main = (launch.function for launch in module.launches)
    assert [launch.when for launch in module.launches] == [When.ONCE, When.CALL]
    verify(prepare)
    verify(main)
    assert text(prepare).splitlines()[0] == "def f_prepare(W: constant float32[4]) -> second: float32[4]:"
    assert text(main).splitlines()[0] == ("def f(X: float32[4], V: constant float32[4], second: float32[4]) -> Y: float32[4]:")
    assert module.prepared == (SECOND,)
    assert module.unread == (1,)
    x, w, v = (np.arange(4, dtype=np.float32) + number for number in range(3))
    second, expected, found = (np.empty(4, np.float32) for _ in range(3))
    interpret(whole, [x, w, v, expected])
    interpret(prepare, [w, second])
    for _ in range(2):
        interpret(main, [x, v, second, found])
        np.testing.assert_array_equal(found, expected)


def test_without_prepared_buffers_there_is_one_launch() -> None:
    function = Function("f", (X, W, Y), 1, each(Y, X, W))
    module = kernel_module(function)
    (launch,) = module.launches
    assert isinstance(launch, Launch)
    assert (launch.function, launch.when) == (function, When.CALL)
    assert (module.at(When.ONCE), module.handed, module.unread) == ((), (), ())
