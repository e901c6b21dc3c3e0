"""Models with open dimensions: right for every size, whether a bucket's program can serve it or not."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import ansorlite as al
from ansorlite.errors import ArgumentError, ModelError
from ansorlite.frontends.onnx import load_any
from ansorlite.graph.dimensions import Dim
from ansorlite.graph.executable import Executable
from ansorlite.graph.hybrid import AnyModel, HybridExecutable, compile_any
from ansorlite.graph.open_executable import OpenExecutable
from ansorlite.graph.open_model import OpenModel
from ansorlite.graph.shared import SharedWeights
from ansorlite.runtime.peaks import MemoryLevel, Peaks
from tests.onnx.support import Meaning

RNG = np.random.default_rng(0)

PEAKS = Peaks(2, 100e9, (MemoryLevel("memory", 1 << 30, 10e9, 8e9),))


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def model_of(
    nodes: list[onnx.NodeProto],
    inputs: Mapping[str, tuple[Dim, ...]],
    outputs: Mapping[str, int],
    constants: Mapping[str, np.ndarray] | None = None,
    dtypes: Mapping[str, int] | None = None,
) -> onnx.ModelProto:
    """A model with named dimensions; outputs have ranks only."""
    given = [helper.make_tensor_value_info(n, (dtypes or {}).get(n, TensorProto.FLOAT), dims) for n, dims in inputs.items()]
    results = [
        helper.make_tensor_value_info(n, (dtypes or {}).get(n, TensorProto.FLOAT), [None] * rank) for n, rank in outputs.items()
    ]
    tensors = [numpy_helper.from_array(array, name) for name, array in (constants or {}).items()]
    graph = helper.make_graph(nodes, "open", given, results, tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


class Counted:
    """An executable of a model that counts what was compiled."""

    def __init__(self, proto: onnx.ModelProto, **options: object) -> None:
        model = load_any(proto, **options)  # type: ignore[arg-type]
        assert isinstance(model, OpenModel)
        self.compiled = 0
        self.reference = ReferenceEvaluator(proto)
        self.run = OpenExecutable(model, self._build)

    def _build(self, model: AnyModel, shared: SharedWeights | None) -> Executable | HybridExecutable:
        self.compiled += 1
        return compile_any(model, Meaning, shared)

    def check(self, **inputs: np.ndarray) -> None:
        """The results are those of ONNX's own reference."""
        expected = self.reference.run(None, inputs)
        found = self.run(inputs)
        for array, (name, result) in zip(expected, found.items(), strict=True):
            assert result.shape == array.shape, name
            np.testing.assert_allclose(result, array, rtol=1e-4, atol=1e-5)


