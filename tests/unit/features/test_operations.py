"""Counting the operations of an expression."""

from __future__ import annotations

import pytest

from ansorlite import te
from ansorlite.features.facts import ALWAYS, Operations
from ansorlite.features.operations import operations
from ansorlite.te.expr import Expr
from ansorlite.te.traversal import reads

A = te.placeholder((8,), name="A")
B = te.placeholder((8,), name="B")


def grouped(element: object, reduce: bool = False) -> dict[frozenset[int], Operations]:
    if reduce:
        r = te.reduce_axis(8, name="r")
        tensor = te.compute((2,), lambda _: te.sum(element(r), axis=r), name="C")
    else:
        tensor = te.compute((8,), element, name="C")
    assert tensor.body is not None
    return operations(tensor.body, {read: position for position, read in enumerate(reads(tensor.body))})


def count(element: object, reduce: bool = False) -> Operations:
    kinds = [(o.cheap, o.mul, o.div, o.math) for o in grouped(element, reduce).values()]
    return Operations(*map(sum, zip(*kinds, strict=True)))


@pytest.mark.parametrize(
    ("element", "expected"),
    [
        (lambda i: A[i], Operations()),
        (lambda i: A[i] + 1.0, Operations(cheap=1)),
        (lambda i: A[i] * B[i] + A[i], Operations(cheap=1, mul=1)),
        (lambda i: te.maximum(A[i], 0.0), Operations(cheap=1)),
        (lambda i: A[i] / B[i], Operations(div=1)),
        (lambda i: te.exp(A[i]), Operations(math=1)),
        (lambda i: te.power(A[i], 0.75), Operations(mul=1, div=2)),  # two square roots
        (lambda i: te.power(A[i], -2.0), Operations(mul=1, div=1)),
        (lambda i: te.power(A[i], 0.6), Operations(math=5)),
        (lambda i: te.power(A[i], B[i]), Operations(math=5)),
        (lambda i: A[(i + 3) % 8], Operations()),  # arithmetic of indices
        (lambda i: te.if_then_else(i + 1 < 4, A[i] * 2.0, 0.0), Operations(mul=1)),  # and of conditions
        (lambda i: (A[i] * B[i]) * (A[i] * B[i]), Operations(mul=2)),  # what is shared is done once
        (lambda i: te.cast(i * 2, "float32"), Operations()),  # no data in it
    ],
)
def test_elements(element: object, expected: Operations) -> None:
    assert count(element) == expected


def test_a_reduction_adds_its_step() -> None:
    def product(r: Expr) -> Expr:
        return A[r] * B[r]

    assert count(product, reduce=True) == Operations(cheap=1, mul=1)


def test_operations_know_what_their_operands_are_made_of() -> None:
    found = grouped(lambda i: (A[i] - B[0] / 8.0) * te.rsqrt(B[0] / 8.0))
    assert found == {
        frozenset((1,)): Operations(div=2),  # what is shared is done once
        frozenset((0, 1)): Operations(cheap=1, mul=1),
    }
    assert grouped(lambda r: te.exp(A[r]), reduce=True) == {
        frozenset((0,)): Operations(math=1),
        frozenset((ALWAYS,)): Operations(cheap=1),
    }
