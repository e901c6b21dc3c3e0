"""The contracts on sums of products of small numbers, for machines that have dot products of words.

The extents are no multiples of a word, the values are the largest there are, and every machine's choice of words is run: what has
instructions that this processor lacks, with stand-ins for them (``tests/stand_ins.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansorlite import te
from ansorlite.sketch.tile_space import TileSpace
from ansorlite.spaces.derivation import derive
from ansorlite.target import NAMED as TARGETS
from ansorlite.target import Target
from ansorlite.task import Task
from ansorlite.te import dtypes
from ansorlite.te.dag import ComputeDAG
from ansorlite.te.evaluate import evaluate
from ansorlite.te.ops import DOTS, BinaryOp
from tests import workloads
from tests.contracts import test_canonical_key, test_fast_features, test_replay, test_right_numbers, test_total_decode
from tests.contracts.cases import budget, seeds, sketches_of, times
from tests.contracts.test_right_numbers import HOST
from tests.targets import NARROW, WIDE

#: Machines, by the dot products that they have.
MACHINES: Final[Mapping[str, Target]] = {
    "halves": replace(WIDE, features="+sse2,+avx2,+avx512bw"),
    "bytes": replace(WIDE, features="+sse2,+avx512vnni"),
    "small bytes": replace(WIDE, features="+sse2,+ssse3,+avx2,+avx512bw"),
    "bytes of one sign": replace(NARROW, features="+dotprod"),
    "matrix units": replace(WIDE, features="+sse2,+avx512vnni,+amx-tile,+amx-int8"),
}
#: Machines with dot products of bfloat16, too.
X86, ARM = (replace(TARGETS[name], threads=2) for name in ("x86-64-v4+bf16", "aarch64+bf16"))
FLOATS: Final[Mapping[str, Target]] = {"x86": X86, "arm": ARM, "this": HOST}
#: What the programs for a machine are compiled for, where that is not this one, which multiplies piece by piece what it must.
COMPILED_FOR: Final[Mapping[str, Target]] = {"bytes": X86, "small bytes": X86, "bytes of one sign": ARM}
PAIRS: Final = (("uint8", "int8"), ("uint8", "uint8"), ("int8", "int8"), ("int8", "uint8"), ("int16", "int8"))


def relu_of_product() -> list[te.Tensor]:
    a, b, c = workloads.quantised_matmul(6, 10, 9)
    return [a, b, te.compute((6, 10), lambda i, j: te.maximum(c[i, j], 0), name="D")]


def square() -> list[te.Tensor]:
    """Both factors are of one tensor, which has a name that words might have been given."""
    a = te.placeholder((7, 10), "uint8", name="C_a")
    k = te.reduce_axis(10, name="k")
    body = lambda i, j: te.sum(te.cast(a[i, k], "int32") * te.cast(a[j, k], "int32"), axis=k)  # noqa: E731
    return [a, te.compute((7, 7), body, name="C")]


NAMED: Final[Mapping[str, Callable[[], list[te.Tensor]]]] = {
    "product": lambda: workloads.quantised_matmul(9, 16, 8),
    "product of unsigned bytes": lambda: workloads.quantised_matmul(6, 11, 7, ("uint8", "uint8")),
    "product of signed bytes": lambda: workloads.quantised_matmul(6, 11, 7, ("int8", "int8")),
    "product of small bytes": lambda: workloads.quantised_matmul(6, 19, 11, most=64),
    "product, zero points": lambda: workloads.quantised_matmul(6, 7, 11, ("uint8", "int8"), (128, -3)),
    "product, a zero point for each column": workloads.quantised_matmul_by_columns,
    "product and relu": relu_of_product,
    "square": square,
    "convolution": lambda: workloads.quantised_conv2d(6, 4, 5, 4),
    "convolution, strided, zero point": lambda: workloads.quantised_conv2d(4, 5, 5, 4, stride=2, zero=7),
    "convolution, zero point apart": workloads.quantised_conv2d_apart,
    "convolution of blocks": workloads.quantised_conv2d_in_blocks,
    "convolution of blocks without a border": lambda: workloads.quantised_conv2d_in_blocks(border=0),
}


def relu_of_floats() -> list[te.Tensor]:
    """A factor that is a function of the element, in bfloat16; what is stored is rounded to that."""
    a, b = te.placeholder((6, 10), "bfloat16", name="A"), te.placeholder((10, 9), "bfloat16", name="B")
    k = te.reduce_axis(10, name="k")
    relu = te.compute((6, 10), lambda i, j: te.maximum(a[i, j] * 2.0, 0.0), name="relu")
    body = lambda i, j: te.sum(te.cast(relu[i, k], "float32") * te.cast(b[k, j], "float32"), axis=k)  # noqa: E731
    c = te.compute((6, 9), body, name="C")
    return [a, b, te.compute((6, 9), lambda i, j: te.cast(c[i, j], "bfloat16"), name="D")]


def square_of_floats() -> list[te.Tensor]:
    a = te.placeholder((7, 10), "bfloat16", name="A")
    k = te.reduce_axis(10, name="k")
    body = lambda i, j: te.sum(te.cast(a[i, k], "float32") * te.cast(a[j, k], "float32"), axis=k)  # noqa: E731
    return [a, te.compute((7, 7), body, name="C")]


NAMED_FLOATS: Final[Mapping[str, Callable[[], list[te.Tensor]]]] = {
    "product": lambda: workloads.widened_matmul(9, 16, 8),
    "product of an odd length": lambda: workloads.widened_matmul(6, 11, 7),
    "relu, product, rounded": relu_of_floats,
    "square": square_of_floats,
    "convolution, odd": lambda: workloads.widened_conv2d(5, 4, 3, 4),
    "convolution of blocks": lambda: workloads.widened_conv2d(8, 3, 4, block=4),
    "convolution of blocks without a border": lambda: workloads.widened_conv2d(8, 4, 4, block=4, pad=0),
}

#: Every computation in halves, which most of them need; and some in bytes.
CASES: Final = [
    *((name, "halves") for name in NAMED),
    ("product", "bytes"),
    ("product of small bytes", "small bytes"),
    ("product, zero points", "bytes"),
    ("convolution", "bytes"),
    ("convolution of blocks", "bytes"),
    ("convolution of blocks without a border", "bytes"),
    ("product of signed bytes", "bytes of one sign"),
    ("square", "bytes of one sign"),
    ("product of signed bytes", "matrix units"),
]
machines = pytest.mark.parametrize("machine", MACHINES)


def chosen(dag: ComputeDAG, target: Target) -> set[BinaryOp]:
    """The dot products in the task's sketches."""
    every = [op for sketch in derive(Task(dag, target)) for op in DOTS if op.value in sketch.text]
    return set(every)


