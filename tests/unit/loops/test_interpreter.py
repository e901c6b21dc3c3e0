"""The interpreter against numpy, on functions written by hand."""

import ml_dtypes
import numpy as np
import pytest

from ansorlite.errors import ArgumentError
from ansorlite.loops.interpreter import OutOfBoundsError, interpret
from ansorlite.loops.nodes import BINDINGS, Alloc, Buffer, Function, If, LoopKind, Scope, Stmt, block
from ansorlite.te import dtypes
from ansorlite.te.expr import Binary, Expr, Unary, Var, binary, cast, const, select, unary
from ansorlite.te.functions import maximum
from ansorlite.te.numeric import apply, convert
from ansorlite.te.ops import BINARY, UNARY, BinaryOp, UnaryOp

from .build import argument, load, loop, store, tiled_matmul


@pytest.mark.parametrize("reorder", [None, np.random.default_rng(0)], ids=["in order", "reordered"])
def test_matmul_with_register_tile_and_short_last_tile(reorder: np.random.Generator | None) -> None:
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal((5, 7), np.float32), rng.standard_normal((7, 13), np.float32)
    c = np.full((5, 13), np.nan, np.float32)
    interpret(tiled_matmul(5, 13, 7, 8), [a, b, c], reorder=reorder)
    np.testing.assert_allclose(c, a @ b, rtol=1e-5, atol=1e-6)


def test_select_does_not_read_the_arm_that_is_not_taken() -> None:
    x, y = argument("X", 6), argument("Y", 8)

    def padded(i: Var) -> Stmt:
        inside = binary(BinaryOp.AND, i >= 1, i < 7)
        return store(y, (i,), select(inside, load(x, i - 1), 0.0))

    data, result = np.arange(6, dtype=np.float32), np.full(8, np.nan, np.float32)
    interpret(Function("pad", (x, y), 1, loop("i", 8, padded)), [data, result])
    np.testing.assert_array_equal(result, np.pad(data, 1))


def test_index_outside_of_its_buffer_names_buffer_index_and_loops() -> None:
    x, y = argument("X", 6), argument("Y", 8)
    function = Function("f", (x, y), 1, loop("row", 8, lambda i: store(y, (i,), load(x, i - 1))))
    with pytest.raises(OutOfBoundsError, match=r"index 0 of X\[6\] is -1, outside of 0\.\.5, at row=0"):
        interpret(function, [np.zeros(6, np.float32), np.zeros(8, np.float32)])


def test_constant_index_outside_of_its_buffer() -> None:
    y = argument("Y", 8)
    with pytest.raises(OutOfBoundsError, match=r"index 0 of Y\[8\] is 8, .* at no loop"):
        interpret(Function("f", (y,), 1, store(y, (8,), const(1.0, "float32"))), [np.zeros(8, np.float32)])


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int8", "uint16", "int64", "bool"])
def test_fresh_memory_is_garbage_at_every_allocation(dtype: str) -> None:
    y = argument("Y", 3, 2, dtype=dtype)
    temporary = Buffer("T", (2,), dtype, Scope.LOCAL)

    def body(i: Var) -> Stmt:
        read = store(y, (i, 0), load(temporary, 1))
        return Alloc(temporary, block(read, store(temporary, (1,), const(0, dtype)), store(y, (i, 1), load(temporary, 1))))

    result = np.zeros((3, 2), dtypes.NUMPY[dtype])
    interpret(Function("f", (y,), 1, loop("i", 3, body)), [result])
    assert not result[:, 1].any()
    first = result[:, 0].astype(np.float64)
    assert np.isnan(first).all() if dtypes.is_float(dtype) else (first != 0).all()


@pytest.mark.parametrize("dtype", ["int32", "uint8", "float64", "int64"])
def test_reduction_with_several_dtypes(dtype: str) -> None:
    x, y = argument("X", 4, 9, dtype=dtype), argument("Y", 4, dtype=dtype)

    def row(i: Var) -> Stmt:
        update = loop("k", 9, lambda k: store(y, (i,), load(y, i) + load(x, i, k) * load(x, i, k)))
        return block(store(y, (i,), const(0, dtype)), update)

    data = np.random.default_rng(2).integers(0, 100, (4, 9)).astype(dtype)
    result = np.zeros(4, dtype)
    interpret(Function("f", (x, y), 1, loop("i", 4, row)), [data, result])
    np.testing.assert_array_equal(result, (data * data).sum(axis=1, dtype=dtype))


