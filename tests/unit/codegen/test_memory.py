"""What is read and written, and what is not: guarded reads and masked tails at the edge of readable memory."""

import ctypes
import mmap
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import pytest

from ansorlite.codegen import assembly
from ansorlite.loops.nodes import Alloc, Buffer, Function, If, LoopKind, Scope, Stmt, block
from ansorlite.platforms import build
from ansorlite.target import host, resolve
from ansorlite.te import dtypes
from ansorlite.te.expr import Expr, Var, binary, cast, const
from ansorlite.te.functions import if_then_else, maximum, minimum
from ansorlite.te.ops import BinaryOp
from tests import running
from tests.unit.loops.build import argument, load, loop, store, tiled_matmul

TARGET = host(threads=2)
_PROT_NONE = 0


@contextmanager
def edge_array(n: int, dtype: str) -> Iterator[np.ndarray]:
    """An array whose last element ends where unreadable memory begins, and whose first follows unreadable memory."""
    page, size = mmap.PAGESIZE, n * np.dtype(dtype).itemsize
    end = -(-size // page) * page + page
    memory = mmap.mmap(-1, end + page)
    base = np.frombuffer(memory, np.uint8)
    address = base.ctypes.data
    libc = ctypes.CDLL(None, use_errno=True)

    def protect(offset: int, protection: int) -> None:
        assert libc.mprotect(ctypes.c_void_p(address + offset), ctypes.c_size_t(page), protection) == 0

    protect(0, _PROT_NONE)
    protect(end, _PROT_NONE)
    try:
        yield base[end - size : end].view(dtype)
    finally:
        protect(0, mmap.PROT_READ | mmap.PROT_WRITE)
        protect(end, mmap.PROT_READ | mmap.PROT_WRITE)


def run(function: Function, *arrays: np.ndarray) -> None:
    running.run(function, TARGET, *arrays)


@pytest.mark.parametrize(("n", "stores"), [(7, 3), (8, 1), (9, 2), (13, 3), (15, 4)])
def test_the_end_of_a_row_is_stored_in_pieces_where_masks_are_slow(n: int, stores: int) -> None:
    """Zen 3 stores under a mask in 12 cycles; AVX-512 in one."""
    x, z = argument("X", n), argument("Z", n)
    function = Function("f", (x, z), 1, loop("i", n, lambda i: store(z, (i,), load(x, i) + load(x, i)), LoopKind.VECTORIZED, 8))
    text = build(function, resolve("x86-64-v3")).llvm
    assert len(re.findall(r"  store .*ptr %", text)) == stores
    assert "masked.store" not in text
    assert ("masked.store" in build(function, resolve("x86-64-v4")).llvm) == (n % 8 not in (0, 1))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "int32", "float16"])
@pytest.mark.parametrize("n", [1, 5, 7, 16, 21, 67])
def test_tails_touch_nothing_beyond(dtype: str, n: int) -> None:
    x, z = argument("X", n, dtype=dtype), argument("Z", n, dtype=dtype)
    function = Function("f", (x, z), 1, loop("i", n, lambda i: store(z, (i,), load(x, i) + load(x, i)), LoopKind.VECTORIZED, 16))
    with edge_array(n, dtype) as a, edge_array(n, dtype) as out:
        a[:] = np.arange(n)
        run(function, a, out)
        np.testing.assert_array_equal(out, a + a)


@pytest.mark.parametrize("lanes", [3, 7, 14])
def test_vectors_are_powers_of_two(lanes: int) -> None:
    x, z = argument("X", lanes), argument("Z", lanes)
    body = loop("i", lanes, lambda i: store(z, (i,), load(x, i) + load(x, i)), LoopKind.VECTORIZED, lanes)
    function = Function("f", (x, z), 1, body)
    assert f"<{lanes} x float>" not in build(function, TARGET).llvm
    with edge_array(lanes, "float32") as a, edge_array(lanes, "float32") as out:
        a[:] = np.arange(lanes)
        run(function, a, out)
        np.testing.assert_array_equal(out, a + a)


@pytest.mark.parametrize("lanes", [1, 16])
@pytest.mark.parametrize("scale", [1, 2, 3, -1])
def test_guarded_reads_are_not_executed(lanes: int, scale: int) -> None:
    """Padding: reads before the beginning and beyond the end, by whole vectors and by lanes."""
    n, length = 40, 3000
    x, z = argument("X", n), argument("Z", length)

    def body(i: Var) -> Stmt:
        at = i * scale - 17 if scale > 0 else 1500 - i
        inside = binary(BinaryOp.AND, binary(BinaryOp.GE, at, 0), binary(BinaryOp.LT, at, n))
        return store(z, (i,), if_then_else(inside, load(x, at), const(-1.0, "float32")))

    function = Function("f", (x, z), 1, loop("i", length, body, LoopKind.VECTORIZED, lanes))
    at = np.arange(length) * scale - 17 if scale > 0 else 1500 - np.arange(length)
    with edge_array(n, "float32") as a:
        a[:] = np.arange(n)
        out = np.empty(length, np.float32)
        run(function, a, out)
        np.testing.assert_array_equal(out, np.where((at >= 0) & (at < n), a[np.clip(at, 0, n - 1)], -1))


