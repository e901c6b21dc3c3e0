"""Random variations of a model of one operator: attributes, optional inputs, dtypes, data, operator sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

import numpy as np
import onnx
from onnx import AttributeProto, helper, numpy_helper

Data: TypeAlias = Any

_FLAGS: Final = frozenset(
    (
        "align_corners",
        "allowzero",
        "antialias",
        "ceil_mode",
        "center_point_box",
        "count_include_pad",
        "detect_negative",
        "detect_positive",
        "exclude_outside",
        "exclusive",
        "fmod",
        "input_forget",
        "inverse",
        "is_case_sensitive",
        "keepdims",
        "largest",
        "linear_before_reset",
        "new_axis",
        "noop_with_empty_axes",
        "normalize_variance",
        "onesided",
        "periodic",
        "output_sequence",
        "reverse",
        "saturate",
        "select_last_index",
        "spatial",
        "storage_order",
        "training_mode",
        "transA",
        "transB",
        "upper",
    )
)

#: What an attribute that is a string may be: of an operator, else of any that has it.
_CHOICES: Final[Mapping[str, Sequence[str]]] = {
    "DepthToSpace.mode": ("DCR", "CRD"),
    "GridSample.mode": ("linear", "nearest", "cubic"),
    "Pad.mode": ("constant", "reflect", "edge", "wrap"),
    "Resize.coordinate_transformation_mode": (
        "half_pixel",
        "asymmetric",
        "pytorch_half_pixel",
        "align_corners",
        "tf_crop_and_resize",
    ),
    "Resize.mode": ("nearest", "linear", "cubic"),
    "RoiAlign.coordinate_transformation_mode": ("half_pixel", "output_half_pixel"),
    "RoiAlign.mode": ("avg", "max"),
    "TensorScatter.mode": ("linear", "circular"),
    "TfIdfVectorizer.mode": ("TF", "IDF", "TFIDF"),
    "Upsample.mode": ("nearest", "linear"),
    "NegativeLogLikelihoodLoss.reduction": ("mean", "sum", "none"),
    "SoftmaxCrossEntropyLoss.reduction": ("mean", "sum", "none"),
    "approximate": ("none", "tanh"),
    "auto_pad": ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"),
    "case_change_action": ("LOWER", "UPPER", "NONE"),
    "direction": ("LEFT", "RIGHT"),
    "keep_aspect_ratio_policy": ("stretch", "not_larger", "not_smaller"),
    "nearest_mode": ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"),
    "norm": ("MAX", "L1", "L2"),
    "padding_mode": ("zeros", "border", "reflection"),
    "post_transform": ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"),
    "reduction": ("none", "add", "mul", "max", "min"),
}

#: Types that data may come in instead.
_OTHER_TYPES: Final = {"float32": ("float64", "float16"), "int32": ("int8", "uint8", "int64"), "int64": ("int32",)}

_NEWEST: Final = 24
_OLDEST: Final = 7


@dataclass(frozen=True)
class Case:
    """A model of one operator, and what it is given.

    Attributes:
        node: reads nothing but ``data``.
        data: input name → array, or a list of arrays.
        kinds: input name → ONNX's type.
        opsets: domain → version.
    """

    node: onnx.NodeProto
    data: Mapping[str, Data]
    kinds: Mapping[str, onnx.TypeProto]
    opsets: Mapping[str, int]

    @property
    def operator(self) -> str:
        return f"{self.node.domain}.{self.node.op_type}" if self.node.domain else str(self.node.op_type)

    @property
    def schema(self) -> onnx.defs.OpSchema:
        return onnx.defs.get_schema(self.node.op_type, self.opsets[self.node.domain], self.node.domain)

    def model(self, constants: Sequence[str] = (), hidden: str = "") -> onnx.ModelProto:
        """The model, with some inputs as constants, and one of a shape that is known only while the model runs."""
        inputs = [onnx.ValueInfoProto(name=name, type=self.kinds[name]) for name in self.data if name not in constants]
        weights = [numpy_helper.from_array(self.data[name], name) for name in constants]
        nodes = [self.node]
        if hidden:
            inner = onnx.NodeProto()
            inner.CopyFrom(self.node)
            for position, name in enumerate(self.node.input):
                if name == hidden:
                    inner.input[position] = "hidden"
            nodes = [helper.make_node("Compress", [hidden, "all of it"], ["hidden"], axis=0), inner]
            inputs.append(helper.make_tensor_value_info("all of it", onnx.TensorProto.BOOL, [len(self.data[hidden])]))
        outputs = [onnx.ValueInfoProto(name=name) for name in self.node.output if name]
        graph = helper.make_graph(nodes, "audit", inputs, outputs, weights)
        imports = [helper.make_opsetid(domain, version) for domain, version in self.opsets.items()]
        return helper.make_model(graph, opset_imports=imports, ir_version=10)

    def __str__(self) -> str:
        attributes = {a.name: _shown(helper.get_attribute_value(a)) for a in self.node.attribute}
        shapes = {
            name: f"{d.dtype}{list(d.shape)}" if isinstance(d, np.ndarray) else f"{len(d)} arrays"
            for name, d in self.data.items()
        }
        return f"{self.operator}-{self.opsets[self.node.domain]} {attributes} of {shapes}"


def _shown(value: Any) -> Any:
    return type(value).__name__ if isinstance(value, onnx.GraphProto | onnx.TensorProto | onnx.SparseTensorProto) else value


def varied(case: Case, rng: np.random.Generator) -> Case:
    """Another one of the same operator. Not all are valid."""
    node = onnx.NodeProto()
    node.CopyFrom(case.node)
    opsets = dict(case.opsets)
    if not case.node.domain and rng.random() < 0.4:
        opsets[""] = int(rng.integers(_OLDEST, _NEWEST + 1))
    found = replace(case, node=node, opsets=opsets)
    _vary_attributes(found, rng)
    data = _fewer_inputs(found, rng)
    data = {name: _varied_data(datum, rng) for name, datum in data.items()}
    return _other_types(replace(found, data=data), rng) if rng.random() < 0.2 else replace(found, data=data)


# Attributes --------------------------------------------------------------------------------------------------------


def _vary_attributes(case: Case, rng: np.random.Generator) -> None:
    """In place."""
    try:
        schema = case.schema
    except onnx.defs.SchemaError:
        return
    given = {attribute.name: attribute for attribute in case.node.attribute}
    kept = []
    for name, description in schema.attributes.items():
        attribute = given.get(name)
        draw = rng.random()
        if attribute is None and draw < 0.7:
            continue
        if attribute is not None and not description.required and draw < 0.15:
            continue
        if attribute is not None and draw < 0.5:
            kept.append(attribute)
            continue
        value = _value(case, name, attribute, description, rng)
        if value is not None:
            kept.append(helper.make_attribute(name, value))
        elif attribute is not None:
            kept.append(attribute)
    if any(a.name == "auto_pad" and a.s.startswith(b"SAME") for a in kept):
        # There onnxruntime's pooling forgets what the window spans.
        kept = [attribute for attribute in kept if attribute.name != "dilations"]
    copies = [onnx.AttributeProto.FromString(attribute.SerializeToString()) for attribute in kept]
    del case.node.attribute[:]
    case.node.attribute.extend(copies)


def _value(
    case: Case, name: str, given: AttributeProto | None, description: onnx.defs.OpSchema.Attribute, rng: np.random.Generator
) -> Any:
    """Another value of an attribute; ``None`` if there is none to think of."""
    choices = _CHOICES.get(f"{case.node.op_type}.{name}") or _CHOICES.get(name)
    old = helper.get_attribute_value(given) if given is not None else None
    if old is None and description.default_value.name:
        old = helper.get_attribute_value(description.default_value)
    first = next(iter(case.data.values()), None)
    rank = first.ndim if isinstance(first, np.ndarray) else 1
    kind = description.type
    if kind == onnx.defs.OpSchema.AttrType.STRING:
        return str(rng.choice(choices)) if choices else None
    if kind == onnx.defs.OpSchema.AttrType.INT:
        if name == "num_outputs":
            # It says what the node has; with another number onnxruntime ends the process.
            return None
        if name == "sorted":
            # What is not sorted may come in any order.
            return 1
        if name in _FLAGS:
            return int(rng.integers(2))
        if name.endswith("axis") and rank:
            return int(rng.integers(-rank, rank))
        return None if old is None else max(1, int(old) + int(rng.integers(-1, 2)))
    if kind == onnx.defs.OpSchema.AttrType.FLOAT:
        return None if old is None else float(old) * float(rng.uniform(0.3, 2)) + float(rng.choice([0, 0, 0.25]))
    if case.node.domain:
        # Lists of trees, keys, and classes, which fit each other.
        return None
    if kind == onnx.defs.OpSchema.AttrType.INTS:
        return _integers(name, old, rank, rng)
    if kind == onnx.defs.OpSchema.AttrType.FLOATS and old:
        return [float(v) * float(rng.uniform(0.5, 1.5)) for v in old]
    return None


def _integers(name: str, old: Sequence[int] | None, rank: int, rng: np.random.Generator) -> list[int] | None:
    length = len(old) if old else {"pads": 2}.get(name, 1) * max(rank - 2, 0)
    if name in ("strides", "dilations"):
        return [int(v) for v in rng.integers(1, 3, length)]
    if name == "pads":
        return [int(v) for v in rng.integers(0, 2, length)]
    if name == "axes" and rank:
        return sorted(int(v) for v in rng.choice(rank, min(rank, int(rng.integers(1, 3))), replace=False))
    return None if not old else [max(1, int(v) + int(rng.integers(-1, 2))) for v in old]


# Inputs ------------------------------------------------------------------------------------------------------------


def _fewer_inputs(case: Case, rng: np.random.Generator) -> dict[str, Data]:
    try:
        formal = case.schema.inputs
    except onnx.defs.SchemaError:
        return dict(case.data)
    if case.node.op_type == "Loop":
        # Without a count and a condition it runs for ever.
        return dict(case.data)
    for position, name in enumerate(case.node.input):
        own = formal[min(position, len(formal) - 1)]
        if name and own.option == onnx.defs.OpSchema.FormalParameterOption.Optional and rng.random() < 0.2:
            case.node.input[position] = ""
    while case.node.input and not case.node.input[-1]:
        del case.node.input[-1]
    return {name: datum for name, datum in case.data.items() if name in case.node.input}


def _varied_data(datum: Data, rng: np.random.Generator) -> Data:
    if isinstance(datum, list):
        return [_varied_data(part, rng) for part in datum]
    if not isinstance(datum, np.ndarray) or rng.random() < 0.4:
        return datum
    if datum.dtype.kind == "f" and datum.size > 2:
        fresh = rng.standard_normal(datum.shape) if datum.min() < 0 or rng.random() < 0.3 else rng.uniform(0, 1, datum.shape)
        return (fresh * max(1.0, float(np.nanmax(np.abs(np.nan_to_num(datum, posinf=1, neginf=1)))))).astype(datum.dtype)
    if datum.dtype.kind == "b":
        return rng.random(datum.shape) < 0.5
    if datum.dtype.kind in "iuOU" and datum.size > 1:
        return rng.permutation(datum.reshape(-1)).reshape(datum.shape)
    return datum


def _other_types(case: Case, rng: np.random.Generator) -> Case:
    """All data of one dtype in another."""
    present = sorted({str(d.dtype) for d in case.data.values() if isinstance(d, np.ndarray) and str(d.dtype) in _OTHER_TYPES})
    if not present:
        return case
    old = str(rng.choice(present))
    new = str(rng.choice(_OTHER_TYPES[old]))
    data, kinds = dict(case.data), dict(case.kinds)
    for name, datum in case.data.items():
        if isinstance(datum, np.ndarray) and str(datum.dtype) == old:
            data[name] = datum.astype(new)
            kinds[name] = helper.make_tensor_type_proto(helper.np_dtype_to_tensor_dtype(data[name].dtype), datum.shape)
    return replace(case, data=data, kinds=kinds)
