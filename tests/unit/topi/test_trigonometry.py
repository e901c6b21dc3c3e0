"""Trigonometric functions against numpy's, over their whole domains, and compiled."""

from __future__ import annotations

import numpy as np
import pytest

from ansorlite.programs.kernels import compile_candidate
from ansorlite.sketch.candidate import NAIVE
from ansorlite.task import Task
from ansorlite.te import placeholder
from ansorlite.te.dag import ComputeDAG
from ansorlite.te.evaluate import evaluate
from ansorlite.topi import trigonometry as topi

_EVERYWHERE = np.concatenate([-np.geomspace(1e-30, 1e5, 4000), [0.0], np.geomspace(1e-30, 1e5, 4000)])
_UNIT = np.concatenate([np.linspace(-1, 1, 4001), np.geomspace(1e-30, 1, 2000)])

CASES = {
    "sin": (topi.sin, _EVERYWHERE),
    "cos": (topi.cos, _EVERYWHERE),
    "tan": (topi.tan, _EVERYWHERE),
    "arcsin": (topi.asin, _UNIT),
    "arccos": (topi.acos, _UNIT),
    "arctan": (topi.atan, _EVERYWHERE),
    "sinh": (topi.sinh, np.clip(_EVERYWHERE, -80, 80)),
    "cosh": (topi.cosh, np.clip(_EVERYWHERE, -80, 80)),
    "arcsinh": (topi.asinh, _EVERYWHERE),
    "arccosh": (topi.acosh, 1 + np.geomspace(1e-7, 1e20, 4000)),
    "arctanh": (topi.atanh, np.clip(_UNIT, -0.9999, 0.9999)),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 1.3e-7), ("float64", 2e-14)])
def test_against_numpy(name, dtype, tolerance):
    operator, points = CASES[name]
    given = points.astype(dtype)
    x = placeholder(given.shape, dtype)
    (found,) = evaluate(ComputeDAG.of([x, operator(x)]), [given])
    assert found.dtype == dtype
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(given.astype(np.longdouble))
    # Near the zeros of sin and cos float64 leaves fewer digits than it has.
    np.testing.assert_allclose(found, expected.astype(dtype), rtol=tolerance, atol=1e-11 if name in ("cos", "sin", "tan") else 0)


@pytest.mark.parametrize("name", ["sin", "cos"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_of_any_number_the_result_is_that_of_some_angle(name, dtype):
    points = np.concatenate([np.geomspace(1e5, 1e38, 500), -np.geomspace(1e5, 1e38, 500)]).astype(dtype)
    x = placeholder(points.shape, dtype)
    (found,) = evaluate(ComputeDAG.of([x, CASES[name][0](x)]), [points])
    assert np.abs(found).max() <= 1


@pytest.mark.parametrize("name", ["sin", "arctan", "arcsinh"])
def test_compiled(name):
    operator, points = CASES[name]
    given = np.concatenate([points, [np.inf, -np.inf, np.nan]]).astype(np.float32)
    x = placeholder(given.shape)
    task = Task([x, operator(x)])
    (expected,) = evaluate(task.dag, [given])
    np.testing.assert_allclose(compile_candidate(task, NAIVE)(given), expected, rtol=2e-7, atol=1e-9)
