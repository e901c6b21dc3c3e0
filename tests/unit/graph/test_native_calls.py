"""The executable's native function: the callers' own memory, several threads, steps in Python between native ones."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from ansorlite.errors import ArgumentError
from ansorlite.graph.builder import GraphBuilder
from ansorlite.graph.describe import Value
from ansorlite.graph.executable import Bindable, Executable, compile_model
from ansorlite.graph.graph import Graph
from ansorlite.graph.model import Model
from ansorlite.programs.kernels import compile_candidate
from ansorlite.runtime.kernel import Kernel
from ansorlite.sketch.candidate import NAIVE
from ansorlite.sketch.tile_space import TileSpace
from ansorlite.spaces.derivation import derive
from ansorlite.task import Task
from ansorlite.topi.activations import relu
from ansorlite.topi.elementwise import add, exp
from ansorlite.topi.matmul import gemm
from ansorlite.topi.shape import concat, reshape, transpose
from tests.unit.graph.support import Meaning, node_by_node

SHAPE = (12, 20)


def native(task: Task) -> Kernel:
    return compile_candidate(task, NAIVE)


def mixed() -> Callable[[Task], Bindable]:
    """Every other task in Python."""
    turn = iter(range(1 << 20))
    return lambda task: Meaning(task) if next(turn) % 2 else native(task)


@pytest.fixture(scope="module")
def graph() -> Graph:
    """Products, copies, and outputs of every kind: whole, twice, a part of a value, an input, a constant."""
    build = GraphBuilder()
    x, y = build.input("x", Value(SHAPE, "float32")), build.input("y", Value(SHAPE, "float32"))
    rng = np.random.default_rng(0)
    weight = build.constant(rng.standard_normal((20, 20)).astype(np.float32))
    first = build.apply(gemm, x, weight)
    second = build.apply(exp, build.apply(transpose, build.apply(add, first, y), axes=(1, 0)))
    rows = build.apply(concat, y, first, axis=0)
    flat = build.apply(reshape, build.apply(relu, rows), shape=(480,))
    return build.finish({"a": second, "b": second, "c": flat, "d": first, "e": "x", "f": weight})


@pytest.fixture(scope="module")
def executable(graph: Graph) -> Executable:
    return compile_model(Model.of(graph), native)


def inputs(seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {name: (rng.standard_normal(SHAPE) / 4).astype(np.float32) for name in "xy"}


def agree(graph: Graph, given: dict[str, np.ndarray], result: dict[str, np.ndarray]) -> None:
    expected = node_by_node(graph, given)
    assert expected.keys() == result.keys()
    for name, array in expected.items():
        np.testing.assert_allclose(result[name], array, rtol=1e-4, atol=1e-4)


def test_native_calls_compute_the_model(graph: Graph, executable: Executable) -> None:
    for seed in range(2):
        agree(graph, inputs(seed), executable(inputs(seed)))


def test_native_and_python_steps_may_take_turns(graph: Graph) -> None:
    agree(graph, inputs(3), compile_model(Model.of(graph), mixed())(inputs(3)))


def test_inputs_of_any_kind_give_what_plain_arrays_do(executable: Executable) -> None:
    given = inputs(5)
    expected = executable(given)
    unaligned = np.zeros(given["x"].nbytes + 1, np.uint8)[1:].view(np.float32).reshape(SHAPE)
    unaligned[...] = given["x"]
    read_only = given["y"].copy()
    read_only.flags.writeable = False
    for x, y in ((unaligned, read_only), (np.asfortranarray(given["x"]), given["y"][::-1].copy()[::-1])):
        for name, array in executable(x, y=y).items():
            np.testing.assert_array_equal(array, expected[name])


def test_outputs_are_separate_arrays(executable: Executable) -> None:
    arrays = [*executable(inputs(0)).values(), *executable(inputs(0)).values()]
    assert not any(np.may_share_memory(a, b) for n, a in enumerate(arrays) for b in arrays[:n])


def test_outputs_are_written_where_the_caller_wants_them(graph: Graph, executable: Executable) -> None:
    given = inputs(4)
    out = {"a": np.empty((20, 12), np.float32), "e": np.empty(SHAPE, np.float32)}
    result = executable.run(given, out)
    assert all(np.shares_memory(result[name], array) for name, array in out.items())
    agree(graph, given, result)


def test_an_output_may_lie_where_an_input_lies(graph: Graph, executable: Executable) -> None:
    given = inputs(5)
    before = {name: array.copy() for name, array in given.items()}
    agree(graph, before, executable.run(given, {"d": given["y"]}))


class Exported:
    """An array of a library that is not numpy."""

    def __init__(self, array: np.ndarray) -> None:
        self._array = array

    def __dlpack__(self, **options: object) -> object:
        return self._array.__dlpack__(**options)  # type: ignore[arg-type]

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()


def test_arrays_of_other_libraries_are_viewed_in_place(graph: Graph, executable: Executable) -> None:
    given = inputs(6)
    out = np.empty(SHAPE, np.float32)
    result = executable.run({name: Exported(array) for name, array in given.items()}, {"d": Exported(out)})
    agree(graph, given, result)
    np.testing.assert_array_equal(out, result["d"])


class Unexportable:
    def __dlpack__(self, **_: object) -> object:
        raise BufferError("it needs a gradient")

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


@pytest.mark.parametrize(
    ("out", "message"),
    [
        ({"z": np.empty(SHAPE, np.float32)}, "output 'z' is unknown"),
        ({"d": np.empty((3, 3), np.float32)}, r"out for 'd' has shape \(3, 3\)"),
        ({"d": np.empty(SHAPE, np.float64)}, "out for 'd' is float64"),
        ({"d": np.empty((20, 12), np.float32).T}, "out for 'd' must be a contiguous"),
        (dict.fromkeys("de", np.empty(SHAPE, np.float32)), "out for 'e' overlaps another output"),
        ({"d": Unexportable()}, "that numpy cannot view"),
        ({"d": [1.0]}, "out for 'd' is a list"),
    ],
)
def test_refuses_outputs_that_do_not_fit(executable: Executable, out: dict[str, object], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        executable.run(inputs(0), out)


def test_inputs_that_cannot_be_used_in_place_are_copied(graph: Graph, executable: Executable) -> None:
    given = inputs(7)
    wide = np.zeros((12, 40), np.float32)
    wide[:, ::2] = given["x"]
    frozen = given["y"].copy()
    frozen.flags.writeable = False
    agree(graph, given, executable(wide[:, ::2], frozen))


def test_many_threads_call_it_at_once(graph: Graph, executable: Executable) -> None:
    cases = [(inputs(seed), node_by_node(graph, inputs(seed))) for seed in range(4)]
    wrong: list[int] = []

    def work(number: int) -> None:
        given, expected = cases[number]
        for _ in range(50):
            result = executable(given)
            wrong.extend(number for name, array in expected.items() if not np.allclose(result[name], array, 1e-4, 1e-4))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def _shared_weight(times: int) -> tuple[Graph, np.ndarray]:
    """One weight that equal products use one after the other."""
    build = GraphBuilder()
    value = build.input("x", Value((4, 64), "float32"))
    weight = np.random.default_rng(3).standard_normal((64, 64)).astype(np.float32) / 8
    constant = build.constant(weight)
    for _ in range(times):
        value = build.apply(relu, build.apply(gemm, value, constant))
    return build.finish({"y": value}), weight


def _packing(task: Task) -> Kernel:
    """A program that packs the weight."""
    sketch = next(sketch for sketch in derive(task) if "s.cache_read(" in sketch.text)
    row = TileSpace(sketch).sample(1, np.random.default_rng(0))[0]
    return compile_candidate(task, sketch.candidate(row))


def test_weights_are_prepared_once_and_then_dropped() -> None:
    graph, weight = _shared_weight(3)
    executable = compile_model(Model.of(graph), _packing)
    (kernel,) = executable._kernels.values()
    assert kernel.compiled.prepared >= weight.nbytes
    # Three steps share what is prepared, and nothing reads the weight as it is.
    assert executable.weight_bytes == kernel.compiled.prepared
    x = np.random.default_rng(4).standard_normal((4, 64)).astype(np.float32)
    np.testing.assert_allclose(executable(x)["y"], node_by_node(graph, {"x": x})["y"], rtol=1e-4, atol=1e-5)


def test_a_weight_that_something_else_reads_is_kept() -> None:
    graph, weight = _shared_weight(1)
    (name,) = graph.constants
    given_out = replace(graph, outputs={**graph.outputs, "w": name})
    executable = compile_model(Model.of(given_out), _packing)
    assert executable.weight_bytes >= 2 * weight.nbytes
    x = np.zeros((4, 64), np.float32)
    np.testing.assert_array_equal(executable(x)["w"], weight)
