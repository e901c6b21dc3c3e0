import copy

import pytest
from hypothesis import given, settings

from ansorlite import te
from ansorlite.errors import ExpressionError
from ansorlite.te.dag import ComputeDAG
from ansorlite.te.serialize import dump, load
from tests import workloads
from tests.strategies import dags


def key(tensors):
    return ComputeDAG.of(tensors).key


def test_tensors_are_inputs_in_call_order_then_producers_first():
    a, b, bias, out = workloads.matmul_bias_relu(4, 5, 6)
    dag = ComputeDAG.of([bias, b, a, out])
    assert dag.inputs == (bias, b, a)
    assert [t.name for t in dag.tensors] == ["bias", "B", "A", "C", "D", "E"]
    assert [t.name for t in dag.computes] == ["C", "D", "E"]
    assert dag.outputs == (out,)


def test_producers_and_consumers():
    a, _, out = tensors = workloads.diamond(4, 5, 6)
    dag = ComputeDAG.of(tensors)
    c, left, right, _ = dag.computes
    assert dag.producers(c) == tuple(tensors[:2])
    assert dag.producers(a) == ()
    assert dag.producers(out) == (left, right)
    assert dag.consumers(c) == (left, right)
    assert dag.consumers(out) == ()


@settings(deadline=None, max_examples=50)
@given(dags())
def test_order_and_relations_agree(dag):
    position = {t: n for n, t in enumerate(dag.tensors)}
    assert len(position) == len(dag.tensors)
    for t in dag.tensors:
        assert all(position[p] < position[t] and t in dag.consumers(p) for p in dag.producers(t))
        assert all(t in dag.producers(c) for c in dag.consumers(t))


def test_an_output_may_be_read_by_another_and_an_input_by_none():
    a, b, c, d = workloads.two_outputs(4, 5, 6)
    unread = te.placeholder((3,), name="U")
    dag = ComputeDAG.of([a, unread, b, d, c])
    assert dag.inputs == (a, unread, b)
    assert dag.outputs == (d, c)
    assert dag.computes == (c, d)


def test_wrong_argument_lists():
    a, b, c = workloads.matmul(4, 5, 6)
    for tensors, message in [
        ([a, c], "input B is read but is not among the arguments"),
        ([a, b], r"needs at least one te\.compute"),
        ([], r"needs at least one te\.compute"),
        ([a, c, b], "input B comes after output C"),
        ([a, a, b, c], "A is given twice"),
        ([a, b, c, c], "C is given twice"),
        ([a, b, c[0, 0]], "argument 2 is .* not a tensor"),
    ]:
        with pytest.raises(ExpressionError, match=message):
            ComputeDAG.of(tensors)


def test_a_cycle_is_found():
    a = te.placeholder((4,), name="A")
    b = te.compute((4,), lambda i: a[i] + 1.0, name="B")
    c = te.compute((4,), lambda i: b[i] + 1.0, name="C")
    object.__setattr__(b, "body", c[b.axes[0]] + 1.0)
    with pytest.raises(ExpressionError, match="depends on itself"):
        ComputeDAG.of([a, c])


@pytest.mark.parametrize(
    ("tensors", "flops"),
    [
        (workloads.matmul(8, 9, 10), 2 * 8 * 9 * 10),
        (workloads.matmul_bias_relu(8, 9, 10), 2 * 8 * 9 * 10 + 2 * 8 * 9),
        # The padding is a select each; its conditions and all indices are free.
        (workloads.conv2d(1, 3, 8, 8, 4), 2 * 4 * 64 * 27 + 3 * 100),
        (workloads.int8_matmul(8, 9, 10), 2 * 8 * 9 * 10),
        (workloads.softmax(8, 9), 8 * 9 * (1 + 2 + 1 + 1)),
        (workloads.sum_of_squares(100), 200),
        (workloads.transpose_add(8, 9), 72),
    ],
)
def test_flops(tensors, flops):
    assert ComputeDAG.of(tensors).flops == flops


