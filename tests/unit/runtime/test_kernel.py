"""Calling compiled kernels: what is accepted, what is refused and how, and what comes back."""

import pickle
import threading
from collections.abc import Callable

import numpy as np
import pytest

import ansorlite as al
from ansorlite.best import Programs
from ansorlite.cache.disk import NoCache
from ansorlite.errors import ArgumentError, TargetError
from ansorlite.loops.nodes import Alloc, Buffer, Function, LoopKind, Scope, Stmt, block
from ansorlite.platforms import build
from ansorlite.runtime.arguments import address_of
from ansorlite.runtime.kernel import Kernel
from ansorlite.target import host
from ansorlite.task import Task
from ansorlite.te.expr import Var
from tests import workloads
from tests.unit.loops.build import argument, load, loop, store

TARGET = host(threads=2)
SHAPE = (6, 10)


def sums() -> Function:
    """Z = X + Y and W = X - Y, by way of a temporary in the workspace."""
    x, y, z, w = (argument(name, *SHAPE) for name in "XYZW")
    t = Buffer("T", SHAPE, "float32", Scope.GLOBAL)

    def rows(make: Callable[[Var, Var], Stmt]) -> Stmt:
        return loop("i", 6, lambda i: loop("j", 10, lambda j: make(i, j), LoopKind.VECTORIZED, 16), LoopKind.PARALLEL)

    fill = rows(lambda i, j: store(t, (i, j), load(x, i, j) + load(y, i, j)))
    both = rows(lambda i, j: block(store(z, (i, j), load(t, i, j)), store(w, (i, j), load(x, i, j) - load(y, i, j))))
    return Function("sums", (x, y, z, w), 2, Alloc(t, block(fill, both)))


@pytest.fixture(scope="module")
def kernel() -> Kernel:
    function = sums()
    return Kernel(build(function, TARGET), function.params, TARGET)


@pytest.fixture
def arrays() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.standard_normal(SHAPE).astype(np.float32), rng.standard_normal(SHAPE).astype(np.float32)


def test_returns_outputs(kernel: Kernel, arrays: tuple[np.ndarray, np.ndarray]) -> None:
    a, b = arrays
    total, difference = kernel(a, b)
    np.testing.assert_array_equal(total, a + b)
    np.testing.assert_array_equal(difference, a - b)


def test_writes_in_place(kernel: Kernel, arrays: tuple[np.ndarray, np.ndarray]) -> None:
    a, b = arrays
    out = (np.empty(SHAPE, np.float32), np.empty(SHAPE, np.float32))
    returned = kernel(a, b, out=out)
    assert returned[0] is out[0]
    assert returned[1] is out[1]
    np.testing.assert_array_equal(out[0], a + b)


def test_copies_what_is_not_contiguous(kernel: Kernel, arrays: tuple[np.ndarray, np.ndarray]) -> None:
    a, b = arrays
    wide = np.zeros((6, 20), np.float32)
    wide[:, ::2] = a
    unaligned = np.zeros(b.nbytes + 1, np.uint8)[1:].view(np.float32).reshape(SHAPE)
    unaligned[...] = b
    np.testing.assert_array_equal(kernel(wide[:, ::2], unaligned)[0], a + b)
    np.testing.assert_array_equal(kernel(np.asfortranarray(a), b[::-1][::-1])[0], a + b)