def test_int64_wraps_around_even_when_it_comes_from_loop_variables() -> None:
    y = argument("Y", 3, dtype="int64")

    def body(i: Var) -> Stmt:
        return block(store(y, (i,), i + 2**62), store(y, (i,), load(y, i) + load(y, i)), store(z, (i,), (i + 2**62) * 2))

    z = argument("Z", 3, dtype="int64")
    results = [np.zeros(3, np.int64), np.zeros(3, np.int64)]
    interpret(Function("f", (y, z), 2, loop("i", 3, body)), results)
    for result in results:
        np.testing.assert_array_equal(result, np.array([-(2**63), -(2**63) + 2, -(2**63) + 4]))


def kind_of(dtype: str) -> str:
    return "b" if dtype == "bool" else "f" if dtypes.is_float(dtype) else "i"


@pytest.mark.parametrize("reorder", [None, np.random.default_rng(0)], ids=["in order", "reordered"])
def test_shared_subexpressions_cost_once_and_respect_arms(reorder: np.random.Generator | None) -> None:
    x, y = argument("X", 8, dtype="int32"), argument("Y", 8, dtype="int32")

    def body(i: Var) -> Stmt:
        value: Expr = load(x, i)
        for _ in range(40):
            value = value + value * 2
        only_then = load(x, i - 1) + 1
        chosen = select(i > 0, only_then * only_then, value)
        return store(y, (i,), chosen + select(i > 1, only_then, value * value))

    data, result = np.arange(8, dtype=np.int32), np.zeros(8, np.int32)
    interpret(Function("f", (x, y), 1, loop("i", 8, body, LoopKind.VECTORIZED, 4)), [data, result], reorder=reorder)
    grown = [int(np.uint64(3**40 * v % 2**32).astype(np.uint32).astype(np.int32)) for v in range(8)]
    first = np.array([grown[0], *((v - 1 + 1) ** 2 for v in range(1, 8))], np.int64)
    second = np.array([grown[0] ** 2, grown[1] ** 2, *((v - 1 + 1) for v in range(2, 8))], dtype=object)
    expected = np.array([(int(a) + int(b) + 2**31) % 2**32 - 2**31 for a, b in zip(first, second, strict=True)])
    np.testing.assert_array_equal(result, expected)


def test_int64_that_is_now_a_literal_now_loaded() -> None:
    n, y = argument("N", 2, dtype="int64"), argument("Y", 2)
    body = loop("i", 2, lambda i: store(y, (i,), cast(maximum(load(n, i), 3), "float32")))
    result = np.zeros(2, np.float32)
    interpret(Function("f", (n, y), 1, body), [np.array([1, 7]), result])
    np.testing.assert_array_equal(result, [3, 7])


VALUES = {
    "f": [0.0, -0.0, 1.5, -2.5, 3.0, 100.0, float("inf"), float("-inf"), float("nan")],
    "i": [0, 1, 2, 3, 7, 100, 127],
    "b": [0, 1],
}


def samples(dtype: str) -> np.ndarray:
    values = np.array(VALUES[kind_of(dtype)]).astype(dtypes.NUMPY[dtype])
    return np.concatenate([values, -values]) if dtypes.is_signed(dtype) else values


DTYPES = ["float32", "float64", "float16", "bfloat16", "int8", "int32", "int64", "uint8", "bool"]
DEFINED = [
    (op, dtype)
    for op, info in BINARY.items()
    for dtype in DTYPES
    if kind_of(dtype) in info.kinds and not (info.to_float and kind_of(dtype) == "i")
]


@pytest.mark.parametrize(("op", "dtype"), DEFINED, ids=lambda x: getattr(x, "name", x))
def test_binary_operations_are_numpys(op: BinaryOp, dtype: str) -> None:
    kind = kind_of(dtype)
    a, b = (grid.ravel() for grid in np.meshgrid(samples(dtype), samples(dtype)))
    if op is BinaryOp.POW and kind == "i":
        a, b = a[b >= 0], b[b >= 0]
    x, y = argument("X", len(a), dtype=dtype), argument("Y", len(a), dtype=dtype)
    z = argument("Z", len(a), dtype="bool" if BINARY[op].boolean else dtype)
    result = np.zeros(len(a), dtypes.NUMPY[z.dtype])
    body = loop("i", len(a), lambda i: store(z, (i,), binary(op, load(x, i), load(y, i))))
    interpret(Function("f", (x, y, z), 1, body), [a, b, result])
    with np.errstate(all="ignore"):
        expected = BINARY[op].numpy(a, b)
    # float64 holds every value of the others; numpy's NaNs compare equal there, ml_dtypes' do not.
    exact = np.int64 if kind == "i" else np.float64
    np.testing.assert_array_equal(result.astype(exact), expected.astype(exact))


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("op", [op for op in UnaryOp if "f" in UNARY[op].kinds], ids=lambda op: op.name)
def test_unary_operations_are_numpys(op: UnaryOp, dtype: str) -> None:
    a = samples(dtype)
    x, y = argument("X", len(a), dtype=dtype), argument("Y", len(a), dtype=dtype)
    result = np.zeros(len(a), dtypes.NUMPY[dtype])
    interpret(Function("f", (x, y), 1, loop("i", len(a), lambda i: store(y, (i,), unary(op, load(x, i))))), [a, result])
    with np.errstate(all="ignore"):
        expected = UNARY[op].numpy(a).astype(result.dtype).astype(np.float64)
    # numpy's array loops and scalar calls may differ in the last bit of exp and its kin.
    np.testing.assert_allclose(result.astype(np.float64), expected, rtol=2 * float(ml_dtypes.finfo(a.dtype).eps))