def test_uniform_guard_in_a_vector_loop() -> None:
    """A row that does not exist is not read, whether the read is a scalar or a vector."""
    rows, n = 5, 24
    x, s, z = argument("X", rows, n), argument("S", rows), argument("Z", rows + 4000, n)

    def element(r: Var, i: Var) -> Stmt:
        inside = binary(BinaryOp.LT, r, rows)
        row, scale = const(2.0, "float32"), const(3.0, "float32")
        return store(z, (r, i), if_then_else(inside, load(x, r, i), row) * if_then_else(inside, load(s, r), scale))

    nest = loop("r", rows + 4000, lambda r: loop("i", n, lambda i: element(r, i), LoopKind.VECTORIZED, 16))
    with edge_array(rows * n, "float32") as a, edge_array(rows, "float32") as scale:
        a[:], scale[:] = np.arange(rows * n), np.arange(rows)
        out = np.empty((rows + 4000, n), np.float32)
        run(Function("f", (x, s, z), 1, nest), a.reshape(rows, n), scale, out)
        np.testing.assert_array_equal(out[:rows], a.reshape(rows, n) * scale[:, None])
        np.testing.assert_array_equal(out[rows:], 6.0)


def test_statements_masked_by_a_condition_per_lane() -> None:
    n = 300
    x, z = argument("X", 40), argument("Z", n)

    def body(i: Var) -> Stmt:
        return If(binary(BinaryOp.LT, i, 40), store(z, (i,), load(x, i)))

    with edge_array(40, "float32") as a:
        a[:] = np.arange(40)
        out = np.full(n, 7, np.float32)
        run(Function("f", (x, z), 1, loop("i", n, body, LoopKind.VECTORIZED, 16)), a, out)
        np.testing.assert_array_equal(out, np.where(np.arange(n) < 40, np.arange(n), 7))


@pytest.mark.parametrize("dtype", ["float32", "int8", "float64", "bfloat16", "bool"])
@pytest.mark.parametrize("stride", [-1, 2, 3, 7])
def test_strided_and_gathered(dtype: str, stride: int) -> None:
    n = 37
    length = 1 + (n - 1) * abs(stride)
    x, z, t = argument("X", length, dtype=dtype), argument("Z", n, dtype=dtype), argument("T", n, dtype="int32")
    start = 0 if stride > 0 else length - 1
    rng = np.random.default_rng(0)
    table = rng.integers(0, length, n).astype(np.int32)

    def body(i: Var) -> Stmt:
        even = binary(BinaryOp.EQ, i % 2, 0)
        return store(z, (i,), if_then_else(even, load(x, i * stride + start), load(x, cast(load(t, i), "int64"))))

    function = Function("f", (x, t, z), 1, loop("i", n, body, LoopKind.VECTORIZED, 16))
    values = rng.integers(0, 2 if dtype == "bool" else 100, length)
    a = values.astype(dtypes.NUMPY[dtype])
    expected = np.where(np.arange(n) % 2 == 0, a[start + np.arange(n) * stride], a[table])
    np.testing.assert_array_equal(running.called(function, TARGET, a, table), expected)


def test_scatter() -> None:
    n = 37
    x, z = argument("X", n), argument("Z", 3 * n)
    function = Function("f", (x, z), 1, loop("i", n, lambda i: store(z, (i * 3,), load(x, i)), LoopKind.VECTORIZED, 16))
    a, out = np.arange(n, dtype=np.float32), np.full(3 * n, -1, np.float32)
    run(function, a, out)
    np.testing.assert_array_equal(out[::3], a)
    assert (out[1::3] == -1).all()