def two_layers() -> onnx.ModelProto:
    """Products, a normalisation and a softmax along what is not open."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"]),
        helper.make_node("Add", ["a", "bias"], ["b"]),
        helper.make_node("LayerNormalization", ["b", "scale"], ["c"]),
        helper.make_node("Softmax", ["c"], ["y"]),
    ]
    return model_of(nodes, {"x": ("batch", 6)}, {"y": 2}, {"w": normal(6, 8), "bias": normal(8), "scale": normal(8)})


def test_every_size_of_a_bucket_is_served_by_one_program() -> None:
    ready = Counted(two_layers())
    for size in (5, 6, 7, 8, 5):
        ready.check(x=normal(size, 6))
    assert ready.compiled == 1
    for size in range(1, 18):
        ready.check(x=normal(size, 6))
    assert ready.compiled == 6  # 1, 2, 4, 8, 16, 32


def test_named_sizes_and_what_is_beyond_them() -> None:
    ready = Counted(two_layers(), dims={"batch": (8, 3)})
    for size in range(1, 9):
        ready.check(x=normal(size, 6))
    assert ready.compiled == 2
    for size in (9, 12, 9):
        ready.check(x=normal(size, 6))
    assert ready.compiled == 4


def test_a_dimension_that_is_folded_is_compiled_for_each_size() -> None:
    nodes = [helper.make_node("Softmax", ["x"], ["y"], axis=0), helper.make_node("ReduceMean", ["y", "axes"], ["m"])]
    proto = model_of(nodes, {"x": ("rows", 4)}, {"y": 2, "m": 2}, {"axes": np.array([0])})
    ready = Counted(proto)
    for size in (1, 3, 5, 6, 5, 3):
        ready.check(x=normal(size, 4))
    assert ready.compiled == 4


@pytest.mark.parametrize(
    "node",
    [
        helper.make_node("Slice", ["x", "last", "end", "zero"], ["y"]),
        helper.make_node("Slice", ["x", "last", "start", "zero", "last"], ["y"]),
        helper.make_node("CumSum", ["x", "axis"], ["y"]),
        helper.make_node("Concat", ["x", "x"], ["y"], axis=0),
        helper.make_node("Pad", ["x", "pads"], ["y"], mode="reflect"),
        helper.make_node("ArgMax", ["x"], ["y"], axis=0),
        helper.make_node("Transpose", ["x"], ["y"], perm=[1, 0]),
        helper.make_node("Reshape", ["x", "flat"], ["y"]),
        helper.make_node("Conv", ["image", "kernel"], ["y"], pads=[1, 0, 1, 0]),
        helper.make_node("Expand", ["row", "shape"], ["y"]),
    ],
    ids=lambda node: node.op_type,
)
def test_nodes_along_and_across_an_open_dimension(node: onnx.NodeProto) -> None:
    """Last row, flipped, running sum, twice, mirrored, largest, transposed, flattened, pooled, repeated."""
    nodes = [
        helper.make_node("Unsqueeze", ["x", "zero_one"], ["image"]),
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("ReduceMax", ["x", "zero"], ["row"]),
        node,
    ]
    constants = {
        "zero": np.array([0]), "last": np.array([-1]), "end": np.array([9999]), "start": np.array([-9999]), "axis": np.array(0),
        "zero_one": np.array([0, 1]), "pads": np.array([2, 0, 0, 0]), "flat": np.array([-1]),
        "kernel": normal(2, 1, 3, 1),
    }  # fmt: skip
    rank = {"Reshape": 1, "Conv": 4}.get(node.op_type, 2)
    kind = {"y": TensorProto.INT64} if node.op_type == "ArgMax" else {}
    ready = Counted(model_of(nodes, {"x": ("rows", 4)}, {"y": rank}, constants, kind))
    for size in (3, 4, 5, 6, 7, 8):
        ready.check(x=normal(size, 4))


def attention() -> onnx.ModelProto:
    """One head over a batch of sequences, with embedded tokens and positions."""
    nodes = [
        helper.make_node("Gather", ["table", "ids"], ["tokens"]),
        helper.make_node("Shape", ["ids"], ["length"], start=1, end=2),
        helper.make_node("Slice", ["positions", "zero", "length", "one"], ["places"]),
        helper.make_node("Add", ["tokens", "places"], ["h"]),
        helper.make_node("MatMul", ["h", "wq"], ["q"]),
        helper.make_node("MatMul", ["h", "wk"], ["k"]),
        helper.make_node("Transpose", ["k"], ["kt"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["q", "kt"], ["s"]),
        helper.make_node("Softmax", ["s"], ["p"]),
        helper.make_node("MatMul", ["p", "h"], ["y"]),
    ]
    constants = {
        "table": normal(11, 8), "positions": normal(1, 12, 8), "wq": normal(8, 4), "wk": normal(8, 4),
        "zero": np.array([0]), "one": np.array([1]),
    }  # fmt: skip
    return model_of(nodes, {"ids": ("batch", "sequence")}, {"y": 3}, constants, {"ids": TensorProto.INT64})


def test_batches_share_a_program_and_sequence_lengths_do_not() -> None:
    ready = Counted(attention())
    for batch in (3, 4):
        for length in (5, 6, 7, 5):
            ready.check(ids=RNG.integers(0, 11, (batch, length)))
    assert ready.compiled == 3


def test_rows_that_are_only_there_to_fill_a_program_read_nothing_outside() -> None:
    """A table of five positions has none for the sixth to eighth row of a bucket."""
    nodes = [
        helper.make_node("Shape", ["x"], ["n"], start=0, end=1),
        helper.make_node("Squeeze", ["n"], ["count"]),
        helper.make_node("Range", ["zero", "count", "one"], ["where"]),
        helper.make_node("Gather", ["table", "where"], ["rows"]),
        helper.make_node("Add", ["x", "rows"], ["y"]),
    ]
    constants = {"zero": np.array(0), "one": np.array(1), "table": normal(5, 4)}
    ready = Counted(model_of(nodes, {"x": ("rows", 4)}, {"y": 2}, constants))
    for size in range(1, 6):
        ready.check(x=normal(size, 4))


def test_a_bucket_that_is_too_large_for_the_model() -> None:
    """A table of five positions is cut to the number of rows: there is no model for eight."""
    nodes = [
        helper.make_node("Shape", ["x"], ["n"], start=0, end=1),
        helper.make_node("Slice", ["table", "zero", "n"], ["rows"]),
        helper.make_node("Add", ["x", "rows"], ["y"]),
    ]
    ready = Counted(model_of(nodes, {"x": ("rows", 4)}, {"y": 2}, {"zero": np.array([0]), "table": normal(5, 4)}))
    for size in (5, 3, 4, 5):
        ready.check(x=normal(size, 4))
    assert ready.compiled == 2


def test_inputs_in_another_order_are_the_same() -> None:
    nodes = [helper.make_node("Sub", ["a", "b"], ["y"])]
    ready = Counted(model_of(nodes, {"a": ("n", 4), "b": ("n", 4)}, {"y": 2}))
    a, b = normal(4, 4), normal(4, 4)
    ready.check(a=a, b=b)
    ready.check(b=b, a=a)
    assert ready.compiled == 1


def test_two_open_dimensions_that_are_both_padded() -> None:
    nodes = [helper.make_node("MatMul", ["x", "w"], ["a"]), helper.make_node("Relu", ["a"], ["y"])]
    ready = Counted(model_of(nodes, {"x": ("batch", "sequence", 4)}, {"y": 3}, {"w": normal(4, 5)}))
    for batch in (3, 4):
        for length in (5, 6, 7, 8):
            ready.check(x=normal(batch, length, 4))
    assert ready.compiled == 1


def test_dimensions_without_a_name() -> None:
    model = load_any(model_of([helper.make_node("Relu", ["x"], ["y"])], {"x": (None, 4)}, {"y": 2}))  # type: ignore[dict-item]
    assert isinstance(model, OpenModel)
    assert model.dims == ("x.0",)
    assert isinstance(load_any(two_layers(), dims={"batch": 4}), AnyModel)
    renamed = load_any(two_layers(), {"x": ("rows", 6)})
    assert isinstance(renamed, OpenModel)
    assert renamed.dims == ("rows",)


def test_sizes_that_contradict_each_other() -> None:
    nodes = [helper.make_node("Add", ["a", "b"], ["y"])]
    ready = Counted(model_of(nodes, {"a": ("n", 4), "b": ("n", 4)}, {"y": 2}))
    with pytest.raises(ArgumentError, match="dimension 'n' is 3 in input 'a' and 2 in input 'b'"):
        ready.run(normal(3, 4), normal(2, 4))
    with pytest.raises(ArgumentError, match=r"input 'a' has shape \(3, 5\), but the model takes \(n, 4\)"):
        ready.run(normal(3, 5), normal(3, 5))
    with pytest.raises(ArgumentError, match=r"input 'a' has shape \(3,\), but the model takes \(n, 4\)"):
        ready.run(normal(3), normal(3, 4))
    with pytest.raises(ArgumentError, match="input 'b' is float64; convert it"):
        ready.run(normal(3, 4), np.zeros((3, 4)))


@pytest.mark.parametrize(
    ("dims", "message"),
    [
        ({"rows": 3}, "the model has no open dimension 'rows'; it has: batch"),
        ({"batch": 0}, "greater than 0"),
        ({"batch": ()}, "one or more"),
        ({"batch": (4, -1)}, "greater than 0"),
    ],
)
def test_sizes_that_cannot_be(dims: dict[str, object], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        load_any(two_layers(), dims=dims)  # type: ignore[arg-type]


def test_tasks_are_those_of_the_named_sizes() -> None:
    model = load_any(two_layers(), dims={"batch": (2, 4)})
    assert isinstance(model, OpenModel)
    single = [len(model.at({"batch": size}).tasks) for size in (2, 4)]
    assert len(model.tasks) == sum(single)
    unnamed = load_any(two_layers())
    with pytest.raises(ArgumentError, match=r'dims=\{"batch": \(1, 8, 32\)\}'):
        assert unnamed.tasks


def heads() -> onnx.ModelProto:
    """Sequences split into heads, transposed, and merged again: indices that only arithmetic shows to keep rows apart."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"]),
        helper.make_node("Reshape", ["a", "split"], ["b"]),
        helper.make_node("Transpose", ["b"], ["c"], perm=[0, 2, 1, 3]),
        helper.make_node("Softmax", ["c"], ["d"]),
        helper.make_node("Transpose", ["d"], ["e"], perm=[0, 2, 1, 3]),
        helper.make_node("Reshape", ["e", "merge"], ["y"]),
    ]
    constants = {"w": normal(6, 8), "split": np.array([0, 0, 2, 4]), "merge": np.array([0, 0, 8])}
    return model_of(nodes, {"x": ("batch", "sequence", 6)}, {"y": 3}, constants)


