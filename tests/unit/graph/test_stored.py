"""What the cache keeps of a model is all of it."""

from __future__ import annotations

import json
import math
import os
import pickle
from collections.abc import Iterator
from enum import Enum
from importlib import import_module
from inspect import isclass, isfunction
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import ansorlite as al
from ansorlite import topi
from ansorlite.cache.disk import CACHE_VARIABLE, default_cache
from ansorlite.frontends.onnx import load_model
from ansorlite.graph import stored
from ansorlite.graph.builder import GraphBuilder
from ansorlite.graph.describe import Value, applied
from ansorlite.graph.model import Model
from ansorlite.te import dtypes
from ansorlite.topi.elementwise import add, cast, clip, exp
from ansorlite.topi.padding import PadMode, pad

LIGHT = Path(onnx.__path__[0]) / "backend" / "test" / "data" / "light"


@pytest.mark.parametrize("name", ["squeezenet", "shufflenet"])
def test_a_model_comes_back_as_it_was(name: str) -> None:
    model = load_model(LIGHT / f"light_{name}.onnx")
    assert isinstance(model, Model)
    parts = stored.dumps(model)
    again = stored.loads(parts, model.target)
    assert again is not None
    # The weights of these models are one value repeated.
    assert sum(map(len, parts)) < 1 << 20
    assert [(task.key, uses) for task, uses in again.tasks] == [(task.key, uses) for task, uses in model.tasks]
    assert [task.dag.key for task, _ in again.tasks] == [task.key for task, _ in model.tasks]
    assert again.assignments == model.assignments
    assert again.target == model.target
    assert (again.inputs, again.outputs) == (model.inputs, model.outputs)
    assert [(g.inputs, g.output, g.name) for g in again.groups] == [(g.inputs, g.output, g.name) for g in model.groups]
    assert again.graph.values == model.graph.values
    assert again.graph.descriptions == model.graph.descriptions
    assert again.graph.constants.keys() == model.graph.constants.keys()
    for key, array in again.graph.constants.items():
        np.testing.assert_array_equal(array, model.graph.constants[key])


def test_every_operator_has_a_name_that_leads_back_to_it() -> None:
    """Those of whatever module of topi, so that a new one is not forgotten in the table."""
    found = 0
    for module in iter_modules(topi.__path__):
        for name, function in vars(import_module(f"ansorlite.topi.{module.name}")).items():
            own = isfunction(function) and function.__module__ == f"ansorlite.topi.{module.name}" and not name.startswith("_")
            if own and function.__annotations__.get("return") == "Tensor":
                assert stored._function(module.name, name) is function
                found += 1
    assert found > 140
    enumerations = {name for theme in stored.THEMES for name, _ in _enumerations(theme)}
    assert enumerations == stored.ENUMERATIONS.keys()


def _enumerations(theme: str) -> list[tuple[str, type]]:
    module = import_module(f"ansorlite.topi.{theme}")
    return [(n, v) for n, v in vars(module).items() if isclass(v) and issubclass(v, Enum) and v.__module__ == module.__name__]


@pytest.mark.parametrize(
    ("theme", "name"),
    [
        ("os", "system"),
        ("elementwise", "te"),
        ("elementwise", "import_module"),
        ("trigonometry", "_sin"),
        ("", "relu"),
    ],
)
def test_no_other_name_is_an_operator(theme: str, name: str) -> None:
    assert stored._function(theme, name) is None


def odd_model() -> Model:
    """Constants and attributes of every kind."""
    build = GraphBuilder()
    rng = np.random.default_rng(0)
    x = build.input("x", Value((3, 4), "float32"))
    across = build.constant(np.asfortranarray(rng.standard_normal((3, 4), np.float32)), "across")
    narrow = build.constant(rng.standard_normal((3, 4)).astype(dtypes.NUMPY["bfloat16"]), "narrow")
    total = build.apply(add, build.apply(add, x, across), build.apply(cast, narrow, dtype="float32"))
    low = build.apply(clip, total, low=np.float32(-0.5), high=math.inf)
    wide = build.apply(pad, low, before=(1, 0), after=(0, 2), value=-1.5, mode=PadMode.REFLECT)
    return Model.of(build.finish({"y": wide}))