def test_an_argument_may_be_an_output(kernel: Kernel, arrays: tuple[np.ndarray, np.ndarray]) -> None:
    a, b = arrays
    expected = a - b
    kernel(a, b, out=(np.empty_like(a), a))
    np.testing.assert_array_equal(a, expected)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda k, a, _: k(a), r"takes 2 arrays \(X, Y\), not 1"),
        (lambda k, a, b: k(a, b, a), "not 3"),
        (lambda k, a, b: k(a, b[:3]), r"Y has shape \(3, 10\), but the kernel was compiled for \(6, 10\)"),
        (lambda k, a, b: k(a.astype("f8"), b), r"X is float64, not float32; convert it with .astype\('float32'\)"),
        (lambda k, a, b: k(a.tolist(), b), "X is a list, not a numpy array"),
        (lambda k, a, b: k(a, b, out=a), "out has 1 arrays, but the kernel has 2 outputs"),
        (lambda k, a, b: k(a, b, out=(np.empty((10, 6), "f4").T, np.empty_like(a))), "out for Z must be a contiguous"),
        (lambda k, a, b: k(a, b, out=(np.empty_like(a), np.empty(SHAPE, "f8"))), "W is float64"),
        (lambda k, a, b: k(a, b, out=(a, a)), "out for W overlaps another output"),
        (lambda k, a, b: k.bind(a, b), "takes 4 arrays, inputs then outputs, not 2"),
        (lambda k, a, b: k.bind(a[::-1], b, a.copy(), b.copy()), "X is not a contiguous array"),
        (lambda k, a, _: k.benchmark(a), "not 1"),
        (lambda k, *_: k.source("ptx"), "no source 'ptx'"),
    ],
)
def test_refuses(kernel: Kernel, arrays: tuple[np.ndarray, np.ndarray], call: Callable[..., object], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        call(kernel, *arrays)


def test_read_only_inputs_are_fine_and_read_only_outputs_are_not(kernel: Kernel, arrays: tuple[np.ndarray, np.ndarray]) -> None:
    a, b = arrays
    a.flags.writeable = False
    np.testing.assert_array_equal(kernel(a, b)[0], a + b)
    with pytest.raises(ArgumentError, match="writeable"):
        kernel(a, b, out=(a, np.empty_like(b)))


def test_scalars() -> None:
    x, z = argument("X"), argument("Z")
    function = Function("double", (x, z), 1, store(z, (), load(x) + load(x)))
    kernel = Kernel(build(function, TARGET), function.params, TARGET)
    assert kernel(np.float32(1.5)) == 3.0
    assert kernel(np.array(1.5, np.float32)).shape == ()


def test_many_threads_at_once(kernel: Kernel) -> None:
    wrong = []

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for _ in range(20):
            a, b = rng.standard_normal(SHAPE).astype(np.float32), rng.standard_normal(SHAPE).astype(np.float32)
            if not np.array_equal(kernel(a, b)[0], a + b):
                wrong.append(seed)

    workers = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


def test_objects_travel(arrays: tuple[np.ndarray, np.ndarray]) -> None:
    function = sums()
    compiled = pickle.loads(pickle.dumps(build(function, TARGET)))
    a, b = arrays
    np.testing.assert_array_equal(Kernel(compiled, function.params, TARGET)(a, b)[0], a + b)


def test_another_target_is_refused() -> None:
    function = sums()
    with pytest.raises(TargetError, match="compile it again"):
        Kernel(build(function, TARGET), function.params, host(threads=1))


def test_sources(kernel: Kernel) -> None:
    assert "parallel" in kernel.source("loops")
    assert "define void @ansorlite_sums" in kernel.source("llvm")
    assert "ansorlite_team_run" in kernel.source("asm")


def test_benchmark(kernel: Kernel, arrays: tuple[np.ndarray, np.ndarray]) -> None:
    timing = kernel.benchmark(*arrays)
    assert len(timing.repeats) >= 5
    assert 0 < timing.best <= timing.median


def test_bytes_that_are_read_in_words_may_lie_anywhere() -> None:
    task = Task(workloads.quantised_matmul(8, 32, 16, most=64), TARGET)
    rng = np.random.default_rng(0)
    a = np.frombuffer(rng.bytes(8 * 16 + 1), np.uint8)[1:].reshape(8, 16)
    b = rng.integers(-64, 65, (16, 32), np.int8)
    assert address_of(a) % 4
    product = Programs(None, cache=NoCache()).kernel(task)
    np.testing.assert_array_equal(product(a, b), a.astype(np.int32) @ b.astype(np.int32))


def test_large_results_begin_at_cache_lines() -> None:
    """Else threads that write neighbouring parts of rows write to the same lines."""
    kernel = al.compile(Task(workloads.matmul(64, 64, 4), TARGET))
    results = [kernel(np.ones((64, 4), np.float32), np.ones((4, 64), np.float32)) for _ in range(8)]
    assert all(address_of(result) % 64 == 0 and (result == 4).all() for result in results)