@pytest.mark.parametrize(("name", "machine"), CASES)
def test_named_computations(name: str, machine: str) -> None:
    dag, target = ComputeDAG.of(NAMED[name]()), MACHINES[machine]
    test_total_decode.check(dag, target, times(4), seed=1)
    test_canonical_key.collisions(dag, target, times(4), seed=2)
    test_fast_features.check(dag, target, times(3), seed=3)
    test_right_numbers.check(dag, target, times(2), times(1), seed=4, machine=COMPILED_FOR.get(machine, HOST))
    test_replay.check(dag, target, times(1), seed=5)


@pytest.mark.parametrize(("name", "machine"), [*((name, "x86") for name in NAMED_FLOATS), ("product", "arm")])
def test_named_computations_of_floats(name: str, machine: str) -> None:
    dag, target = ComputeDAG.of(NAMED_FLOATS[name]()), FLOATS[machine]
    test_total_decode.check(dag, target, times(2), seed=1)
    test_canonical_key.collisions(dag, target, times(2), seed=2)
    test_fast_features.check(dag, target, times(2), seed=3)
    test_right_numbers.check(dag, target, times(1), times(1), seed=4, machine=target)
    test_replay.check(dag, target, times(1), seed=5)


def test_boxes_that_are_shifted_inwards_are_described() -> None:
    """The last ones of a reduction whose words do not divide its loop."""
    dag = ComputeDAG.of(workloads.quantised_conv2d(6, 9, 9, 4, stride=2))
    test_fast_features.check(dag, MACHINES["bytes"], times(40), seed=0)


def test_named_computations_are_done_in_words() -> None:
    for name, make in NAMED.items():
        assert chosen(ComputeDAG.of(make()), MACHINES["halves"]) == {BinaryOp.DOT_S16S16}, name
    assert chosen(ComputeDAG.of(NAMED["product"]()), MACHINES["bytes"]) == {BinaryOp.DOT_U8S8}
    assert chosen(ComputeDAG.of(NAMED["product of small bytes"]()), MACHINES["small bytes"]) == {BinaryOp.DOT_U8S7}
    for machine in ("bytes of one sign", "matrix units"):
        assert chosen(ComputeDAG.of(NAMED["square"]()), MACHINES[machine]) == {BinaryOp.DOT_U8U8}
        assert chosen(ComputeDAG.of(NAMED["product of signed bytes"]()), MACHINES[machine]) == {BinaryOp.DOT_S8S8}
    for name, make in NAMED_FLOATS.items():
        for target in (X86, ARM):
            assert chosen(ComputeDAG.of(make()), target) == {BinaryOp.DOT_BF16}, name


@pytest.mark.parametrize("most", [None, 64])
@pytest.mark.parametrize("pair", PAIRS)
@machines
def test_extreme_values_are_exact(machine: str, pair: tuple[str, str], most: int | None) -> None:
    """Nothing saturates: the products of the least and greatest values there are, summed over a whole row."""
    dag = ComputeDAG.of(workloads.quantised_matmul(6, 33, 67, pair, most=most))
    limits = [np.iinfo(dtype) for dtype in pair]
    rng = np.random.default_rng(7)
    inputs = [
        rng.choice([info.min, info.max, 0, 1], shape, p=[0.45, 0.45, 0.05, 0.05]).astype(info.dtype)
        for info, shape in zip(limits, ((6, 67), (67, 33)), strict=True)
    ]
    inputs[0][0], inputs[1][:, 0] = limits[0].max, limits[1].min
    inputs[0][1], inputs[1][:, 1] = limits[0].min, limits[1].max
    expected = evaluate(dag, inputs)
    for sketch in derive(Task(dag, MACHINES[machine])):
        for row in TileSpace(sketch).sample(2, rng):
            found = test_right_numbers.compiled(dag, sketch.lower(row), inputs, COMPILED_FOR.get(machine, HOST))
            if found is not None:
                np.testing.assert_array_equal(found[0], expected[0])