def test_attributes_and_constants_of_every_kind_come_back() -> None:
    model = odd_model()
    again = stored.loads([bytes(part) for part in stored.dumps(model)], model.target)
    assert again is not None
    assert [(n.operator, n.inputs, n.attributes, n.label) for n in again.graph.nodes] == [
        (n.operator, n.inputs, n.attributes, n.label) for n in model.graph.nodes
    ]
    assert [[type(v) for _, v in n.attributes] for n in again.graph.nodes] == [
        [type(v) for _, v in n.attributes] for n in model.graph.nodes
    ]
    for name, array in model.graph.constants.items():
        np.testing.assert_array_equal(again.graph.constants[name], array)
        assert again.graph.constants[name].flags.f_contiguous == array.flags.f_contiguous
    x = np.random.default_rng(1).standard_normal((3, 4), np.float32)
    np.testing.assert_array_equal(al.compile(again)(x)["y"], al.compile(model)(x)["y"])


@pytest.mark.parametrize(("operator", "gates"), [("LSTM", 4), ("GRU", 3), ("RNN", 1)])
def test_operators_take_the_attributes_that_come_back(operator: str, gates: int) -> None:
    """Activations are named tuples of an enumeration and numbers."""
    weights = {name: np.ones((1, gates * 5, n), np.float32) for name, n in (("W", 3), ("R", 5))}
    node = helper.make_node(operator, ["x", "W", "R"], ["y"], hidden_size=5)
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in (("x", (4, 2, 3)), ("y", None)))
    constants = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    proto = helper.make_model(helper.make_graph([node], "g", [x], [y], constants), opset_imports=[helper.make_opsetid("", 20)])
    proto.ir_version = 9
    model = load_model(proto)
    assert isinstance(model, Model)
    again = stored.loads(stored.dumps(model), model.target)
    assert again is not None
    for found in again.graph.nodes:
        _, result = applied(found.operator, tuple(again.graph.values[name] for name in found.inputs), found.attributes)
        assert (result.shape, result.dtype) == (again.graph.values[found.output].shape, again.graph.values[found.output].dtype)


def test_what_is_no_operator_of_topi_is_not_kept() -> None:
    build = GraphBuilder()
    x = build.input("x", Value((4,), "float32"))
    model = Model.of(build.finish({"y": build.apply(lambda a: exp(a), x)}))
    with pytest.raises(stored.NotStorableError):
        stored.dumps(model)


def test_spoilt_data_are_no_model_and_no_exception() -> None:
    """One value or another is replaced by each of several that do not belong there."""
    model = odd_model()
    parts = [bytes(part) for part in stored.dumps(model)]
    whole = json.loads(parts[0])
    spoilt = 0
    rng = np.random.default_rng(0)
    paths = list(_paths(whole))
    for path in (paths[n] for n in rng.choice(len(paths), 60, replace=False)):
        for bad in (None, -1, 10**40, "nonsense", [], {}, [[]], {"kind": "PadMode", "member": "EXEC"}):
            data = json.loads(parts[0])
            at = data
            for step in path[:-1]:
                at = at[step]
            at[path[-1]] = bad
            spoilt += stored.loads([json.dumps(data).encode(), *parts[1:]], model.target) is None
    assert spoilt > 200
    for first in (b"", b"[]", b"null", b"\x80\x04", b"[" * 100_000, pickle.dumps(model.assignments), parts[0][:-5]):
        assert stored.loads([first, *parts[1:]], model.target) is None
    assert stored.loads(parts[:1], model.target) is None
    assert stored.loads([parts[0], *(part[:-4] for part in parts[1:])], model.target) is None


