"""Ways to spoil a model: bytes of the file, fields of the protobuf, values of constants, and whole hostile constructions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import numpy as np
import onnx
from google.protobuf.descriptor import FieldDescriptor as Field
from google.protobuf.message import Message
from numpy.random import Generator
from onnx import TensorProto, helper, numpy_helper

from tests.fuzz.seeds import SEEDS

_INTEGERS: Final = (0, 1, -1, 2, 7, -2, 63, 255, 1 << 16, 1 << 31, (1 << 31) - 1, 10**12, 1 << 62, (1 << 63) - 1, -(1 << 63))
_FLOATS: Final = (0.0, -1.0, float("nan"), float("inf"), -float("inf"), 1e38, 1e-38, 1e12)
_WORDS: Final = ("", "x", "y", "../../etc/passwd", "a" * 5000, "\x00", "name with spaces", "ai.onnx.ml", "linear", "{}%s", "é")
_DTYPES: Final = tuple(range(26))


def mutated(seed: int) -> tuple[str, bytes]:
    """A seed model after some mutations, and what was done to it; the same for the same ``seed``."""
    rng = np.random.default_rng(seed)
    name = str(rng.choice(list(SEEDS)))
    model = onnx.ModelProto()
    model.CopyFrom(SEEDS[name])
    done = [name]
    if rng.random() < 0.6:
        construction = str(rng.choice(list(CONSTRUCTIONS), p=_LIKELY))
        CONSTRUCTIONS[construction](model, rng)
        done.append(construction)
    fields = int(rng.choice([0, 1, 2, 3])) if len(done) > 1 else int(rng.choice([1, 2, 3]))
    for _ in range(fields):
        change_field(model, rng)
    done.append(f"{fields} fields")
    data: bytes = model.SerializeToString()
    if rng.random() < 0.25:
        damage = str(rng.choice(list(DAMAGES)))
        data = DAMAGES[damage](data, rng)
        done.append(damage)
    return ", ".join(done), data


# Bytes ------------------------------------------------------------------------------------------------------------


def flip_bytes(data: bytes, rng: Generator) -> bytes:
    flipped = bytearray(data)
    for _ in range(rng.integers(1, 5)):
        flipped[rng.integers(len(data))] = rng.integers(256)
    return bytes(flipped)


def cut(data: bytes, rng: Generator) -> bytes:
    return data[: rng.integers(len(data))]


def repeat_bytes(data: bytes, rng: Generator) -> bytes:
    begin, size, to = rng.integers(len(data)), rng.integers(1, 64), rng.integers(len(data))
    return data[:to] + data[begin : begin + size] + data[to:]


def drop_bytes(data: bytes, rng: Generator) -> bytes:
    begin, size = rng.integers(len(data)), rng.integers(1, 64)
    return data[:begin] + data[begin + size :]


def break_text(data: bytes, rng: Generator) -> bytes:
    """A word, wherever it stands, becomes bytes that are no UTF-8."""
    words = sorted(set(re.findall(rb"[A-Za-z_]+", data)))
    old = words[rng.integers(len(words))]
    return data.replace(old, b"\xff" * len(old))


# Fields -----------------------------------------------------------------------------------------------------------


def change_field(model: onnx.ModelProto, rng: Generator) -> None:
    """One field of one message, anywhere."""
    places = [(message, field) for message in _messages(model) for field, _ in message.ListFields()]
    message, field = places[rng.integers(len(places))]
    if _is_repeated(field):
        _change_list(message, field, rng)
    elif field.type != Field.TYPE_MESSAGE:
        setattr(message, field.name, _hostile(field, getattr(message, field.name), model, rng))
    elif rng.random() < 0.3:
        message.ClearField(field.name)
    else:
        others = [m for m in _messages(model) if m.DESCRIPTOR is field.message_type]
        copy = type(others[0])()
        copy.CopyFrom(others[rng.integers(len(others))])
        getattr(message, field.name).CopyFrom(copy)


def _change_list(message: Message, field: Any, rng: Generator) -> None:
    items = getattr(message, field.name)
    at, to = rng.integers(len(items), size=2)
    kept = list(items)
    match rng.integers(4):
        case 0:
            kept.insert(to, kept[at])
        case 1:
            del kept[at]
        case 2:
            kept[at], kept[to] = kept[to], kept[at]
        case _ if field.type != Field.TYPE_MESSAGE:
            kept[at] = _hostile(field, kept[at], message, rng)
    if field.type == Field.TYPE_MESSAGE:
        copies = []
        for item in kept:
            copies.append(type(item)())
            copies[-1].CopyFrom(item)
        kept = copies
    message.ClearField(field.name)
    getattr(message, field.name).extend(kept)


def _is_repeated(field: Any) -> bool:
    return bool(field.is_repeated)


def _hostile(field: Any, old: Any, root: Message, rng: Generator) -> Any:
    match field.type:
        case Field.TYPE_INT64 | Field.TYPE_SINT64:
            return int(rng.choice(_INTEGERS[: 8 if rng.random() < 0.5 else None]))
        case Field.TYPE_UINT64:
            return abs(int(rng.choice(_INTEGERS[:-1])))
        case Field.TYPE_INT32:
            return int(rng.choice(_DTYPES)) if rng.random() < 0.8 else int(rng.choice([-1, 1 << 30, -(1 << 31)]))
        case Field.TYPE_FLOAT | Field.TYPE_DOUBLE:
            return float(rng.choice(_FLOATS))
        case Field.TYPE_STRING:
            known = [
                text
                for m in _messages(root)
                for f, text in m.ListFields()
                if f.type == Field.TYPE_STRING and isinstance(text, str)
            ]
            return str(rng.choice([*known, *_WORDS] if rng.random() < 0.8 else list(_OPERATORS)))
        case Field.TYPE_BYTES:
            keep = rng.integers(0, len(old) + 1)
            return old[:keep] if rng.random() < 0.6 else old + rng.bytes(int(rng.integers(1, 9)))
        case Field.TYPE_ENUM:
            return int(rng.choice([value.number for value in field.enum_type.values]))
        case _:
            return old


def _messages(message: Message) -> Iterator[Any]:
    yield message
    for field, value in message.ListFields():
        if field.type == Field.TYPE_MESSAGE:
            for inner in value if _is_repeated(field) else (value,):
                yield from _messages(inner)


_OPERATORS: Final = sorted({schema.name for schema in onnx.defs.get_all_schemas() if schema.domain == ""})


# Values and constructions -----------------------------------------------------------------------------------------


def change_constants(model: onnx.ModelProto, rng: Generator) -> None:
    """Sizes, axes, counts and scales that are hostile."""
    tensors = list(model.graph.initializer)
    for tensor in tensors if tensors else ():
        if rng.random() < 0.6 or tensor.data_type == TensorProto.STRING:
            continue
        array = numpy_helper.to_array(tensor).copy()
        pool = _INTEGERS if array.dtype.kind in "iub" else _FLOATS
        for _ in range(rng.integers(1, 3)):
            if array.size:
                value = rng.choice(pool)
                if array.dtype.kind in "iu":
                    bounds = np.iinfo(array.dtype)
                    value = min(max(int(value), bounds.min), bounds.max)
                array.reshape(-1)[rng.integers(array.size)] = value
        if rng.random() < 0.2:
            array = array.reshape(-1)[: rng.integers(array.size + 1)]
        tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))


def replace_operator(model: onnx.ModelProto, rng: Generator) -> None:
    """Another operator between the same values."""
    node = model.graph.node[rng.integers(len(model.graph.node))]
    node.op_type = str(rng.choice(_OPERATORS))
    if rng.random() < 0.5:
        del node.attribute[:]


def huge_initializer(model: onnx.ModelProto, rng: Generator) -> None:
    """A tensor that declares far more elements than it holds."""
    tensor = model.graph.initializer.add(name="w", data_type=int(rng.choice([1, 7, 9, 8, 17, 22])))
    tensor.dims.extend([1 << 20, 1 << 20] if rng.random() < 0.5 else [1 << 40, 1 << 40, 1 << 40])
    match rng.integers(3):
        case 0:
            tensor.raw_data = b"1234"
        case 1:
            tensor.float_data.append(1.0)
    node = model.graph.node[0]
    if node.input:
        node.input[0] = "w"


def huge_input(model: onnx.ModelProto, rng: Generator) -> None:
    """An input of a size that nobody has."""
    for dim in model.graph.input[0].type.tensor_type.shape.dim:
        if rng.random() < 0.7:
            dim.dim_value = int(rng.choice([1 << 20, 1 << 40, (1 << 63) - 1, 0, 10**6]))


def cycle(model: onnx.ModelProto, rng: Generator) -> None:
    """Nodes that wait for one another."""
    nodes = model.graph.node
    later = nodes[rng.integers(len(nodes))]
    earlier = nodes[rng.integers(len(nodes))]
    if earlier.input and later.output:
        earlier.input[rng.integers(len(earlier.input))] = later.output[0]


def deep_nesting(model: onnx.ModelProto, rng: Generator) -> None:
    """Branches in branches in branches, or a chain of functions."""
    inner = helper.make_graph([helper.make_node("Identity", ["c"], ["r"])], "inner", [], [onnx.ValueInfoProto(name="r")])
    for _ in range(rng.integers(2, 28)):
        node = helper.make_node("If", ["c"], ["r"], then_branch=inner, else_branch=inner if rng.random() < 0.1 else _leaf())
        inner = helper.make_graph([node], "inner", [], [onnx.ValueInfoProto(name="r")])
    model.graph.node.extend(inner.node)
    model.graph.initializer.append(numpy_helper.from_array(np.bool_(True), "c"))
    model.graph.output.append(helper.make_tensor_value_info("r", TensorProto.BOOL, []))


def _leaf() -> onnx.GraphProto:
    return helper.make_graph([helper.make_node("Identity", ["c"], ["r"])], "leaf", [], [onnx.ValueInfoProto(name="r")])


def recursive_functions(model: onnx.ModelProto, rng: Generator) -> None:
    """Functions that call themselves, or each the next one twice."""
    depth, standard = int(rng.integers(1, 30)), helper.make_opsetid("", 21)
    own = helper.make_opsetid("own", 1)
    for level in range(depth):
        called = f"f{(level + 1) % depth}" if rng.random() < 0.1 or level + 1 < depth else ""
        nodes = [
            helper.make_node(called, ["a"], [name], domain="own") if called else helper.make_node("Abs", ["a"], [name])
            for name in "bc"
        ]
        nodes.append(helper.make_node("Add", ["b", "c"], ["d"]))
        model.functions.append(helper.make_function("own", f"f{level}", ["a"], ["d"], nodes, [standard, own]))
    model.graph.node.add(op_type="f0", domain="own", input=["x"], output=["called"])
    model.graph.output.append(helper.make_tensor_value_info("called", TensorProto.FLOAT, None))
    model.opset_import.append(own)


def sparse_tensor(model: onnx.ModelProto, rng: Generator) -> None:
    """A sparse constant whose places need not be in it."""
    sparse = model.graph.sparse_initializer.add(dims=rng.choice(_INTEGERS, rng.integers(1, 4)).tolist())
    count = int(rng.integers(0, 4))
    sparse.values.CopyFrom(numpy_helper.from_array(np.ones(count, np.float32), "w"))
    sparse.indices.CopyFrom(numpy_helper.from_array(rng.choice(_INTEGERS, count)))
    if model.graph.node[0].input:
        model.graph.node[0].input[0] = "w"


def external_data(model: onnx.ModelProto, rng: Generator) -> None:
    """Constants in files that are elsewhere, or are not there."""
    match rng.integers(3):
        case 0:
            tensor = model.graph.initializer.add(name="w", data_type=1, dims=[2])
        case 1:
            tensor = model.graph.sparse_initializer.add(dims=[2]).values
            tensor.MergeFrom(TensorProto(name="w", data_type=1, dims=[2]))
        case _:
            node = model.graph.node.add(op_type="Constant", output=["w"])
            tensor = node.attribute.add(name="value", type=onnx.AttributeProto.TENSOR).t
            tensor.MergeFrom(TensorProto(data_type=1, dims=[2]))
    tensor.data_location = TensorProto.EXTERNAL
    location = str(rng.choice(["../w.bin", "/etc/passwd", "w.bin", "", "link.bin", "a/../../w.bin", "\x00", ".", "//etc/passwd"]))
    for key, value in (("location", location), ("offset", str(rng.choice(_INTEGERS))), ("length", str(rng.choice(_INTEGERS)))):
        if rng.random() < 0.9:
            tensor.external_data.add(key=key, value=value)
    if model.graph.node[0].input:
        model.graph.node[0].input[0] = "w"


CONSTRUCTIONS: Final[Mapping[str, Callable[[onnx.ModelProto, Generator], None]]] = {
    "constants": change_constants,
    "operator": replace_operator,
    "huge initializer": huge_initializer,
    "huge input": huge_input,
    "cycle": cycle,
    "deep nesting": deep_nesting,
    "recursive functions": recursive_functions,
    "external data": external_data,
    "sparse tensor": sparse_tensor,
}

DAMAGES: Final[Mapping[str, Callable[[bytes, Generator], bytes]]] = {
    "flipped bytes": flip_bytes,
    "cut": cut,
    "repeated bytes": repeat_bytes,
    "dropped bytes": drop_bytes,
    "broken text": break_text,
}

_LIKELY: Final = np.array([28, 18, 8, 10, 8, 8, 6, 10, 4]) / 100