def test_reshapes_that_keep_rows_apart() -> None:
    ready = Counted(heads())
    for batch in (3, 4):
        for length in (5, 6, 7, 8):
            ready.check(x=normal(batch, length, 6))
    assert ready.compiled == 1


def test_the_least_recently_used_programs_go() -> None:
    proto = two_layers()
    ready = Counted(proto)
    model = load_any(proto)
    assert isinstance(model, OpenModel)
    ready.run = OpenExecutable(model, ready._build, keep=2)
    for size in (1, 2, 4, 1, 4, 3):
        ready.check(x=normal(size, 6))
    assert ready.compiled == 4
    assert ready.run.programs == 2


def test_many_threads_share_programs() -> None:
    ready = Counted(two_layers())
    sizes = RNG.integers(1, 17, 64)
    inputs = [normal(int(size), 6) for size in sizes]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda x: ready.run({"x": x})["y"], inputs))
    for x, y in zip(inputs, found, strict=True):
        np.testing.assert_allclose(y, ready.reference.run(None, {"x": x})[0], rtol=1e-4, atol=1e-5)
    assert ready.compiled == len({int(size - 1).bit_length() for size in sizes})


def test_values_decide_shapes() -> None:
    """A shape, axes to fold, and how often to repeat, each an input; and an open dimension beside them."""
    nodes = [
        helper.make_node("ReduceSum", ["x", "axes"], ["a"], keepdims=1),
        helper.make_node("Reshape", ["a", "shape"], ["b"]),
        helper.make_node("Tile", ["b", "repeats"], ["y"]),
    ]
    whole = TensorProto.INT64
    proto = model_of(
        nodes, {"x": ("rows", 4), "axes": (1,), "shape": (2,), "repeats": (2,)}, {"y": 2},
        dtypes={"axes": whole, "shape": whole, "repeats": whole},
    )  # fmt: skip
    ready = Counted(proto)
    for rows, axis, shape, repeats in (
        (6, 1, (2, 3), (1, 2)),
        (6, 1, (3, 2), (1, 2)),
        (6, 0, (2, 2), (2, 1)),
        (4, 0, (2, 2), (2, 1)),
    ):
        ready.check(x=normal(rows, 4), axes=np.array([axis]), shape=np.array(shape), repeats=np.array(repeats))
    compiled = ready.compiled
    ready.check(x=normal(6, 4), axes=np.array([1]), shape=np.array((2, 3)), repeats=np.array((1, 2)))
    assert ready.compiled == compiled


