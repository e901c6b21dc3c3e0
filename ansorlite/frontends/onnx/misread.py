"""What ``onnx.reference`` gets wrong, of the operators that it runs here: mended in what it is given, or refused.

``python -m benchmarks.audit`` finds such cases, by comparing with onnxruntime.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import onnx
from onnx import helper, numpy_helper

_ML: Final = "ai.onnx.ml"


# Refused ---------------------------------------------------------------------------------------------------------------


def refusal(node: onnx.NodeProto) -> str:
    """Why there is nothing here that runs the node right, and what to do; empty if there is."""
    why = _REFUSALS.get((node.domain, node.op_type))
    return why({a.name: helper.get_attribute_value(a) for a in node.attribute}) if why else ""


def _linear_classifier(attributes: Mapping[str, Any]) -> str:
    labels = attributes.get("classlabels_ints") or attributes.get("classlabels_strings") or ()
    rows = len(attributes.get("intercepts", ())) or len(labels)
    if len(labels) in (0, 2) and rows <= 1:
        return "for two classes by one row of coefficients no scores are defined; give 'coefficients' a row for each class"
    return ""


def _normalizer(attributes: Mapping[str, Any]) -> str:
    if attributes.get("norm", b"MAX") == b"MAX":
        return "for norm='MAX' runtimes differ in which sign counts; write it with ReduceMax and Div"
    return ""


def _svm_classifier(attributes: Mapping[str, Any]) -> str:
    if attributes.get("post_transform", b"NONE") != b"NONE":
        return "post_transform is not supported; leave it out, and apply it to the scores"
    return ""


def _tree_classifier(attributes: Mapping[str, Any]) -> str:
    labels = attributes.get("classlabels_int64s") or attributes.get("classlabels_strings") or ()
    if len(labels) == 2:
        return "for two classes runtimes differ in how they choose the label; write it as a TreeEnsembleRegressor and ArgMax"
    return ""


def _tree_ensemble(attributes: Mapping[str, Any]) -> str:
    if attributes.get("post_transform", 0):
        return "post_transform is not supported; leave it out, and apply it to the result"
    if attributes.get("aggregate_function", 1) in (2, 3) and attributes.get("n_targets", 1) > 1:
        return "aggregate_function MIN or MAX is not supported for several targets; make a tree ensemble of each"
    return ""


def _tree_regressor(attributes: Mapping[str, Any]) -> str:
    """The reference begins minima at the largest number and maxima at the least: it gives those where there is no weight."""
    if attributes.get("aggregate_function", b"SUM") not in (b"MIN", b"MAX"):
        return ""
    targets = attributes.get("n_targets", 1)
    nodes = zip(*(attributes.get(name, ()) for name in ("nodes_treeids", "nodes_nodeids", "nodes_modes")), strict=False)
    leaves = {(tree, node) for tree, node, mode in nodes if mode == b"LEAF"}
    weights = set(zip(*(attributes.get(name, ()) for name in ("target_treeids", "target_nodeids", "target_ids")), strict=False))
    # Counted, as a hostile file may have any number of targets.
    if sum((tree, node) in leaves and 0 <= target < targets for tree, node, target in weights) == len(leaves) * targets:
        return ""
    return "aggregate_function MIN or MAX takes a weight of every target at every leaf; make a tree ensemble of each target"


_REFUSALS: Final[Mapping[tuple[str, str], Callable[[Mapping[str, Any]], str]]] = {
    (_ML, "LinearClassifier"): _linear_classifier,
    (_ML, "Normalizer"): _normalizer,
    (_ML, "SVMClassifier"): _svm_classifier,
    (_ML, "TreeEnsemble"): _tree_ensemble,
    (_ML, "TreeEnsembleClassifier"): _tree_classifier,
    (_ML, "TreeEnsembleRegressor"): _tree_regressor,
}


# Mended ----------------------------------------------------------------------------------------------------------------


def mended(node: onnx.NodeProto, opset: int) -> tuple[onnx.NodeProto, dict[str, np.ndarray[Any, Any]]]:
    """The node as the reference is to see it, and what else that reads. Its results are for :func:`finished`."""
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    given = {attribute.name for attribute in node.attribute}
    more: dict[str, np.ndarray[Any, Any]] = {}
    if node.op_type == "RoiAlign" and opset < 16 and "coordinate_transformation_mode" not in given:
        # The attribute came with opset 16, with another default than what was meant before.
        copy.attribute.append(helper.make_attribute("coordinate_transformation_mode", "output_half_pixel"))
    elif node.op_type == "LinearRegressor" and "intercepts" not in given:
        targets = next((attribute.i for attribute in node.attribute if attribute.name == "targets"), 1)
        copy.attribute.append(helper.make_attribute("intercepts", [0.0] * targets))
    elif node.op_type == "Loop":
        _lift_rows(copy, opset)
        if len(node.input) > 1 and not node.input[1]:
            # The reference would not begin.
            copy.input[1] = _unlike("always", _names_in(node))
            more[copy.input[1]] = np.asarray(True)
    elif node.op_type == "Optional" and node.input:
        # The reference would give a list of what it is to hold, which nothing else takes for an optional value.
        copy.op_type = "Identity"
        del copy.attribute[:]
    return copy, more


def _lift_rows(loop: onnx.NodeProto, opset: int) -> None:
    """Give what a loop collects two dimensions more: the reference puts rows below each other, whatever their rank."""
    body = next(attribute.g for attribute in loop.attribute if attribute.name == "body")
    names = {name for node in body.node for name in node.output} | {entry.name for entry in (*body.input, *body.initializer)}
    axes = _unlike("axes", names)
    for output in body.output[1 + _carried(loop) :]:
        lifted = _unlike(f"{output.name} lifted", names)
        if opset < 13:
            body.node.append(helper.make_node("Unsqueeze", [output.name], [lifted], axes=[0, 1]))
        else:
            body.node.append(helper.make_node("Unsqueeze", [output.name, axes], [lifted]))
        output.CopyFrom(helper.make_tensor_value_info(lifted, output.type.tensor_type.elem_type, None))
    if opset >= 13:
        body.initializer.append(numpy_helper.from_array(np.array([0, 1]), axes))


def _names_in(node: onnx.NodeProto) -> set[str]:
    """All names of values in a node and its subgraphs."""
    names = {*node.input, *node.output}
    for attribute in node.attribute:
        for inner in attribute.g.node:
            names |= _names_in(inner)
    return names


def _carried(loop: onnx.NodeProto) -> int:
    return max(0, len(loop.input) - 2)


def _unlike(name: str, names: set[str]) -> str:
    while name in names:
        name += "'"
    return name


def finished(node: onnx.NodeProto, results: Sequence[Any], dtypes: Sequence[np.dtype[Any] | None]) -> list[Any]:
    """What the reference gave for :func:`mended`, in the dtypes that the operator has whatever its inputs are."""
    if node.op_type == "Loop":
        carried = _carried(node)
        named = [position for position, name in enumerate(node.output) if name]
        results = [r if p < carried else np.squeeze(r, 1) for p, r in zip(named, results, strict=True)]
    return [r if d is None or r is None else np.asarray(r).astype(d, copy=False) for r, d in zip(results, dtypes, strict=True)]


def fixed_dtypes(node: onnx.NodeProto, version: int) -> list[np.dtype[Any] | None]:
    """For each named result of an operator of ``ai.onnx.ml``, its dtype, if it has one whatever the inputs are."""
    if node.domain != _ML:
        return [None for name in node.output if name]
    formal = onnx.defs.get_schema(node.op_type, version, node.domain).outputs
    found: list[np.dtype[Any] | None] = []
    for name, output in zip(node.output, formal, strict=False):
        if name:
            found.append(np.dtype(np.float32) if list(output.types) == ["tensor(float)"] else None)
    return found