def _paths(data: Any, here: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to everything inside."""
    children = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, child in children:
        yield (*here, key)
        yield from _paths(child, (*here, key))


def test_a_file_of_the_cache_runs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What used to be unpickled: a pickle in the place of the model is a miss, and is replaced."""

    class Command:
        def __reduce__(self) -> tuple[object, ...]:
            return os.mkdir, (str(tmp_path / "ran"),)

    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    file = file_of(tmp_path / "m.onnx", np.ones((4, 3), np.float32))
    al.from_onnx(file)
    (key,) = (path.name for path in (tmp_path / "cache").iterdir())
    default_cache().put_parts(key, [pickle.dumps(Command(), protocol=5)])
    model = al.from_onnx(file)
    assert isinstance(model, Model)
    assert not (tmp_path / "ran").exists()
    parts = default_cache().get_parts(key)
    assert parts is not None
    assert stored.loads(parts, model.target) is not None


def file_of(path: Path, weights: np.ndarray) -> Path:
    """``y = x @ weights`` at ``path``."""
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in (("x", (2, 4)), ("y", (2, 3)))]
    graph = helper.make_graph([node], "product", ends[:1], ends[1:], [numpy_helper.from_array(weights, "w")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10), path)
    return path


def test_a_file_is_parsed_once_and_known_by_its_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    rng = np.random.default_rng(0)
    x, weights = rng.standard_normal((2, 4), np.float32), rng.standard_normal((4, 3), np.float32)
    first = file_of(tmp_path / "first.onnx", weights)
    model = al.from_onnx(first)
    kept = set((tmp_path / "cache").iterdir())
    assert len(kept) == 1
    again = al.from_onnx(first.rename(tmp_path / "renamed.onnx"))
    assert set((tmp_path / "cache").iterdir()) == kept
    np.testing.assert_array_equal(al.compile(again)(x)["y"], al.compile(model)(x)["y"])
    np.testing.assert_allclose(al.compile(again)(x)["y"], x @ weights, rtol=1e-5)
    other = al.from_onnx(file_of(tmp_path / "renamed.onnx", -weights))
    np.testing.assert_allclose(al.compile(other)(x)["y"], -x @ weights, rtol=1e-5)


def test_a_model_whose_data_lie_elsewhere_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    proto = onnx.load(file_of(tmp_path / "inside.onnx", np.ones((4, 3), np.float32)))
    for factor in (1, 2):
        proto.graph.initializer[0].CopyFrom(numpy_helper.from_array(np.full((4, 3), factor, np.float32), "w"))
        (tmp_path / "w.data").unlink(missing_ok=True)
        onnx.save(proto, tmp_path / "m.onnx", save_as_external_data=True, location="w.data", size_threshold=0)
        y = al.compile(al.from_onnx(tmp_path / "m.onnx"))(np.ones((2, 4), np.float32))["y"]
        np.testing.assert_array_equal(y, np.full((2, 3), 4 * factor, np.float32))


def test_a_model_is_kept_for_each_precision(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    file = file_of(tmp_path / "m.onnx", np.full((4, 3), 1 / 3, np.float32))
    for _ in range(2):
        models = [al.from_onnx(file, precision=precision) for precision in ("float32", "bfloat16")]
        assert [next(iter(model.graph.constants.values())).dtype.name for model in models] == ["float32", "bfloat16"]
    with pytest.raises(al.AnsorliteError, match="precision is 'half'; it must be 'float32' or 'bfloat16'"):
        al.from_onnx(tmp_path / "none.onnx", precision="half")


def test_channels_in_blocks_can_be_switched_off(tmp_path: Path) -> None:
    def tasks(**how: bool) -> str:
        model = al.from_onnx(LIGHT / "light_squeezenet.onnx", **how)
        return "\n".join(task.key for task, _ in model.tasks)

    assert tasks(blocked=False) != tasks() == tasks(blocked=True)
    with pytest.raises(al.AnsorliteError, match="blocked is 8; it must be True or False"):
        al.from_onnx(tmp_path / "none.onnx", blocked=8)  # type: ignore[arg-type]
