"""From a number to a graph, with what it is to give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Final

import numpy as np
import onnx
from onnx import helper, numpy_helper

from tests.fuzz.graphs.conditioning import NOISY, Expected, Worlds, evaluate
from tests.fuzz.graphs.draft import MOST, Draft, Leaf, NoFitError, Role
from tests.fuzz.graphs.operators.table import MAKERS
from tests.fuzz.graphs.oracle import SilentError, Witness, evaluator
from tests.fuzz.graphs.undefined import Node, is_undefined, witnesses
from tests.fuzz.graphs.values import Array, draw

_NEWEST: Final = onnx.defs.onnx_opset_version()

#: Open dimensions: the extent in the first call, and in the second one.
_EXTENTS: Final = {"batch": (3, 5), "length": (7, 4)}

#: Draws after which a graph stays as it is.
_DRAWS: Final = 60


@dataclass(frozen=True, eq=False)
class Call:
    """
    Attributes:
        inputs: of the model.
        values: every value, as the oracle has it.
        expected: what the model is to give.
    """

    inputs: Mapping[str, Array]
    values: Mapping[str, Array]
    expected: Mapping[str, Expected]


@dataclass(frozen=True, eq=False)
class RandomGraph:
    """
    Attributes:
        witnesses: who said what each node gives.
        parameters: values that say what nodes do.
        calls: the second one is of other extents.
    """

    seed: int
    model: onnx.ModelProto
    witnesses: Sequence[Witness]
    parameters: Mapping[str, Array]
    calls: Sequence[Call]

    @property
    def opset(self) -> int:
        return int(self.model.opset_import[0].version)


@dataclass(frozen=True)
class _Step:
    node: onnx.NodeProto
    witness: Witness


def random_graph(seed: int) -> RandomGraph:
    """The graph of a number: always the same."""
    # What is drawn depends on nothing of how the noise is.
    rng, noise = np.random.default_rng(seed), np.random.default_rng((seed, 1))
    opset = int(rng.integers(7, 17) if rng.random() < 0.15 else rng.integers(17, _NEWEST + 1))
    opened = {name: ends for name, ends in _EXTENTS.items() if rng.random() < 0.3}
    draft = Draft(rng, opset, {name: ends[0] for name, ends in opened.items()})
    values: dict[str, Worlds] = {}
    steps: list[_Step] = []
    count = int(rng.integers(1, 13))
    names = sorted(MAKERS)
    for _ in range(_DRAWS):
        if len(steps) == count:
            break
        before = set(draft.leaves)
        step = _attempt(draft, names[int(rng.integers(0, len(names)))], len(steps), values, noise)
        if step is None:
            for name in set(draft.leaves) - before:
                del draft.leaves[name]
        else:
            steps.append(step)
    if not steps:
        return random_graph(seed + (1 << 32))
    outputs = [name for name in draft.computed if name in draft.unread or rng.random() < 0.2]
    leaves = {name: leaf for name, leaf in draft.leaves.items() if any(name in step.node.input for step in steps)}
    inputs = {name: leaf for name, leaf in leaves.items() if leaf.role is Role.INPUT}
    calls = [_call({name: leaf.array for name, leaf in inputs.items()}, values, outputs)]
    other = _other_extents(inputs, opened, rng)
    if other:
        again = _again(steps, leaves, other, opset, noise)
        if again is not None:
            calls.append(_call({name: other.get(name, leaf.array) for name, leaf in inputs.items()}, again, outputs))
    return RandomGraph(
        seed,
        _model(steps, leaves, outputs, draft, {ends[0]: name for name, ends in opened.items()}),
        [step.witness for step in steps],
        {name: leaf.array for name, leaf in leaves.items() if leaf.parameter},
        calls,
    )


def _call(inputs: Mapping[str, Array], values: Mapping[str, Worlds], outputs: Sequence[str]) -> Call:
    return Call(
        inputs,
        {name: worlds[0] for name, worlds in values.items()},
        {name: Expected.of(values[name]) for name in outputs},
    )


def _attempt(draft: Draft, operator: str, number: int, values: dict[str, Worlds], noise: np.random.Generator) -> _Step | None:
    """A node of that operator, if one fits; its results are added to the draft."""
    try:
        made = MAKERS[operator](draft)
    except (NoFitError, ValueError):
        return None
    if number and not any(name in draft.computed for name in made.inputs) and draft.chance(0.8):
        return None
    node = helper.make_node(
        made.operator, made.inputs, [f"v{number}" if n == 0 else f"v{number}_{n}" for n in range(made.outputs)], **made.attributes
    )
    for name in made.inputs:
        if name and name not in values:
            values[name] = (draft[name],) * (NOISY + 1)
    if not _is_valid(node, draft):
        return None
    parameters = {name for name, leaf in draft.leaves.items() if leaf.parameter}
    found = _results(node, draft.opset, values, parameters, noise)
    if found is None:
        return None
    witness, results = found
    if any(worlds[0].size > MOST or worlds[0].ndim > 6 for worlds in results):
        return None
    for name, worlds in zip(node.output, results, strict=True):
        values[name] = worlds
        draft.computed[name] = worlds[0]
        draft.unread.add(name)
    draft.unread -= set(made.inputs)
    return _Step(node, witness)


def _is_valid(node: onnx.NodeProto, draft: Draft) -> bool:
    """Whether ONNX has such a node at this opset, for inputs of these dtypes."""
    try:
        schema = onnx.defs.get_schema(node.op_type, draft.opset)
        context = onnx.checker.C.CheckerContext()
        context.ir_version, context.opset_imports = 10, {"": draft.opset}
        onnx.checker.check_node(node, context)
    except (onnx.defs.SchemaError, onnx.checker.ValidationError):
        return False
    types: dict[str, str] = {}
    for position, name in enumerate(node.input):
        if not name:
            continue
        formal = schema.inputs[min(position, len(schema.inputs) - 1)]
        own = _type_name(draft[name])
        if own not in formal.types:
            return False
        alike = position < len(schema.inputs) - 1 or formal.is_homogeneous
        if alike and types.setdefault(formal.type_str, own) != own:
            return False
    return True


def _type_name(array: Array) -> str:
    name = {"float32": "float", "float64": "double"}.get(array.dtype.name, array.dtype.name)
    return f"tensor({name})"


def _results(
    node: onnx.NodeProto, opset: int, values: Mapping[str, Worlds], parameters: Set[str], noise: np.random.Generator
) -> tuple[Witness, list[Worlds]] | None:
    """What the node gives, by the first witness that knows."""
    worlds = {name: values[name] for name in node.input if name}
    given = {name: own[0] for name, own in worlds.items()}
    fixed = {name: array for name, array in given.items() if name in parameters}
    nominal = [given[name] if name else None for name in node.input]
    asked = Node.of(node, opset, nominal)
    if is_undefined(asked):
        return None
    for witness in witnesses(asked):
        try:
            run = evaluator(witness, node, opset, given, fixed)
            return witness, evaluate(run, node.op_type, worlds, fixed, noise)
        except SilentError:
            continue
    return None


def _other_extents(
    inputs: Mapping[str, Leaf], opened: Mapping[str, tuple[int, int]], rng: np.random.Generator
) -> dict[str, Array]:
    """The inputs that have open dimensions, with other extents."""
    other = dict(opened.values())
    found = {}
    for name, leaf in inputs.items():
        shape = [other.get(extent, extent) for extent in leaf.array.shape]
        if not leaf.parameter and tuple(shape) != leaf.array.shape:
            found[name] = draw(rng, leaf.array.dtype.name, shape, leaf.low, leaf.high)
    return found


def _again(
    steps: Sequence[_Step], leaves: Mapping[str, Leaf], other: Mapping[str, Array], opset: int, noise: np.random.Generator
) -> dict[str, Worlds] | None:
    """The values with other inputs; ``None`` where a node does not take them."""
    values = {name: (other.get(name, leaf.array),) * (NOISY + 1) for name, leaf in leaves.items()}
    parameters = {name for name, leaf in leaves.items() if leaf.parameter}
    for step in steps:
        found = _results(step.node, opset, values, parameters, noise)
        if found is None or found[0] is not step.witness:
            return None
        values |= zip(step.node.output, found[1], strict=True)
    return values


def _model(
    steps: Sequence[_Step], leaves: Mapping[str, Leaf], outputs: Sequence[str], draft: Draft, names: Mapping[int, str]
) -> onnx.ModelProto:
    """``names``: extent → the open dimension that has it."""

    def info(name: str, array: Array, dims: Sequence[int | str | None]) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), dims)

    by_role = {role: {name: leaf for name, leaf in leaves.items() if leaf.role is role} for role in Role}
    inputs = [
        info(name, leaf.array, [extent if leaf.parameter else names.get(extent, extent) for extent in leaf.array.shape])
        for name, leaf in by_role[Role.INPUT].items()
    ]
    constants = [
        helper.make_node("Constant", [], [name], value=numpy_helper.from_array(leaf.array, name))
        for name, leaf in by_role[Role.CONSTANT].items()
    ]
    graph = helper.make_graph(
        [*constants, *(step.node for step in steps)],
        "random",
        inputs,
        [info(name, draft[name], [None] * draft.rank(name)) for name in outputs],
        [numpy_helper.from_array(leaf.array, name) for name, leaf in by_role[Role.INITIALIZER].items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", draft.opset)])
