"""Which sums of products are products of matrices, and of which axes; and what they are when they have become such."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from ansorlite import te
from ansorlite.analysis.matrix import MatrixProduct, fitting_units, matrix_product
from ansorlite.machine.matrix import AMPERE, HOPPER, UNITS
from ansorlite.rewrites.matrix import FactorLayout, FactorStage, matrix_form
from ansorlite.te.dag import ComputeDAG
from ansorlite.te.evaluate import evaluate
from ansorlite.te.tensor import Tensor
from tests.products import PRODUCTS, attention_scores, convolution, product, sums_of
from tests.strategies import arrays_for, assert_close


def summed(dag: ComputeDAG) -> Tensor:
    return next(stage for stage in dag.computes if stage.reduce_axes)


def found(dag: ComputeDAG, dtype: str = "float16") -> MatrixProduct:
    how = matrix_product(summed(dag), dtype, sums_of(dtype))
    assert how is not None
    return how


def names(how: MatrixProduct) -> tuple[list[str], ...]:
    return tuple([axis.name for axis in axes] for axes in (how.rows, how.columns, how.batch, how.inner))


def test_axes_of_a_batch_of_products() -> None:
    z, i, j = (axis.name for axis in summed(product(32, 16, 8, "float16", batch=3)).axes)
    assert names(found(product(32, 16, 8, "float16", batch=3))) == ([i], [j], [z], ["r"])


def test_a_batch_may_be_any_dimension() -> None:
    h, i, j = (axis.name for axis in summed(attention_scores(2, 20, 16, 24)).axes)
    assert names(found(attention_scores(2, 20, 16, 24))) == ([i], [j], [h], ["r"])


@pytest.mark.parametrize(("last", "inner"), [(True, ["ry", "rx", "rc"]), (False, ["rc", "ry", "rx"])])
def test_windows_are_rows_or_columns_and_steps(last: bool, inner: list[str]) -> None:
    """The data is that of the columns where its dimensions come last; steps that lie side by side are the last ones."""
    dag = convolution(2, 8, 7, 16, 3, "float16", last=last)
    b, *rest = (axis.name for axis in summed(dag).axes)
    data, filters = ([b, *rest[:2]], rest[2:]) if last else ([b, *rest[1:]], rest[:1])
    assert names(found(dag)) == ((data, filters) if last else (filters, data)) + ([], inner)


def of(body: Callable[[te.Expr, te.Expr], te.Expr], dtype: str = "float16") -> Tensor:
    a, b = te.placeholder((32, 32), dtype=dtype, name="A"), te.placeholder((32, 32), dtype=dtype, name="B")
    k = te.reduce_axis(32, name="k")
    return te.compute((32, 32), lambda i, j: te.sum(body(a[i, k], b[k, j]), axis=k), name="C")


def wide(x: te.Expr) -> te.Expr:
    return te.cast(x, "float32")


@pytest.mark.parametrize(
    "body",
    [
        lambda a, b: wide(a) * wide(b),
        lambda a, b: wide(te.maximum(a, 0.0)) * wide(b),
        lambda a, b: wide(te.if_then_else(a > 0.0, a, 0.0)) * wide(b * 0.5),
    ],
)
def test_factors_are_whatever_is_converted_at_last(body: Callable[[te.Expr, te.Expr], te.Expr]) -> None:
    assert matrix_product(of(body), "float16", "float32") is not None


@pytest.mark.parametrize(
    "body",
    [
        lambda a, b: wide(a * b),
        lambda a, b: wide(a) + wide(b),
        lambda a, b: wide(a) * (wide(b) + 1.0),
        lambda a, b: wide(a) * wide(b) * 2.0,
        lambda a, b: te.maximum(wide(a) * wide(b), 0.0),
        lambda a, b: wide(a + b) * wide(b),
        lambda a, _: wide(a) * wide(a),
        lambda a, b: a * b,
    ],
)
def test_what_is_no_product_of_matrices(body: Callable[[te.Expr, te.Expr], te.Expr]) -> None:
    assert matrix_product(of(body), "float16", "float32") is None
    assert matrix_product(of(body), "bfloat16", "float32") is None


def test_units_by_dtypes_and_extents() -> None:
    def fitting(dag: ComputeDAG) -> list[str]:
        return [unit.name for unit, _ in fitting_units(summed(dag), HOPPER)]

    assert fitting(product(64, 64, 64, "float16")) == ["wgmma.m64k16.f16", "mma.m16n8k16.f16"]
    assert fitting(product(64, 64, 64, "int8")) == ["wgmma.m64k32.s8", "mma.m16n8k32.s8"]
    assert fitting(product(64, 64, 64, "float32")) == []
    assert fitting(product(15, 64, 64, "float16")) == []
    assert fitting(product(64, 7, 64, "float16")) == []
    assert fitting(product(64, 64, 8, "float16")) == []
    assert {unit.name for unit in AMPERE} <= set(UNITS)


@pytest.mark.parametrize("layout", FactorLayout)
@pytest.mark.parametrize("name", [name for name in PRODUCTS if name != "float16, nothing follows"])
def test_matrix_form_is_the_same_computation(name: str, layout: FactorLayout) -> None:
    """Of what another stage reads; rules give one to those that none reads."""
    dag = PRODUCTS[name]()
    made = (FactorStage("left", layout), FactorStage("right", layout))
    after = matrix_form(dag, summed(dag).name, found(dag, dag.inputs[0].dtype), 8, made)
    inputs = arrays_for(dag, np.random.default_rng(1))
    results = [array.reshape(t.shape) for array, t in zip(_on(after, inputs), dag.outputs, strict=True)]
    assert_close(dag, results, evaluate(dag, inputs))


def _on(dag: ComputeDAG, inputs: list[np.ndarray]) -> list[np.ndarray]:
    """With inputs whose dimensions may have become one."""
    return evaluate(dag, [array.reshape(t.shape) for array, t in zip(inputs, dag.inputs, strict=True)])


def test_dimensions_of_windows_become_one_with_all_that_read_them() -> None:
    """But not where something else has them apart."""
    n, c, size = 2, 8, 6
    x = te.placeholder((n, size, size, c), dtype="float16", name="X")
    w = te.placeholder((c, c), dtype="float16", name="W")
    residual = te.placeholder((n, size, size, c), name="R")
    k = te.reduce_axis(c, name="k")
    conv = te.compute((n, size, size, c), lambda b, y, z, f: te.sum(wide(x[b, y, z, k]) * wide(w[k, f]), axis=k), name="conv")
    apart = te.compute(conv.shape, lambda *at: conv[at] + residual[at], name="apart")
    again = te.compute(conv.shape, lambda *at: conv[at] + wide(x[at]), name="again")
    transposed = te.compute((n, size, size, c), lambda b, y, z, f: conv[b, z, y, f], name="transposed")
    for end, inputs, shape in (
        (apart, [x, w, residual], (n * size * size, c)),
        (again, [x, w], (n, size, size, c)),
        (transposed, [x, w], (n, size, size, c)),
    ):
        dag = ComputeDAG.of([*inputs, end])
        made = (FactorStage("left", FactorLayout.STEPS_LAST), FactorStage("right", FactorLayout.STEPS_FIRST))
        after = matrix_form(dag, "conv", found(dag), 8, made)
        assert summed(after).shape == shape
        arrays = arrays_for(dag, np.random.default_rng(2))
        assert_close(dag, [array.reshape(end.shape) for array in _on(after, arrays)], evaluate(dag, arrays))
