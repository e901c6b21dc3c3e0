from ansorlite import te
from ansorlite.target import host
from ansorlite.task import Task
from ansorlite.task_scheduler import describe


def matmul(m: int, n: int, k: int, name: str = "C") -> Task:
    a, b = te.placeholder((m, k), name="A"), te.placeholder((k, n), name="B")
    axis = te.reduce_axis(k)
    c = te.compute((m, n), lambda i, j: te.sum(a[i, axis] * b[axis, j], axis=axis), name=name)
    return Task([a, b, c], host())


def rows_of(m: int, n: int) -> Task:
    a = te.placeholder((m, n), name="A")
    axis = te.reduce_axis(n)
    return Task([a, te.compute((m,), lambda i: te.max(a[i, axis], axis=axis), name="M")], host())


def test_what_is_known_of_a_task() -> None:
    info = describe(matmul(64, 32, 16), (3.0,))
    assert info.uses == (3.0,)
    assert info.flops == 2 * 64 * 32 * 16


def test_similar_are_equal_reductions_of_near_size() -> None:
    tag = describe(matmul(64, 64, 64)).tag
    assert describe(matmul(32, 128, 64, "other")).tag == tag
    assert describe(matmul(128, 128, 128)).tag != tag
    assert describe(rows_of(64, 8192)).tag != tag
    assert hash(tag) == hash(describe(matmul(64, 64, 64)).tag)
