"""Operators that ONNX defines by other operators: their bodies, through ONNX's own inliner."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import onnx
import onnx.inliner
from onnx import FunctionProto, NodeProto, TypeProto, helper

_LOCAL: Final = "ansorlite.function"


def expand(
    node: NodeProto, opsets: Mapping[str, int], types: Sequence[TypeProto]
) -> tuple[list[NodeProto], dict[str, int]] | None:
    """The nodes that ``node`` stands for, and the versions of the operator sets that they are from.

    The nodes read and write the names that ``node`` does, and names of their own, which are unique among themselves.

    Args:
        types: of each input of the node; an empty one where an optional input is left out.

    Returns:
        ``None`` if ONNX defines the operator by no other ones.
    """
    schema = onnx.defs.get_schema(node.op_type, opsets[node.domain], node.domain)
    body = _body(schema, node, opsets[node.domain], types)
    if body is None:
        return None
    versions = {**opsets, **{entry.domain: entry.version for entry in body.opset_import}}
    body.domain, body.name = _LOCAL, node.op_type
    call = NodeProto()
    call.CopyFrom(node)
    call.domain = _LOCAL
    given = {attribute.name for attribute in node.attribute}
    defaults = [a.default_value for a in schema.attributes.values() if a.name not in given and a.default_value.name]
    call.attribute.extend(defaults)
    model = _model(call, body, versions, types)
    return list(onnx.inliner.inline_local_functions(model).graph.node), versions


def _body(schema: onnx.defs.OpSchema, node: NodeProto, version: int, types: Sequence[TypeProto]) -> FunctionProto | None:
    """The definition of the operator for the newest operator set that the model may use."""
    given = {attribute.name for attribute in node.attribute}
    whole = NodeProto()
    whole.CopyFrom(node)
    whole.attribute.extend(a.default_value for a in schema.attributes.values() if a.name not in given and a.default_value.name)
    plain = max((v for v in schema.function_opset_versions if v <= version), default=None)
    dependent = max((v for v in schema.context_dependent_function_opset_versions if v <= version), default=None)
    if plain is not None:
        text = schema.get_function_with_opset_version(plain)
    elif dependent is not None:
        kinds = [kind.SerializeToString() for kind in types]
        text = schema.get_context_dependent_function_with_opset_version(dependent, whole.SerializeToString(), kinds)
    else:
        return None
    return FunctionProto.FromString(text) if text else None


def _model(call: NodeProto, body: FunctionProto, versions: Mapping[str, int], types: Sequence[TypeProto]) -> onnx.ModelProto:
    names = dict.fromkeys(name for name in call.input if name)
    kinds = dict(zip(call.input, types, strict=True))
    graph = helper.make_graph(
        [call],
        "call",
        [helper.make_value_info(name, kinds[name]) for name in names],
        [helper.make_value_info(name, TypeProto()) for name in call.output if name],
    )
    imports = [helper.make_opsetid(domain, version) for domain, version in {**versions, _LOCAL: 1}.items()]
    return helper.make_model(graph, functions=[body], opset_imports=imports)