@pytest.mark.parametrize("dtype", ["uint8", "int16", "bfloat16"])
def test_words_are_given_as_what_they_are_made_of(dtype: str) -> None:
    a = np.arange(24).reshape(3, 8).astype(dtypes.NUMPY[dtype])
    words = a.view("int32").ravel()
    x, y = argument("X", words.size, dtype="int32"), argument("Y", words.size, dtype="int32")
    result = np.zeros(words.size, np.int32)
    interpret(Function("f", (x, y), 1, loop("i", words.size, lambda i: store(y, (i,), load(x, i)))), [a, result])
    np.testing.assert_array_equal(result, words)


CASTS = [("float32", "int32"), ("int32", "int8"), ("bool", "float32"), ("float32", "bfloat16")]


@pytest.mark.parametrize(("source", "target"), CASTS)
def test_casts_are_astype(source: str, target: str) -> None:
    a = samples(source)
    a = a[np.isfinite(a)]
    x, y = argument("X", len(a), dtype=source), argument("Y", len(a), dtype=target)
    result = np.zeros(len(a), dtypes.NUMPY[target])
    interpret(Function("f", (x, y), 1, loop("i", len(a), lambda i: store(y, (i,), cast(load(x, i), target)))), [a, result])
    np.testing.assert_array_equal(result, a.astype(dtypes.NUMPY[target]))


def test_cast_of_a_loop_variable() -> None:
    y = argument("Y", 4)
    result = np.zeros(4, np.float32)
    interpret(Function("f", (y,), 1, loop("i", 4, lambda i: store(y, (i,), cast(i * 2, "float32")))), [result])
    np.testing.assert_array_equal(result, [0, 2, 4, 6])


def test_if_and_gather() -> None:
    x, at, y = argument("X", 10), argument("at", 6, dtype="int32"), argument("Y", 6)
    body = loop("i", 6, lambda i: If(i % 2 < 1, store(y, (i,), load(x, cast(load(at, i), "int64")))))
    data, where, result = np.arange(10, dtype=np.float32), np.array([3, 1, 4, 1, 5, 9], np.int32), np.full(6, -1, np.float32)
    interpret(Function("gather", (x, at, y), 1, body), [data, where, result])
    np.testing.assert_array_equal(result, [3, -1, 4, -1, 5, -1])


def test_more_loops_than_python_can_nest() -> None:
    y = argument("Y", dtype="int64")

    def nest(depth: int) -> Stmt:
        extent = 2 if depth % 9 == 0 else 1
        return loop(f"i{depth}", extent, lambda i: nest(depth + 1) if depth < 40 else store(y, (), load(y) + 1 + i * 0))

    result = np.zeros((), np.int64)
    interpret(Function("f", (y,), 1, nest(0)), [result])
    assert result == 2**5


def test_reordering_finds_a_false_parallel_promise() -> None:
    y = argument("Y", 50, dtype="int64")
    body = loop("i", 49, lambda i: store(y, (i + 1,), load(y, i) + 1), LoopKind.PARALLEL)
    in_order, shuffled = np.zeros(50, np.int64), np.zeros(50, np.int64)
    interpret(Function("scan", (y,), 1, body), [in_order])
    interpret(Function("scan", (y,), 1, body), [shuffled], reorder=np.random.default_rng(0))
    np.testing.assert_array_equal(in_order, np.arange(50))
    assert not np.array_equal(in_order, shuffled)


def test_lockstep_finds_a_false_vector_promise_and_masks_ifs_by_lane() -> None:
    y = argument("Y", 9, dtype="int64")
    body = loop("i", 8, lambda i: If(maximum(i, 2) < 7, store(y, (i + 1,), load(y, i) + 1)), LoopKind.VECTORIZED, 4)
    result = np.zeros(9, np.int64)
    interpret(Function("scan", (y,), 1, body), [result], reorder=np.random.default_rng(0))
    np.testing.assert_array_equal(result, [0, 1, 1, 1, 1, 2, 1, 1, 0])