@pytest.mark.parametrize("size", [100, 70_000])
@pytest.mark.parametrize("scope", [Scope.LOCAL, Scope.GLOBAL])
def test_temporaries(scope: Scope, size: int) -> None:
    """Nested and successive allocations, on the stack and in the workspace, per thread and shared."""
    x, z = argument("X", 8, size), argument("Z", 8, size)
    one, two, three = (Buffer(name, (size,), "float32", scope) for name in ("one", "two", "three"))

    def copy(target: Buffer, value: Callable[[Var], Expr]) -> Stmt:
        return loop("i", size, lambda i: store(target, (i,), value(i)), LoopKind.VECTORIZED, 16)

    def row(r: Var) -> Stmt:
        inner = Alloc(two, block(copy(two, lambda i: load(one, i) + 1.0), copy(one, lambda i: load(two, i) * load(one, i))))
        after = Alloc(three, block(copy(three, lambda i: load(one, i) + 2.0), copy(one, lambda i: load(three, i))))
        out = loop("i", size, lambda i: store(z, (r, i), load(one, i)), LoopKind.VECTORIZED, 16)
        return Alloc(one, block(copy(one, lambda i: load(x, r, i)), inner, after, out))

    kind = LoopKind.PARALLEL if scope is Scope.LOCAL else LoopKind.SERIAL
    a = np.random.default_rng(0).standard_normal((8, size)).astype(np.float32)
    out = np.empty_like(a)
    function = Function("f", (x, z), 1, loop("r", 8, row, kind))
    compiled = build(function, TARGET)
    running.run_compiled(compiled, function, TARGET, a, out)
    np.testing.assert_allclose(out, (a + 1) * a + 2, rtol=1e-6, atol=1e-6)
    if size == 70_000:
        assert 2 * size * 4 <= compiled.workspace < 6 * size * 4  # `two` and `three` share room


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("rows", [1, 2, 3, 50, 100])
def test_parallel_rows(rows: int, threads: int) -> None:
    target = host(threads)
    function = tiled_matmul(rows, 21, 9, 16)
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((rows, 9)).astype(np.float32), rng.standard_normal((9, 21)).astype(np.float32)
    np.testing.assert_allclose(running.called(function, target, a, b), a @ b, rtol=1e-4, atol=1e-5)


def test_relu_keeps_nan() -> None:
    x, z = argument("X", 16), argument("Z", 16)
    relu = loop("i", 16, lambda i: store(z, (i,), minimum(maximum(load(x, i), 0.0), 6.0)), LoopKind.VECTORIZED, 16)
    a = np.array([np.nan, -1, 0, 1, 7, np.inf, -np.inf, -0.0] * 2, np.float32)
    function = Function("f", (x, z), 1, relu)
    assert not re.search(r"cmp\w*ps", assembly(build(function, TARGET), TARGET))  # x86's maximum keeps one operand's NaN
    np.testing.assert_array_equal(running.called(function, TARGET, a), np.clip(a, 0, 6))


def test_register_tiles_stay_in_registers() -> None:
    text = assembly(build(tiled_matmul(8, 32, 64, 32), TARGET), TARGET)
    assert re.search("fmadd|fmla|mulps", text)
    assert not re.search(r"\(%rsp\), .*mm\d|ld[rp]\s+q.*\[sp", text)


@pytest.mark.parametrize("stride", [2, 3, 4, 5])
@pytest.mark.parametrize("n", [1, 3, 7, 14, 16, 33, 62])
def test_strided_loads_touch_nothing_beyond(n: int, stride: int) -> None:
    length = (n - 1) * stride + 1
    x, z = argument("X", length), argument("Z", n)
    function = Function("f", (x, z), 1, loop("i", n, lambda i: store(z, (i,), load(x, i * stride)), LoopKind.VECTORIZED, 16))
    with edge_array(length, "float32") as a:
        a[:] = np.arange(length)
        out = np.full(n, np.nan, np.float32)
        run(function, a, out)
        np.testing.assert_array_equal(out, a[::stride])


@pytest.mark.parametrize("columns", [5, 14, 16])
def test_two_dimensions_walked_as_one_and_gathered(columns: int) -> None:
    """``x[i // n, i % n]`` is contiguous, ``y[i % n, i // n]`` is its transpose."""
    rows = 9
    x, y, z = argument("X", rows, columns), argument("Y", columns, rows), argument("Z", rows * columns)
    function = Function("f", (x, y, z), 1, loop(
        "i", rows * columns, lambda i: store(z, (i,), load(x, i // columns, i % columns) - load(y, i % columns, i // columns)),
        LoopKind.VECTORIZED, 16,
    ))  # fmt: skip
    a, b = np.arange(rows * columns, dtype=np.float32).reshape(rows, columns), np.ones((columns, rows), np.float32)
    b[3, 2] = 7
    out = np.empty(rows * columns, np.float32)
    run(function, a, b, out)
    np.testing.assert_array_equal(out, (a - b.T).reshape(-1))


@pytest.mark.parametrize("lanes", [8, 14, 16])
@pytest.mark.parametrize("stride", [5, 60, -7])
def test_evenly_spaced_elements_are_loaded_one_by_one(lanes: int, stride: int) -> None:
    """A gather takes as long for two lanes as for sixteen; and the first and the last element are at the edge."""
    n = (lanes - 1) * abs(stride) + 1
    x, z = argument("X", n), argument("Z", lanes)
    first = const(0 if stride > 0 else n - 1, "int32")
    body = loop("i", lanes, lambda i: store(z, (i,), load(x, first + i * stride)), LoopKind.VECTORIZED, lanes)
    function = Function("f", (x, z), 1, body)
    assert "gather" not in build(function, TARGET).llvm
    with edge_array(n, "float32") as a, edge_array(lanes, "float32") as out:
        a[:] = np.arange(n)
        run(function, a, out)
        np.testing.assert_array_equal(out, a[::stride])
