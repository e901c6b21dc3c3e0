"""The better of generated code and a library's."""

from collections.abc import Callable
from itertools import count

import numpy as np
import pytest

import ansorlite as al
from ansorlite import te
from ansorlite.errors import ArgumentError
from ansorlite.module.fastest import arrays_for, fastest

X = te.placeholder((3, 4), name="x")


def clock_of(seconds: dict[str, list[float]]) -> Callable[[Callable[[int], None], int], float]:
    """A clock by which each function takes what is said of it, turn by turn."""
    ran: list[str] = []
    turns = {name: count() for name in seconds}

    def clock(call: Callable[[int], None], calls: int) -> float:
        NAMES.clear()
        call(1)
        (name,) = NAMES
        ran.append(name)
        each = seconds[name]
        return calls * each[next(turns[name]) % len(each)]

    return clock


NAMES: list[str] = []


def named(name: str) -> Callable[..., None]:
    return lambda *_: NAMES.append(name)


@pytest.mark.parametrize(
    ("library", "chosen"),
    [
        ([0.5], 1),  # always faster
        ([2.0], 0),
        ([1.0], 0),  # as fast: what is there stays
        ([0.5, 0.5, 1.5], 0),  # faster in the median, but not beyond luck
    ],
)
def test_another_takes_its_place_only_where_it_is_faster_beyond_luck(library: list[float], chosen: int) -> None:
    clock = clock_of({"ours": [1.0], "library": library, "slow": [3.0]})
    assert fastest([named("ours"), named("library"), named("slow")], [], clock) == chosen


def test_the_module_computes_the_same_with_either() -> None:
    task = al.Task([X, te.compute((3, 4), lambda i, j: te.maximum(X[i, j], 0.0), name="relu")])

    def slow(x: np.ndarray, out: np.ndarray) -> None:
        for _ in range(200):
            np.maximum(x, 0, out=out)

    al.register("test.fastest.slow", slow, override=True)
    module = al.Module({"relu": task, "main": lambda call, x: call("relu", x)})
    rival = al.External("test.fastest.slow", inputs=[X], outputs=[X])
    with pytest.raises(ArgumentError, match="relu is a task that is not compiled, so there is nothing to compare"):
        module.best_of("relu", rival)
    compiled = al.compile(module)
    chosen = compiled.best_of("relu", rival)
    assert chosen is compiled
    slower = module.replace("relu", rival).best_of("relu", al.compile(task))
    x = np.random.default_rng(0).standard_normal((3, 4), np.float32)
    for each in (chosen, slower):
        np.testing.assert_array_equal(each(x), np.maximum(x, 0))
    assert slower.functions["relu"].runs == "kernel"
    wide = te.placeholder((3, 5), name="x")
    with pytest.raises(ArgumentError, match="they must be equal"):
        compiled.best_of("relu", al.External("test.fastest.slow", inputs=[wide], outputs=[wide]))


def test_arrays_fit_what_is_called() -> None:
    ints = te.placeholder((2, 3), "int8", name="i")
    task = al.Task([X, ints, te.compute((3, 4), lambda i, j: X[i, j] * te.cast(ints[0, 0], "float32"), name="y")])
    kernel = al.compile(task)
    floats, whole = arrays_for(kernel.inputs, 0)
    assert (floats.dtype, floats.shape, whole.dtype, whole.shape) == (np.float32, (3, 4), np.int8, (2, 3))
    kernel(floats, whole)
