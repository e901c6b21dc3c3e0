"""Functions from outside: names, what they are given, and whether they did what they should."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import ansorlite as al
from ansorlite import te
from ansorlite.errors import ExternalError
from ansorlite.module import external

Array = np.ndarray[Any, Any]

A = te.placeholder((2, 3), name="a")
B = te.placeholder((2, 3), name="b")
COUNT = te.placeholder((), "int8", name="count")
ONES = np.ones((2, 3), np.float32)


@pytest.fixture(autouse=True)
def registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test registers is forgotten afterwards."""
    monkeypatch.setattr(external, "_registered", {})


def negated(a: Array, out: Array) -> None:
    np.negative(a, out=out)


def test_it_reads_and_writes_in_place() -> None:
    al.register("env.negated", negated)
    np.testing.assert_array_equal(al.External("env.negated", [A], [B])(ONES), -ONES)


def test_a_decorator_gives_the_function_back() -> None:
    decorated = al.register("env.negated")(negated)
    assert decorated is negated
    assert al.register("env.again", negated) is negated


def test_several_outputs_are_a_tuple() -> None:
    @al.register("env.both")
    def both(a: Array, b: Array, total: Array, count: Array) -> None:
        np.add(a, b, out=total)
        count[...] = np.count_nonzero(a)

    total, count = al.External("env.both", [A, B], [A, COUNT])(ONES, ONES)
    np.testing.assert_array_equal(total, 2 * ONES)
    assert (count.shape, count.dtype, int(count)) == ((), np.int8, 6)


def test_a_name_is_given_once_unless_that_is_meant() -> None:
    al.register("env.f", negated)
    with pytest.raises(al.AnsorliteError, match=r"env\.f is registered already; .* override=True"):
        al.register("env.f", negated)
    al.register("env.f", lambda a, out: np.copyto(out, a), override=True)
    np.testing.assert_array_equal(al.External("env.f", [A], [B])(ONES), ONES)


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: al.register(5, negated), "not by 5"),  # type: ignore[call-overload]
        (lambda: al.register("", negated), "not by ''"),
        (lambda: al.register("env.f", 5), "env.f is registered with 5, which cannot be called"),  # type: ignore[call-overload]
        (lambda: al.External(5, [A], [B]), "as al.register took it, not 5"),  # type: ignore[arg-type]
        (lambda: al.External("env.f", A, [B]), "the inputs of env.f are Tensor(a, (2, 3), float32); give a list"),  # type: ignore[arg-type]
        (lambda: al.External("env.f", [A], ["b"]), "the outputs of env.f are ['b']; give a list of tensors"),  # type: ignore[list-item]
        (lambda: al.External("env.f", [A], []), "env.f has no outputs; give at least one"),
    ],
)
def test_what_makes_no_external_function(make: Callable[[], object], told: str) -> None:
    with pytest.raises(al.AnsorliteError) as caught:
        make()
    assert told in str(caught.value)


def test_nothing_is_registered_by_that_name() -> None:
    al.register("env.other", negated)
    with pytest.raises(ExternalError, match=r'env\.f is registered; al\.register\("env\.f", function\).*there are: env\.other'):
        al.External("env.f", [A], [B])(ONES)


def test_what_it_raises_is_told_with_its_cause() -> None:
    @al.register("env.f")
    def fails(_a: Array, _out: Array) -> None:
        raise KeyError("no\nsuch")

    with pytest.raises(ExternalError) as caught:
        al.External("env.f", [A], [B])(ONES)
    assert str(caught.value) == r"env.f raises KeyError: 'no\nsuch'"
    assert isinstance(caught.value.__cause__, KeyError)


def test_ctrl_c_is_no_fault_of_the_function() -> None:
    @al.register("env.f")
    def stopped(_a: Array, _out: Array) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        al.External("env.f", [A], [B])(ONES)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "uint8", "bool", "bfloat16", "int64"])
@pytest.mark.parametrize("shape", [(), (1,), (3,), (257,), (5, 31)])
def test_an_output_that_is_not_written(dtype: str, shape: tuple[int, ...]) -> None:
    al.register("env.idle", lambda *_: None)
    out = te.placeholder(shape or 1, dtype, name="out") if shape else te.placeholder((), dtype, name="out")
    with pytest.raises(ExternalError, match=r"env\.idle did not write out; write to the array that comes after its inputs"):
        al.External("env.idle", [A], [out])(ONES)


def test_an_output_that_is_returned_instead() -> None:
    al.register("env.f", lambda a, _out: -a)
    with pytest.raises(ExternalError, match=r"env\.f did not write b, but returned a ndarray; write to"):
        al.External("env.f", [A], [B])(ONES)


def test_one_of_several_outputs_that_is_not_written() -> None:
    al.register("env.f", lambda _a, out, _count: out.fill(0))
    with pytest.raises(ExternalError, match="did not write count"):
        al.External("env.f", [A], [B, COUNT])(ONES)


def test_any_value_counts_as_written() -> None:
    for value in range(-128, 128):
        al.register("env.f", lambda _a, count, value=value: count.fill(value), override=True)
        assert al.External("env.f", [A], [COUNT])(ONES) == value


def test_no_mark_is_left_in_what_is_written() -> None:
    al.register("env.f", negated)
    a = te.placeholder((1000,), "bfloat16", name="a")
    array = np.arange(1000).astype(ml_dtypes.bfloat16)
    np.testing.assert_array_equal(al.External("env.f", [a], [a])(array), -array)


def test_it_is_called_once() -> None:
    calls = itertools.count()

    @al.register("env.f")
    def counted(a: Array, out: Array) -> None:
        next(calls)
        np.negative(a, out=out)

    for _ in range(5):
        al.External("env.f", [A], [B])(ONES)
    assert next(calls) == 5


def test_read_only_arrays_can_be_viewed() -> None:
    @al.register("env.f")
    def picky(a: Array, out: Array) -> None:
        assert a.flags.writeable
        np.negative(np.from_dlpack(a), out=out)

    read_only = np.broadcast_to(np.float32(3), (2, 3))
    np.testing.assert_array_equal(al.External("env.f", [A], [B])(read_only), -3 * ONES)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "uint8", "int64", "bool"])
def test_torch_views_its_arrays(dtype: str) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'ansorlite[torch]'")
    tensor = te.placeholder((4, 5), dtype, name="x")

    @al.register("env.flipped")
    def flipped(x: Array, out: Array) -> None:
        torch.from_dlpack(out).copy_(torch.from_dlpack(x).flip(0))

    array = np.arange(20).reshape(4, 5).astype(dtype)
    for given in (array, np.broadcast_to(array, (4, 5))):
        np.testing.assert_array_equal(al.External("env.flipped", [tensor], [tensor])(given), array[::-1])