@pytest.mark.parametrize("machine", FLOATS)
@pytest.mark.parametrize("k", [7, 90])
def test_sums_of_bfloat16_are_as_near_as_sums_of_float32(machine: str, k: int) -> None:
    """Within what the order of additions, each rounded in float32, explains; whichever instructions add."""
    m, n, target = 5, 19, FLOATS[machine]
    dag = ComputeDAG.of(workloads.widened_matmul(m, n, k))
    rng = np.random.default_rng(k)
    numbers = [rng.standard_normal(t.shape) * np.exp(rng.uniform(-9, 9, t.shape)) for t in dag.inputs]
    inputs = [array.astype(dtypes.NUMPY["bfloat16"]) for array in numbers]
    wide = [array.astype(np.float64) for array in inputs]
    exact, magnitude = wide[0] @ wide[1], abs(wide[0]) @ abs(wide[1])
    for sketch in sketches_of(dag, target, rng):
        for row in TileSpace(sketch).sample(1, rng):
            function = sketch.lower(row)
            for found in (
                test_right_numbers.interpreted(dag, function, inputs, None),
                test_right_numbers.compiled(dag, function, inputs, target),
            ):
                if found is not None:
                    assert (abs(found[0] - exact) <= 1.01 * (k + 2) * 2.0**-24 * magnitude).all()


@pytest.mark.parametrize("machine", ["x86", "arm"])
def test_what_no_sum_of_products_rounds_away(machine: str) -> None:
    """Infinity, NaN, and subnormal numbers, which count as 0 in dot products; in the interpreter as in what is compiled."""
    dag = ComputeDAG.of(workloads.widened_matmul(8, 33, 7))
    rng = np.random.default_rng(3)
    special = np.array([np.inf, -np.inf, np.nan, 0.0, -0.0, 1e-39, -1e-40, 3e38, 1.0, -2.0])
    rows, columns = (np.ones(t.shape).astype(dtypes.NUMPY[t.dtype]) for t in dag.inputs)
    rows[:, 2], columns[2] = special[:8].astype(rows.dtype), rng.choice(special, 33).astype(rows.dtype)
    flushed = [np.where(abs(x.astype(np.float64)) < 2.0**-126, 0, x.astype(np.float64)) for x in (rows, columns)]
    with np.errstate(all="ignore"):
        expected = (flushed[0][:, :, None] * flushed[1][None]).sum(1).astype(np.float32)
    for sketch in derive(Task(dag, FLOATS[machine])):
        for row in TileSpace(sketch).sample(1, rng):
            function = sketch.lower(row)
            np.testing.assert_allclose(test_right_numbers.interpreted(dag, function, [rows, columns], None)[0], expected, 1e-6)
            found = test_right_numbers.compiled(dag, function, [rows, columns], FLOATS[machine])
            if found is not None:
                np.testing.assert_allclose(found[0], expected, 1e-6)


extents = st.sampled_from((1, 2, 3, 4, 5, 7, 8, 11, 16, 17))


@budget(6)
@given(
    st.tuples(extents, extents, extents),
    st.sampled_from(PAIRS),
    st.tuples(st.integers(-128, 255), st.integers(-128, 255)),
    st.sampled_from((None, 64, 65)),
    st.sampled_from(tuple(MACHINES.values())),
    seeds,
)
def test_random_products(
    shape: tuple[int, int, int], pair: tuple[str, str], zeros: tuple[int, int], most: int | None, target: Target, seed: int
) -> None:
    dag = ComputeDAG.of(workloads.quantised_matmul(*shape, pair, zeros, most))
    test_total_decode.check(dag, target, 2, seed)
    test_canonical_key.collisions(dag, target, 2, seed)
    test_fast_features.check(dag, target, 2, seed)
    test_right_numbers.check(dag, target, 1, 1, seed)
    test_replay.check(dag, target, 1, seed)


@budget(4)
@given(st.tuples(extents, extents, extents), st.sampled_from((X86, X86, ARM)), seeds)
def test_random_products_of_floats(shape: tuple[int, int, int], target: Target, seed: int) -> None:
    dag = ComputeDAG.of(workloads.widened_matmul(*shape))
    test_total_decode.check(dag, target, 2, seed)
    test_canonical_key.collisions(dag, target, 2, seed)
    test_fast_features.check(dag, target, 2, seed)
    test_right_numbers.check(dag, target, 1, 1, seed, machine=target)
    test_replay.check(dag, target, 1, seed)