def test_an_array_that_decided_a_shape_may_change_afterwards() -> None:
    nodes = [helper.make_node("Reshape", ["x", "shape"], ["y"])]
    ready = Counted(model_of(nodes, {"x": (6, 4), "shape": (2,)}, {"y": 2}, dtypes={"shape": TensorProto.INT64}))
    shape = np.array([3, 8])
    for extents in ((3, 8), (12, 2), (3, 8)):
        shape[:] = extents
        ready.check(x=normal(6, 4), shape=shape)
    assert ready.compiled == 2
    with pytest.raises(ArgumentError, match="input 'shape' is int32; convert it"):
        ready.run(normal(6, 4), np.array([3, 8], np.int32))


def test_values_that_make_no_sense_are_told() -> None:
    nodes = [helper.make_node("Reshape", ["x", "shape"], ["y"], name="fold")]
    ready = Counted(model_of(nodes, {"x": (6, 4), "shape": (2,)}, {"y": 2}, dtypes={"shape": TensorProto.INT64}))
    with pytest.raises(ModelError, match=r"node 'fold' \(Reshape\)"):
        ready.run(normal(6, 4), np.array([7, 7]))
    ready.check(x=normal(6, 4), shape=np.array([4, 6]))


def test_public_names_with_real_programs(tmp_path: Path) -> None:
    """``from_onnx``, ``tune`` and ``compile``: what was measured for a named size is what serves the sizes below it."""
    nodes = [helper.make_node("MatMul", ["x", "w"], ["a"]), helper.make_node("Relu", ["a"], ["y"])]
    proto = model_of(nodes, {"x": ("batch", 6)}, {"y": 2}, {"w": normal(6, 8)})
    model = al.from_onnx(proto, dims={"batch": (2, 4)})
    assert isinstance(model, OpenModel)
    result = al.tune(model, trials=4, database=tmp_path / "t.db", progress=False)
    assert len(result.tasks) == 2
    run = al.compile(model, tmp_path / "t.db")
    reference = ReferenceEvaluator(proto)
    for size in (1, 2, 3, 4, 5):
        x = normal(size, 6)
        np.testing.assert_allclose(run(x)["y"], reference.run(None, {"x": x})[0], rtol=1e-4, atol=1e-5)
    assert run.programs == 3
    profile = run.profile({"x": normal(3, 6)}, runs=2, peaks=PEAKS)
    assert run.programs == 3
    assert [step.facts.name.endswith("4x8") for step in profile.steps] == [True]  # of the program for 4
    assert profile.steps[0].facts.task in {task.key for task, _ in model.at({"batch": 4}).tasks}
    run.export(tmp_path / "three.so", dims={"batch": 3})
    np.testing.assert_array_equal(al.load(tmp_path / "three.so")(x[:3])["y"], al.compile(model.at({"batch": 3}))(x[:3])["y"])
    with pytest.raises(ArgumentError, match="dimension 'batch' is open; give its size"):
        run.export(tmp_path / "open.so")
    few = al.compile(model, keep=1)
    for size in (2, 5):
        few(normal(size, 6))
    assert few.programs == 1
    with pytest.raises(ArgumentError, match="keep is 0"):
        al.compile(model, keep=0)
    fixed = al.compile(al.from_onnx(proto, dims={"batch": 3}))
    assert isinstance(fixed, Executable)
    assert fixed(x[:3])["y"].shape == (3, 8)
