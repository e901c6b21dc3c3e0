"""What needs more memory than there is says so before anything is allocated."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import ansorlite as al
from ansorlite import te
from ansorlite.errors import AnsorliteError, MemoryLimitError
from ansorlite.programs.kernels import compile_candidate
from ansorlite.runtime import host, memory
from ansorlite.runtime.host import HostSpace
from ansorlite.runtime.workspace import WorkspacePool
from ansorlite.sketch.candidate import NAIVE
from tests.workloads import matmul

N = 200_000
GIB = 1 << 30


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "machine_bytes", lambda: 16 * GIB)


def test_what_the_tuner_says_of_it(tmp_path: Path) -> None:
    with pytest.raises(MemoryLimitError, match="this needs 447 GiB of memory, 149 GiB of it for"):
        al.tune(al.Task(matmul(N, N, N)), trials=1, database=tmp_path / "t.db", progress=False)


def value(name: str, *shape: int) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def model(
    nodes: list[onnx.NodeProto], inputs: list[onnx.ValueInfoProto], output: onnx.ValueInfoProto, **constants: np.ndarray
) -> onnx.ModelProto:
    initializers = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    graph = helper.make_graph(nodes, "g", inputs, [output], initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def test_a_product_of_two_enormous_matrices() -> None:
    node = helper.make_node("MatMul", ["a", "b"], ["c"])
    loaded = al.from_onnx(model([node], [value("a", N, N), value("b", N, N)], value("c", N, N)))
    with pytest.raises(MemoryLimitError) as error:
        al.compile(loaded)
    # Whether the default program has copies, which are counted before the arguments are, is a matter of the machine.
    need = r"this needs (\d+) GiB of memory( for \w+|, (\d+) GiB of it for temporaries), and the machine has 16 GiB"
    found = re.search(need, str(error.value))
    assert found is not None
    assert int(found[1]) - int(found[3] or 0) == 149


def test_a_task_of_two_enormous_matrices() -> None:
    with pytest.raises(MemoryLimitError, match="this needs 149 GiB of memory"):
        compile_candidate(al.Task(matmul(N, N, N)), NAIVE)


def test_temporaries_of_a_model() -> None:
    nodes = [
        helper.make_node("Expand", ["x", "shape"], ["wide"]),
        helper.make_node("Softmax", ["wide"], ["soft"]),
        helper.make_node("MatMul", ["soft", "w"], ["y"]),
    ]
    constants = {"shape": np.array([N, N]), "w": np.ones((N, 1), np.float32)}
    loaded = al.from_onnx(model(nodes, [value("x", 1, N)], value("y", N, 1), **constants))
    with pytest.raises(MemoryLimitError, match=r"this needs \d+ GiB of memory"):
        al.compile(loaded)


def test_a_constant_that_is_one_value_repeated() -> None:
    nodes = [
        helper.make_node("ConstantOfShape", ["shape"], ["c"]),
        helper.make_node("ReduceSum", ["c"], ["sum"], keepdims=0),
        helper.make_node("Add", ["sum", "x"], ["y"]),
    ]
    loaded = al.from_onnx(model(nodes, [value("x", 1)], value("y", 1), shape=np.array([N, N])))
    with pytest.raises(MemoryLimitError, match="149 GiB"):
        al.compile(loaded)


def test_it_is_one_of_ours_and_a_memory_error() -> None:
    assert issubclass(MemoryLimitError, AnsorliteError)
    assert issubclass(MemoryLimitError, MemoryError)


def test_where_the_memory_is_taken_the_sentence_is_the_same_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise MemoryError("Unable to allocate")

    a = te.placeholder((64,), name="a")
    kernel = al.compile(al.Task([a, te.compute((64,), lambda i: a[i] + 1.0, name="b")]))
    monkeypatch.setattr(kernel, "_empty", full)
    for direct in (replace(kernel._direct, making=full), None):
        monkeypatch.setattr(kernel, "_direct", direct)
        with pytest.raises(MemoryLimitError, match="no memory left for outputs, which needs 256 bytes"):
            kernel(np.zeros(64, np.float32))
    monkeypatch.setattr(host, "zeros", full)
    with pytest.raises(MemoryLimitError, match="no memory left for temporaries, which needs 2 GiB"):
        WorkspacePool(HostSpace(), 2 * GIB).take()


@pytest.mark.parametrize(
    ("nbytes", "text"), [(0, "0 bytes"), (999, "999 bytes"), (1023, "1023 bytes"), (1536, "1.5 KiB"), (N * N * 4, "149 GiB")]
)
def test_bytes_for_people(nbytes: int, text: str) -> None:
    assert memory.in_units(nbytes) == text
