import pytest

from ansorlite import te
from ansorlite.te.dag import ComputeDAG
from ansorlite.te.printer import text
from tests import workloads

A = te.placeholder((8, 8), name="A")
N = te.placeholder((8,), "int32", name="N")
F = te.placeholder((8,), "bool", name="F")
a, b, n, f = A[0, 0], A[1, 1], N[2], F[3]


@pytest.mark.parametrize(
    ("expr", "expected"),
    [
        ((a + b) * 2.0, "(A[0, 0] + A[1, 1]) * 2.0"),
        (a + b * 2.0, "A[0, 0] + A[1, 1] * 2.0"),
        (a - (b - a), "A[0, 0] - (A[1, 1] - A[0, 0])"),
        (a - b - a, "A[0, 0] - A[1, 1] - A[0, 0]"),
        (a / (b * a), "A[0, 0] / (A[1, 1] * A[0, 0])"),
        (-(a + b), "-(A[0, 0] + A[1, 1])"),
        (-a * b, "-A[0, 0] * A[1, 1]"),
        (-te.cast(1, "float32"), "-(1.0)"),
        ((a < b) == f, "(A[0, 0] < A[1, 1]) == F[3]"),
        (te.all(a < b, te.any(f, a > 0.0)), "A[0, 0] < A[1, 1] and (F[3] or A[0, 0] > 0.0)"),
        (~f, "not(F[3])"),
        (n // 3 % 2 << 1, "N[2] // 3i32 % 2i32 << 1i32"),
        ((n & 3) | 1, "N[2] & 3i32 | 1i32"),
        (te.if_then_else(f, te.exp(a), -0.0), "if_then_else(F[3], exp(A[0, 0]), -0.0)"),
        (te.cast(n, "float64") + 0.1, "float64(N[2]) + 0.1f64"),
        (te.power(a, b), "pow(A[0, 0], A[1, 1])"),
        (te.minimum(a, float("inf")), "min(A[0, 0], inf)"),
    ],
)
def test_expressions(expr, expected):
    assert text(expr) == expected


def test_tensor_and_dag():
    tensors = workloads.matmul(4, 5, 6)
    assert text(tensors[2]) == "C[i, j] = sum(A[i, k] * B[k, j], k in 0..6)"
    assert text(ComputeDAG.of(tensors)).splitlines() == [
        "A: float32[4, 6]",
        "B: float32[6, 5]",
        "C[i, j] = sum(A[i, k] * B[k, j], k in 0..6) for i in 0..4, j in 0..5",
        "return C",
    ]


def test_equal_names_are_told_apart():
    x, y = te.placeholder((4,), name="T"), te.placeholder((4,), name="T")
    i = te.reduce_axis(4, name="i")
    z = te.compute((4,), lambda i_: te.sum(x[i] * y[i_], axis=i), name="T")
    w = te.compute((4,), lambda i: z[i])
    assert text(ComputeDAG.of([x, y, w])).splitlines()[2] == ("T_2[i_] = sum(T[i] * T_1[i_], i in 0..4) for i_ in 0..4")
    k = te.reduce_axis(4, name="j")
    clash = te.compute((4,), lambda j: te.sum(x[k] * y[j], axis=k), name="C")
    assert text(clash) == "C[j] = sum(T[j_1] * T[j], j_1 in 0..4)"


def test_shared_subexpressions_are_named():
    shared = te.exp(a + b) * 0.5
    assert text(shared * shared) == "x0 * x0 where x0 = exp(A[0, 0] + A[1, 1]) * 0.5"