def test_flops_count_a_shared_operation_once():
    a = te.placeholder((4,))
    b = te.compute((4,), lambda i: te.exp(a[i]) + te.exp(a[i]) * te.exp(a[i]))
    assert ComputeDAG.of([a, b]).flops == 4 * 3


def test_keys_are_readable():
    assert key(workloads.matmul_relu(4, 5, 6)) == (
        "a0 float32[4x6]; a1 float32[6x5]; t0[4x5] = sum(a0[i0, k0] * a1[k0, i1], k0 in 0..6); "
        "t1[4x5] = max(t0[i0, i1], 0.0); return t1"
    )


def _renamed(data):
    data = copy.deepcopy(data)
    for number, tensor in enumerate(data["tensors"]):
        tensor["name"] = f"z{number % 2}"
        tensor["axes"] = ["q" for _ in tensor["axes"]] if "axes" in tensor else None
        if "reduce" in tensor:
            tensor["reduce"]["axes"] = [["q", extent] for _, extent in tensor["reduce"]["axes"]]
    return data


@settings(deadline=None, max_examples=60)
@given(dags())
def test_names_do_not_enter_the_key(dag):
    assert load(_renamed(dump(dag))).key == dag.key


@settings(deadline=None, max_examples=60)
@given(dags(), dags())
def test_keys_are_equal_exactly_for_equal_structure(one, other):
    assert (one.key == other.key) == (_renamed(dump(one)) == _renamed(dump(other)))


def _variant(shape=(4,), dtype="float32", constant=1.0, body=lambda x, y: (x + y) * 0.5, swapped=False):
    a, b = te.placeholder(shape, dtype, "A"), te.placeholder(shape, dtype, "B")
    c = te.compute(shape, lambda i: body(a[i], b[i]) + constant, name="C")
    return key([b, a, c] if swapped else [a, b, c])


def test_whatever_matters_is_in_the_key():
    keys = [
        _variant(),
        _variant(shape=(5,)),
        _variant(dtype="float64"),
        _variant(constant=-0.0),
        _variant(constant=0.0),
        _variant(constant=float("nan")),
        _variant(constant=1.0000001),
        _variant(swapped=True),
        _variant(body=lambda x, y: x + y * 0.5),
        _variant(body=lambda x, y: te.maximum(x, y)),
        _variant(body=lambda x, y: x + (y + 0.5)),
        _variant(body=lambda x, y: (x + y) + 0.5),
        _variant(body=lambda x, _: te.cast(te.cast(x, "float16"), "float32")),
        _variant(body=lambda x, _: te.cast(te.cast(x, "bfloat16"), "float32")),
    ]
    assert len(set(keys)) == len(keys)
    assert _variant(constant=float("nan")) == _variant(constant=float("nan"))


def test_output_order_and_reduce_order_matter():
    a, b, c, d = workloads.two_outputs(4, 5, 6)
    assert key([a, b, c, d]) != key([a, b, d, c]) != key([a, b, d])


def test_a_long_key_is_cut_and_ends_in_a_hash_of_all_of_it():
    a = te.placeholder((4,), name="A")

    def chain(last):
        body = a[0]
        for step in range(60):
            body = body * (1.0 + step) + 0.5
        return key([a, te.compute((4,), lambda i: body + a[i] * last)])

    assert len(chain(1.0)) <= 400
    assert chain(1.0) == chain(1.0)
    assert chain(1.0) != chain(2.0)
    assert "... sha256:" in chain(1.0)


def test_shared_subexpressions_do_not_blow_up_the_key():
    a = te.placeholder((4,), name="A")

    def squared(times):
        body = a[0]
        for _ in range(times):
            body = body * body
        return key([a, te.compute((4,), lambda i: body + a[i])])

    assert squared(100) != squared(101)


def test_a_constant_input_makes_another_task():
    def key(constant: bool) -> str:
        a, b = te.placeholder((4,), name="A"), te.placeholder((4,), name="B", constant=constant)
        return ComputeDAG.of([a, b, te.compute((4,), lambda i: a[i] * b[i])]).key

    assert key(True) != key(False)
    assert "a1 constant float32[4]" in key(True)
