"""A decoder whose caches of keys and values grow with each token, beside onnxruntime.

    python -m benchmarks.generation [--grouped] [--layers 6] [--width 512] [--prompt 40] [--tokens 60] [--rounds 5]

Weights are random, nothing is tuned, and no dimension has named sizes. ``--grouped`` writes it as the builder of onnxruntime's
language models does: in its own operators, with weights of 4 bits, and two heads to each cache. At first a length is new to
ansorlite: it sees whether a program that it has serves it, and else makes one. Both generate in turns, and rest between.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias

import click
import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

import ansorlite as al
from ansorlite.graph.open_executable import OpenExecutable
from ansorlite.target import host
from benchmarks.common.tables import Table, show

Array: TypeAlias = np.ndarray[Any, Any]
Run: TypeAlias = Callable[[Mapping[str, Array]], Mapping[str, Array]]

#: Elements of a head, and words that there are.
_HEAD: Final = 64
_WORDS: Final = 8000

#: Domain of onnxruntime's operators, and rows of a weight that share a scale.
_OWN: Final = "com.microsoft"
_BLOCK: Final = 32

#: Positions that waves are made for, where they are constants.
_MOST: Final = 4096

#: Seconds in which the other's threads go to sleep.
_REST: Final = 0.3


class _Writer:
    """Nodes and constants of a model."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def __call__(self, operator: str, *inputs: str, **attributes: Any) -> str:
        return self.several(1, operator, *inputs, **attributes)[0]

    def several(self, count: int, operator: str, *inputs: str, **attributes: Any) -> list[str]:
        names = [f"{operator.lower()}_{len(self.nodes)}_{number}" for number in range(count)]
        self.nodes.append(helper.make_node(operator, inputs, names, **attributes))
        return names

    def constant(self, array: Any) -> str:
        name = f"constant_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def product(self, x: str, columns: int, rows: int) -> str:
        weights = self.rng.standard_normal((rows, columns)).astype(np.float32) / np.float32(rows**0.5)
        return self("MatMul", x, self.constant(weights))

    def small_product(self, x: str, columns: int, rows: int) -> str:
        """With weights of 4 bits."""
        packed = self.rng.integers(0, 256, (columns, rows // _BLOCK, _BLOCK // 2)).astype(np.uint8)
        scales = self.rng.standard_normal((columns, rows // _BLOCK)).astype(np.float32) / np.float32(5 * rows**0.5)
        parts = self.constant(packed), self.constant(scales)
        return self("MatMulNBits", x, *parts, domain=_OWN, K=rows, N=columns, bits=4, block_size=_BLOCK)


def _decoder(layers: int, width: int) -> onnx.ModelProto:
    """Embeddings, layers of attention and gated products after norms, scores of words; positions follow from the caches."""
    w = _Writer(0)
    one, heads = w.constant(np.array([1])), width // _HEAD
    past = w("Shape", "past.0.value", start=2, end=3)
    total = w("Add", past, w("Shape", "input_ids", start=1, end=2))
    number = [w("Squeeze", extent) for extent in (past, total)]
    places = w("Range", *number, w.constant(np.array(1)))
    rates = w.constant((10000.0 ** -(np.arange(0, _HEAD, 2) / _HEAD)).astype(np.float32)[None])
    angles = w("Mul", w("Unsqueeze", w("Cast", places, to=TensorProto.FLOAT), one), rates)
    waves = [w(kind, w("Concat", angles, angles, axis=1)) for kind in ("Cos", "Sin")]
    keys = w("Range", w.constant(np.array(0)), number[1], w.constant(np.array(1)))
    hidden = w("Greater", w("Unsqueeze", keys, w.constant(np.array([0]))), w("Unsqueeze", places, one))
    mask = w("Where", hidden, w.constant(np.float32(-1e9)), w.constant(np.float32(0)))
    x = w("Gather", w.constant(w.rng.standard_normal((_WORDS, width)).astype(np.float32)), "input_ids")
    split, joined = w.constant(np.array([0, 0, heads, _HEAD])), w.constant(np.array([0, 0, width]))
    outputs = []
    for layer in range(layers):
        h = _norm(w, x, width)
        rows = [w("Transpose", w("Reshape", w.product(h, width, width), split), perm=[0, 2, 1, 3]) for _ in "qkv"]
        query, key = (_turned(w, each, waves) for each in rows[:2])
        key = w("Concat", f"past.{layer}.key", key, axis=2)
        value = w("Concat", f"past.{layer}.value", rows[2], axis=2)
        scores = w("MatMul", query, w("Transpose", key, perm=[0, 1, 3, 2]))
        scores = w("Add", w("Mul", scores, w.constant(np.float32(_HEAD**-0.5))), mask)
        mixed = w("Transpose", w("MatMul", w("Softmax", scores), value), perm=[0, 2, 1, 3])
        x = w("Add", x, w.product(w("Reshape", mixed, joined), width, width))
        h = _norm(w, x, width)
        gate, up = (w.product(h, 4 * width, width) for _ in range(2))
        x = w("Add", x, w.product(w("Mul", w("Mul", gate, w("Sigmoid", gate)), up), width, 4 * width))
        outputs += [(key, f"present.{layer}.key"), (value, f"present.{layer}.value")]
    outputs.insert(0, (w.product(_norm(w, x, width), _WORDS, width), "logits"))
    return _model(w, layers, heads, outputs)


def _grouped_decoder(layers: int, width: int) -> onnx.ModelProto:
    """The same in onnxruntime's operators: lengths are counted from a mask, and a norm comes with the sum before it."""
    w = _Writer(0)
    one, heads = w.constant(np.array([1])), width // _HEAD
    groups = heads // 2
    ends = w("Cast", w("Sub", w("ReduceSum", "attention_mask", one, keepdims=0), one), to=TensorProto.INT32)
    total = w("Cast", w("Squeeze", w("Shape", "attention_mask", start=1)), to=TensorProto.INT32)
    angles = np.arange(_MOST)[:, None] * 10000.0 ** -(np.arange(0, _HEAD, 2) / _HEAD)
    waves = [w.constant(wave(angles).astype(np.float32)) for wave in (np.cos, np.sin)]
    scale, small = w.constant(np.ones(width, np.float32)), 1e-6
    x = w("Gather", w.constant(w.rng.standard_normal((_WORDS, width)).astype(np.float32)), "input_ids")
    h = w("SimplifiedLayerNormalization", x, scale, epsilon=small, axis=-1)
    outputs = []
    for layer in range(layers):
        parts = [w.small_product(h, count * _HEAD, width) for count in (heads, groups, groups)]
        past = [f"past.{layer}.{part}" for part in ("key", "value")]
        own = {"domain": _OWN, "num_heads": heads, "kv_num_heads": groups, "do_rotary": 1}
        mixed, key, value = w.several(3, "GroupQueryAttention", *parts, *past, ends, total, *waves, **own)
        outputs += [(key, f"present.{layer}.key"), (value, f"present.{layer}.value")]
        h, x = _summed(w, x, w.small_product(mixed, width, width), scale)
        gate, up = (w.small_product(h, 4 * width, width) for _ in range(2))
        gated = w("Mul", w("Mul", gate, w("Sigmoid", gate)), up)
        h, x = _summed(w, x, w.small_product(gated, width, 4 * width), scale)
    outputs.insert(0, (w.small_product(h, _WORDS, width), "logits"))
    return _model(w, layers, groups, outputs, mask=True)


def _summed(w: _Writer, x: str, y: str, scale: str) -> tuple[str, str]:
    """Of a sum its norm, and itself."""
    norm, _, _, total = w.several(4, "SkipSimplifiedLayerNormalization", x, y, scale, domain=_OWN, epsilon=1e-6)
    return norm, total


def _model(w: _Writer, layers: int, heads: int, outputs: list[tuple[str, str]], *, mask: bool = False) -> onnx.ModelProto:
    """
    Args:
        heads: of caches.
        outputs: value and name of each.
        mask: whether what is seen is an input.
    """
    w.nodes.extend(helper.make_node("Identity", [source], [name]) for source, name in outputs)
    kind = helper.make_tensor_value_info
    inputs = [kind("input_ids", TensorProto.INT64, ["batch", "sequence"])]
    caches = [f"past.{layer}.{part}" for layer in range(layers) for part in ("key", "value")]
    inputs += [kind("attention_mask", TensorProto.INT64, ["batch", "total"])] * mask
    inputs += [kind(name, TensorProto.FLOAT, ["batch", heads, "past", _HEAD]) for name in caches]
    results = [kind(name, TensorProto.FLOAT, [None] * (4 if number else 3)) for number, (_, name) in enumerate(outputs)]
    graph = helper.make_graph(w.nodes, "decoder", inputs, results, w.constants)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(_OWN, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def _norm(w: _Writer, x: str, width: int) -> str:
    mean = w("ReduceMean", w("Mul", x, x), axes=[-1], keepdims=1)
    scaled = w("Div", x, w("Sqrt", w("Add", mean, w.constant(np.float32(1e-6)))))
    return w("Mul", scaled, w.constant(np.ones(width, np.float32)))


def _turned(w: _Writer, x: str, waves: list[str]) -> str:
    """Rotary positions."""
    axis, middle, end = (w.constant(np.array([number])) for number in (3, _HEAD // 2, _HEAD))
    second, first = w("Slice", x, middle, end, axis), w("Slice", x, w.constant(np.array([0])), middle, axis)
    return w("Add", w("Mul", x, waves[0]), w("Mul", w("Concat", w("Neg", second), first, axis=3), waves[1]))


def _generated(run: Run, given: onnx.ModelProto, prompt: int, tokens: int) -> Iterator[tuple[float, Array]]:
    """Of the prompt, and of each token: seconds, and scores of the last place."""
    ids = np.random.default_rng(1).integers(0, _WORDS, (1, prompt))
    names = [entry.name for entry in given.graph.input]
    caches = [entry for entry in given.graph.input if entry.name.startswith("past.")]
    heads = caches[0].type.tensor_type.shape.dim[1].dim_value
    past = {entry.name: np.zeros((1, heads, 0, _HEAD), np.float32) for entry in caches}
    for number in range(tokens + 1):
        mask = {"attention_mask": np.ones((1, prompt + number), np.int64)} if "attention_mask" in names else {}
        begin = time.perf_counter()
        found = run({"input_ids": ids, **mask, **past})
        yield time.perf_counter() - begin, found["logits"][:, -1]
        ids = found["logits"][:, -1].argmax(-1)[:, None]
        past = {name: found[name.replace("past", "present")] for name in past}


@click.command()
@click.option("--grouped", is_flag=True, help="In onnxruntime's operators, with weights of 4 bits.")
@click.option("--layers", default=6, show_default=True)
@click.option("--width", default=512, show_default=True, help="A multiple of 128.")
@click.option("--prompt", default=40, show_default=True, help="Words in it.")
@click.option("--tokens", default=60, show_default=True, help="To generate.")
@click.option("--rounds", default=5, show_default=True, help="After the first one.")
def main(grouped: bool, layers: int, width: int, prompt: int, tokens: int, rounds: int) -> None:
    """Generate with growing caches, beside onnxruntime."""
    proto = (_grouped_decoder if grouped else _decoder)(layers, width)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = host().threads
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    session = onnxruntime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [entry.name for entry in session.get_outputs()]
    served = al.compile(al.from_onnx(proto))
    assert isinstance(served, OpenExecutable)
    runs: dict[str, Run] = {
        "ansorlite": lambda inputs: served(inputs),
        "onnxruntime": lambda inputs: dict(zip(names, session.run(None, dict(inputs)), strict=True)),
    }
    times: dict[str, list[list[float]]] = {name: [] for name in runs}
    scores: dict[str, list[Array]] = {}
    for _ in range(rounds + 1):
        for name, run in runs.items():
            time.sleep(_REST)
            results = list(_generated(run, proto, prompt, tokens))
            times[name].append([seconds for seconds, _ in results])
            scores[name] = [array for _, array in results]
    mine, theirs = (np.concatenate(scores[name]) for name in runs)
    rows = []
    for name in runs:
        first, *later = (np.array(each) * 1e3 for each in times[name])
        again = np.array(later)
        # One of the first tokens made a program: the mean tells of it, too.
        found = [f"{first[0]:.0f}", f"{np.median(first[1:]):.1f}", f"{first[1:].mean():.1f}"]
        rows.append((name, *found, f"{np.median(again[:, 0]):.1f}", f"{np.median(again[:, 1:]):.2f}"))
    head = ("ms", "prompt, first", "token, first", "its mean", "prompt", "token")
    show(Table("generation", head, tuple(rows)))
    print(f"{served.programs} programs; scores differ by {np.abs(mine - theirs).max() / np.abs(theirs).max():.0e} of the largest")


if __name__ == "__main__":
    main()