@pytest.mark.parametrize("arrays", [[], [np.zeros(3, np.float32)], [np.zeros(4)]], ids=["count", "size", "dtype"])
def test_wrong_arrays(arrays: list[np.ndarray]) -> None:
    y = argument("Y", 4)
    with pytest.raises(ArgumentError, match=r"takes 1 arrays|Y is float32\[4\]"):
        interpret(Function("f", (y,), 1, block()), arrays)


def test_arguments_are_row_major_elements_whatever_their_dimensions() -> None:
    x, y = argument("X", 6), argument("Y", 6)
    data, result = np.arange(6, dtype=np.float32).reshape(3, 2).T, np.zeros((2, 3), np.float32)
    interpret(Function("copy", (x, y), 1, loop("i", 6, lambda i: store(y, (i,), load(x, i)))), [data, result])
    np.testing.assert_array_equal(result, data)


@pytest.mark.parametrize("dtype", dtypes.NUMPY)
def test_every_operation_means_what_it_means_to_numpy_arrays(dtype: str) -> None:
    """Extremes among the operands: zeros to divide by, NaN, what does not fit, negative powers."""
    kind = dtypes.NUMPY[dtype]
    if dtypes.is_float(dtype):
        numbers = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -2.5, 7.25, 300.0, -1e30, 1e-30])
    else:
        numbers = (
            np.array([0, 1]) if dtype == "bool" else np.array([np.iinfo(dtype).min, np.iinfo(dtype).max, 0, 1, 2, 3, 100, 255])
        )
        numbers = numbers if dtype in ("bool", "uint64") else np.concatenate([numbers, [-1, -3]])
    with np.errstate(all="ignore"):
        a, b = (x.ravel().astype(kind) for x in np.meshgrid(numbers, numbers))
    x, y = argument("X", a.size, dtype=dtype), argument("Y", a.size, dtype=dtype)
    kinds = "b" if dtype == "bool" else "f" if dtypes.is_float(dtype) else "i"
    binaries = [op for op, info in BINARY.items() if kinds in info.kinds and not (info.to_float and kinds == "i")]
    rounding = (UnaryOp.FLOOR, UnaryOp.CEIL, UnaryOp.ROUND)
    unaries = [
        op for op, info in UNARY.items() if kinds in info.kinds and (kinds == "f" or not (info.to_float or op in rounding))
    ]

    def result(name: str, value: str) -> Buffer:
        return argument(name, a.size, dtype=value)

    out = [result(op.name, "bool" if BINARY[op].boolean else dtype) for op in binaries] + [
        result(op.name, dtype) for op in unaries
    ]
    out += [result(f"to_{target}", target) for target in dtypes.NUMPY]

    def body(i: Var) -> Stmt:
        values: list[Expr] = [Binary(op, load(x, i), load(y, i), "bool" if BINARY[op].boolean else dtype) for op in binaries]
        values += [Unary(op, load(x, i), dtype) for op in unaries]
        values += [cast(load(x, i), target) for target in dtypes.NUMPY]
        return block(*(store(z, (i,), value) for z, value in zip(out, values, strict=True)))

    found = [np.empty(z.shape, dtypes.NUMPY[z.dtype]) for z in out]
    interpret(Function("f", (x, y, *out), len(out), loop("i", a.size, body)), [a, b, *found])
    with np.errstate(all="ignore"):
        expected = [apply(op, (a, b), dtype, "bool" if BINARY[op].boolean else dtype) for op in binaries]
        expected += [apply(op, (a,), dtype, dtype) for op in unaries]
        expected += [convert(a, target) for target in dtypes.NUMPY]
    for buffer, ours, theirs in zip(out, found, expected, strict=True):
        wide = "float64" if dtypes.is_float(buffer.dtype) else ours.dtype
        # numpy may compute functions in another way for arrays than for one number.
        np.testing.assert_allclose(
            ours.astype(wide), theirs.astype(wide), rtol=1e-6 if wide == "float64" else 0, err_msg=buffer.name
        )


@pytest.mark.parametrize("kind", BINDINGS)
def test_bound_loops_run_in_any_order(kind: LoopKind) -> None:
    y = argument("Y", 64)
    last = Function("last", (y,), 1, loop("i", 64, lambda i: store(y, (i * 0,), cast(i, "float32")), kind))
    out = np.zeros(64, np.float32)
    interpret(last, [out])
    assert out[0] == 63
    interpret(last, [out], reorder=np.random.default_rng(0))
    assert out[0] != 63
