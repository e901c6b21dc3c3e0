"""What the cache keeps of a model is all of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import ansorlite as al
from ansorlite.frontends.onnx import load_model
from ansorlite.graph import stored
from ansorlite.graph.model import Model
from ansorlite.runtime.cache import CACHE_VARIABLE

LIGHT = Path(onnx.__path__[0]) / "backend" / "test" / "data" / "light"


@pytest.mark.parametrize("name", ["squeezenet", "shufflenet"])
def test_a_model_comes_back_as_it_was(name: str) -> None:
    model = load_model(LIGHT / f"light_{name}.onnx")
    assert isinstance(model, Model)
    parts = stored.dumps(model)
    again = stored.loads(parts)
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


def test_channels_in_blocks_can_be_switched_off(tmp_path: Path) -> None:
    def tasks(**how: bool) -> str:
        model = al.from_onnx(LIGHT / "light_squeezenet.onnx", **how)
        return "\n".join(task.key for task, _ in model.tasks)

    assert tasks(blocked=False) != tasks() == tasks(blocked=True)
    with pytest.raises(al.AnsorliteError, match="blocked is 8; it must be True or False"):
        al.from_onnx(tmp_path / "none.onnx", blocked=8)  # type: ignore[arg-type]
