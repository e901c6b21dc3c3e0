"""Modules: what runs, what is taken out and put back, and what does not fit."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ansorlite as al
from ansorlite import te
from ansorlite.errors import ExternalError

Array = np.ndarray[Any, Any]

ROWS, INNER, MIDDLE, OUTER = 3, 20, 16, 5


def linear(outputs: int, inputs: int, dtype: str = "float32") -> al.Task:
    x = te.placeholder((ROWS, inputs), dtype, name="x")
    w = te.placeholder((outputs, inputs), dtype, name="w")
    b = te.placeholder((outputs,), dtype, name="b")
    k = te.reduce_axis(inputs, name="k")
    y = te.compute((ROWS, outputs), lambda i, j: te.sum(x[i, k] * w[j, k], axis=k), name="y")
    return al.Task([x, w, b, te.compute((ROWS, outputs), lambda i, j: y[i, j] + b[j], name="out")])


def external(name: str, inputs: list[tuple[int, ...]], output: tuple[int, ...]) -> al.External:
    return al.External(name, [te.placeholder(shape, name="in") for shape in inputs], [te.placeholder(output, name="out")])


def numpy_linear(x: Array, w: Array, b: Array, out: Array) -> None:
    np.matmul(x, w.T, out=out)
    out += b


def numpy_relu(x: Array, out: Array) -> None:
    np.maximum(x, 0, out=out)


al.register("test_module.linear", numpy_linear)
al.register("test_module.relu", numpy_relu)

RELU = external("test_module.relu", [(ROWS, MIDDLE)], (ROWS, MIDDLE))
FUNCTIONS = {
    "linear0": linear(MIDDLE, INNER),
    "relu": RELU,
    "linear1": external("test_module.linear", [(ROWS, MIDDLE), (OUTER, MIDDLE), (OUTER,)], (ROWS, OUTER)),
}


def two_layers(call: Any, x: Any, w0: Any, b0: Any, w1: Any, b1: Any) -> Any:
    return call("linear1", call("relu", call("linear0", x, w0, b0)), w1, b1)


@pytest.fixture(scope="module")
def module() -> al.Module:
    return al.Module({**FUNCTIONS, "main": two_layers})


@pytest.fixture(scope="module")
def arrays(module: al.Module) -> dict[str, Array]:
    rng = np.random.default_rng(0)
    return {name: rng.random(kind.shape, dtype=np.float32) - 0.5 for name, kind in module.main.inputs.items()}


def expected(x: Array, w0: Array, b0: Array, w1: Array, b1: Array) -> Array:
    result: Array = np.maximum(x @ w0.T + b0, 0) @ w1.T + b1
    return result


def wrong(function: Callable[..., Any], *arguments: Any, **named: Any) -> str:
    with pytest.raises(al.AnsorliteError) as caught:
        function(*arguments, **named)
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 300
    return message


def test_it_runs_called_in_each_way(module: al.Module, arrays: dict[str, Array]) -> None:
    compiled = al.compile(module)
    for found in (
        *(compiled(*arrays.values()), compiled(arrays), compiled(**arrays), compiled.run(arrays)),
        compiled(arrays["x"], **{name: array for name, array in arrays.items() if name != "x"}),
    ):
        np.testing.assert_allclose(found, expected(**arrays), rtol=1e-5, atol=1e-6)


def test_a_function_is_taken_out_tuned_and_put_back(module: al.Module, arrays: dict[str, Array], tmp_path: Path) -> None:
    task = module.extract("linear0")
    result = al.tune(task, trials=4, strategy="random", database=tmp_path / "t.db", progress=False)
    assert result.trials == 4
    tuned = module.replace("linear0", al.compile(task, tmp_path / "t.db"))
    np.testing.assert_allclose(tuned(arrays), expected(**arrays), rtol=1e-5, atol=1e-6)
    assert tuned.extract("linear0") is task
    assert module.functions["linear0"].code is None  # the old one is as it was


def test_it_is_tuned_whole(tmp_path: Path) -> None:
    twice = al.Module({"f": linear(INNER, INNER), "g": linear(OUTER, INNER), "main": chained})
    assert [(task.key, count) for task, count in twice.tasks] == [(twice.extract("f").key, 2), (twice.extract("g").key, 1)]
    result = al.tune(twice, trials=4, strategy="random", database=tmp_path / "t.db", progress=False)
    assert [task.uses for task in result.tasks] == [(2,), (1,)]
    compiled = al.compile(twice, tmp_path / "t.db")
    assert compiled.tasks == ()
    x, w, b = np.ones((ROWS, INNER), np.float32), np.eye(INNER, dtype=np.float32), np.zeros(INNER, np.float32)
    np.testing.assert_array_equal(compiled(x, w, b, w[:OUTER], b[:OUTER])[1], x[:, :OUTER])


def chained(call: Any, x: Any, w: Any, b: Any, v: Any, c: Any) -> Any:
    y = call("f", call("f", x, w, b), w, b)
    return y, call("g", y, v, c)


def test_a_compiled_module_keeps_its_kernels(module: al.Module) -> None:
    kernel = al.compile(module.extract("linear0"))
    assert al.compile(module.replace("linear0", kernel)).functions["linear0"].code is kernel


def test_equal_tasks_are_compiled_once() -> None:
    module = al.compile(al.Module({"f": linear(INNER, INNER), "g": linear(INNER, INNER), "main": chained}))
    assert module.functions["f"].code is module.functions["g"].code


def test_what_is_never_called_is_not_compiled(module: al.Module, arrays: dict[str, Array]) -> None:
    more = al.compile(al.Module({**FUNCTIONS, "spare": linear(2, 2), "main": two_layers}))
    assert more.functions["spare"].code is None
    np.testing.assert_allclose(more(arrays), al.compile(module)(arrays))


def test_several_outputs_of_a_task() -> None:
    x = te.placeholder((4,), name="x")
    up, down = (te.compute((4,), lambda i, by=by: x[i] + by, name="y") for by in (1.0, -1.0))

    def main(call: Any, x: Any) -> Any:
        _, below = call("both", x)
        above, _ = call("both", below)
        return above, below

    module = al.compile(al.Module({"both": al.Task([x, up, down]), "main": main}))
    above, below = module(np.zeros(4, np.float32))
    assert (above.tolist(), below.tolist()) == ([0.0] * 4, [-1.0] * 4)


def test_one_result_in_a_tuple_stays_a_tuple() -> None:
    module = al.Module({"relu": RELU, "main": lambda call, x: (call("relu", x),)})
    (result,) = module(np.full((ROWS, MIDDLE), -1, np.float32))
    assert not result.any()


def test_an_external_function_becomes_a_task_or_a_kernel(module: al.Module, arrays: dict[str, Array]) -> None:
    x = te.placeholder((ROWS, MIDDLE), name="x")
    relu = al.Task([x, te.compute((ROWS, MIDDLE), lambda i, j: te.maximum(x[i, j], 0.0), name="relu")])
    with_task = module.replace("relu", relu)
    assert len(with_task.tasks) == 2
    assert with_task.extract("relu") is relu
    with_kernel = al.compile(module).replace("relu", al.compile(relu))
    assert "no tensor computation (kernel)" in wrong(with_kernel.extract, "relu")
    for each in (al.compile(with_task), with_kernel):
        np.testing.assert_allclose(each(arrays), expected(**arrays), rtol=1e-5, atol=1e-6)
    library = external("test_module.linear", [(ROWS, INNER), (MIDDLE, INNER), (MIDDLE,)], (ROWS, MIDDLE))
    outside = module.replace("linear0", library)
    np.testing.assert_allclose(outside(arrays), expected(**arrays), rtol=1e-5, atol=1e-6)
    assert outside.tasks == ()


def test_it_prints_what_it_does(module: al.Module) -> None:
    assert repr(module) == "Module(linear0, relu, linear1)"
    assert str(al.compile(module)).splitlines() == [
        "linear0(float32[3x20], float32[16x20], float32[16]) -> float32[3x16]: kernel",
        "relu(float32[3x16]) -> float32[3x16]: external test_module.relu",
        "linear1(float32[3x16], float32[5x16], float32[5]) -> float32[3x5]: external test_module.linear",
        "main(x: float32[3x20], w0: float32[16x20], b0: float32[16], w1: float32[5x16], b1: float32[5]):",
        "    v0 = linear0(x, w0, b0)",
        "    v1 = relu(v0)",
        "    v2 = linear1(v1, w1, b1)",
        "    return v2",
    ]
    assert str(module).startswith("linear0(float32[3x20], float32[16x20], float32[16]) -> float32[3x16]: task\n")


def test_values_have_names_of_their_own() -> None:
    module = al.Module({"relu": RELU, "main": lambda call, v0: call("relu", call("relu", v0))})
    assert [str(call) for call in module.main.calls] == ["v1 = relu(v0)", "v2 = relu(v1)"]


def test_it_never_changes(module: al.Module) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        module.main = module.main  # type: ignore[misc]
    with pytest.raises(TypeError):
        module.functions["relu"] = module.functions["relu"]  # type: ignore[index]


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda module: pickle.loads(pickle.dumps(module))])
def test_it_is_copied_and_pickled_unless_it_has_machine_code(
    copied: Callable[[al.Module], al.Module], module: al.Module, arrays: dict[str, Array]
) -> None:
    other = copied(module)
    assert str(other) == str(module)
    np.testing.assert_array_equal(al.compile(other)(arrays), al.compile(module)(arrays))
    if copied is not copy.copy:
        assert "this Kernel is machine code of this process" in wrong(copied, al.compile(module))


@pytest.mark.parametrize(
    ("main", "told"),
    [
        (None, 'a module needs a Python function "main"'),
        (linear(2, 2), 'a module needs a Python function "main"'),
        (lambda: 1, "main must take call and its inputs by name"),
        (lambda *arrays: arrays, "main must take call and its inputs by name"),
        (lambda call, x=1: call("relu", x), "main must take call and its inputs by name, without defaults"),
        (dict, "main must take call and its inputs by name"),
        (lambda call, x: call("rleu", x), "main calls 'rleu', which is not in the module; its functions are: linear0, relu"),
        (lambda call, x: call([], x), "main calls [], which is not in the module"),
        (lambda call, x: call("relu", x, x), "main gives relu 2 values, but it takes 1: (float32[3x16]) -> float32[3x16]"),
        (lambda call: call("relu", 5), "main gives relu 5; it may give its own inputs, and what its calls give"),
        (
            lambda call, x, w, b: call("linear0", call("relu", x), w, b),
            "main gives linear0 v0 as x, which is float32[3x20]; but v0 is float32[3x16]",
        ),
        (lambda call, x, w: call("linear0", x, w, w), "linear0 w as b, which is float32[16]; but w is float32[16x20]"),
        (lambda call, x: call("relu", x + 1), "main raises TypeError (unsupported operand type(s)"),
        (lambda call, x: call("relu", x) if x else x, "TypeError (no condition can depend on what is computed later)"),
        (lambda _, x: x, "main returns Handle(name='x'); it must return what calls give"),
        (lambda _: None, "main returns None; it must return what calls give"),
        (lambda _: (), "main returns (); it must return what calls give"),
        (lambda call, x: (call("relu", x), x), "it must return what calls give"),
        (lambda call, x, _: call("relu", x), "main does not give its input _ to any function"),
    ],
)
def test_a_main_that_does_not_fit(main: Any, told: str) -> None:
    assert told in wrong(al.Module, {**FUNCTIONS, "main": main})


def test_a_value_of_another_module() -> None:
    kept: list[Any] = []

    def leaking(call: Any, x: Any) -> Any:
        kept.append(x)
        return call("relu", kept[0])

    al.Module({"relu": RELU, "main": leaking})
    assert "main gives relu Handle(name='x'); it may give its own inputs" in wrong(al.Module, {"relu": RELU, "main": leaking})


def test_functions_that_are_none() -> None:
    assert "a module is made of functions by name, not of 5" in wrong(al.Module, 5)
    assert "a module is made of functions by name" in wrong(al.Module, {1: RELU, "main": two_layers})
    assert 'needs a Python function "main"' in wrong(al.Module, FUNCTIONS)
    assert "f is a function; a function of a module is a task, a kernel or an al.External" in wrong(
        al.Module, {"f": two_layers, "main": two_layers}
    )


def test_replacements_that_do_not_fit(module: al.Module) -> None:
    assert "there is no function 'linear2' in the module; its functions are:" in wrong(module.replace, "linear2", RELU)
    assert "there is no function 'main' in the module" in wrong(module.extract, "main")
    assert "relu is no tensor computation (external test_module.relu)" in wrong(module.extract, "relu")
    assert "linear0 is a int; a function of a module is a task" in wrong(module.replace, "linear0", 5)
    for other in (linear(MIDDLE, INNER + 1), al.compile(linear(MIDDLE, INNER, "float64")), RELU):
        assert "linear0 is (float32[3x20], float32[16x20]" in wrong(module.replace, "linear0", other)
    constant = te.placeholder((4,), name="w", constant=True)
    x = te.placeholder((4,), name="x")
    kernel = al.compile(al.Task([x, constant, te.compute((4,), lambda i: x[i] * constant[i], name="y")]))
    scaled = al.Module({"f": kernel, "main": lambda call, x, w: call("f", x, w)})
    assert "they must be equal" in wrong(scaled.replace, "f", kernel.prepare(w=np.ones(4, np.float32)))


def test_inputs_that_do_not_fit(module: al.Module, arrays: dict[str, Array]) -> None:
    compiled = al.compile(module)
    assert "linear0 is a task that is not compiled; al.compile(module)" in wrong(module, arrays)
    assert "input 'b1' is missing" in wrong(compiled, *list(arrays.values())[:-1])
    assert "input 'y' is unknown" in wrong(compiled, **arrays, y=1)
    assert "input 'x' has shape (3, 19), but the model takes (3, 20)" in wrong(compiled, {**arrays, "x": arrays["x"][:, 1:]})
    assert "input 'x' is float64" in wrong(compiled, {**arrays, "x": arrays["x"].astype(float)})
    assert "input 'x' is a list, not a numpy array" in wrong(compiled, {**arrays, "x": [1]})


def test_read_only_and_strided_inputs(module: al.Module, arrays: dict[str, Array]) -> None:
    compiled = al.compile(module)
    odd = {name: np.array(array, order="F") for name, array in arrays.items()}
    for array in odd.values():
        array.flags.writeable = False
    np.testing.assert_allclose(compiled(odd), expected(**arrays), rtol=1e-5, atol=1e-6)


def test_tensors_of_torch(module: al.Module, arrays: dict[str, Array]) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'ansorlite[torch]'")
    compiled = al.compile(module)
    tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
    np.testing.assert_allclose(compiled(tensors), expected(**arrays), rtol=1e-5, atol=1e-6)
    elsewhere = torch.empty((ROWS, INNER), device="meta")
    assert "input 'x' is a Tensor that numpy cannot view" in wrong(compiled, {**tensors, "x": elsewhere})


def test_an_external_function_that_is_not_there() -> None:
    module = al.Module({"relu": external("test_module.rleu", [(4,)], (4,)), "main": lambda call, x: call("relu", x)})
    with pytest.raises(ExternalError, match=r'al\.register\("test_module\.rleu", function\)'):
        module(np.zeros(4, np.float32))
