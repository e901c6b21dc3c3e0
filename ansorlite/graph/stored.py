"""A model as runs of bytes, its large constants among them as they are, and back: what a cache keeps of it.

The first part is JSON, the others are the elements of constants. It is data only: operators are named, and what has a name
that is in none of the tables here is no model. What must hold between its parts is left to the cache's checksum.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from enum import Enum
from importlib import import_module
from inspect import isfunction
from typing import Any, Final

import numpy as np

from ansorlite.cache.parts import Part
from ansorlite.errors import AnsorliteError
from ansorlite.graph.constants import first, is_splat, splat
from ansorlite.graph.describe import Description, Operator, Pattern, Value
from ansorlite.graph.fusion import FusionGroup
from ansorlite.graph.graph import Array, Graph, Node
from ansorlite.graph.model import Model
from ansorlite.target import Target
from ansorlite.task import Task, rebuilt
from ansorlite.te import dtypes, serialize

#: The modules of ``topi`` that define operators. A module is imported when a model names it.
THEMES: Final = (
    *("activations", "arguments", "bits", "blocked", "col2im", "conv", "einsum", "elementwise", "grid_sample", "indexing"),
    *("matmul", "norm", "padding", "patterns", "pooling", "quantized", "recurrent", "reduction", "resample", "shape", "softmax"),
    *("trigonometry", "wide"),
)

#: Attributes of operators that are enumerations: class → the module of ``topi`` that defines it.
ENUMERATIONS: Final = {
    "Curve": "recurrent",
    "Interpolation": "grid_sample",
    "Outside": "grid_sample",
    "PadMode": "padding",
    "Scatter": "indexing",
}

_TOPI: Final = "ansorlite.topi"


class NotStorableError(Exception):
    """A model has an operator or attribute that is in none of the tables here."""


# Writing ---------------------------------------------------------------------------------------------------------


def dumps(model: Model) -> list[Part]:
    """``model`` as parts. Its constants are the parts after the first, not copied if they are contiguous.

    Raises:
        NotStorableError: an operator is none of ``topi``, or has an attribute of an unknown kind.
    """
    graph, arrays = model.graph, _Arrays()
    data = {
        "inputs": {name: _value(value) for name, value in graph.inputs.items()},
        "outputs": dict(graph.outputs),
        "constants": {name: arrays.add(array) for name, array in graph.constants.items()},
        "nodes": [_node(node, graph.descriptions[node.output]) for node in graph.nodes],
        "groups": [[[node.output for node in group.nodes], group.inputs] for group in model.groups],
        "assignments": model.assignments,
        "tasks": [[serialize.dump(task.dag), task.key, uses] for task, uses in model.tasks],
    }
    return [json.dumps(data).encode(), *arrays.parts]


class _Arrays:
    """Constants: those of one value as that value, all others as parts, each array once."""

    def __init__(self) -> None:
        self.parts: list[Part] = []
        self._places: dict[int, dict[str, Any]] = {}

    def add(self, array: Array) -> dict[str, Any]:
        """What is written of ``array``, whose elements may become a part."""
        if id(array) not in self._places:
            self._places[id(array)] = self._place(array)
        return self._places[id(array)]

    def _place(self, array: Array) -> dict[str, Any]:
        facts = {"shape": array.shape, "dtype": array.dtype.name}
        if array.size and is_splat(array):
            return {**facts, "value": first(array).tobytes().hex()}
        across = array.flags.f_contiguous and not array.flags.c_contiguous
        self.parts.append(np.ascontiguousarray(array.T if across else array).reshape(-1).view(np.uint8).data)
        return {**facts, "part": len(self.parts), "across": across}


def _node(node: Node, facts: Description) -> list[Any]:
    operator = node.operator
    theme = operator.__module__.removeprefix(f"{_TOPI}.")
    name = getattr(operator, "__name__", "")
    if _function(theme, name) is not operator:
        raise NotStorableError(f"{operator!r} is no operator of {_TOPI}")
    attributes = [[key, _attribute(value)] for key, value in node.attributes]
    described = [_value(facts.value), facts.pattern.name, facts.aligned, facts.by_place]
    return [node.output, theme, name, node.inputs, attributes, node.label, described]


def _value(value: Value) -> list[Any]:
    return [value.shape, value.dtype]


def _attribute(value: Any) -> Any:
    match value:
        case tuple():
            return [_attribute(item) for item in value]
        case np.generic() if value.dtype.name in dtypes.NUMPY:
            return {"dtype": value.dtype.name, "value": value.tobytes().hex()}
        case Enum() if type(value).__name__ in ENUMERATIONS:
            return {"kind": type(value).__name__, "member": value.name}
        case None | bool() | int() | float() | str() if type(value).__module__ == "builtins":
            return value
    raise NotStorableError(f"{value!r} is no attribute that can be kept")


# Reading ---------------------------------------------------------------------------------------------------------


def loads(parts: Sequence[Part], target: Target) -> Model | None:
    """The inverse of :func:`dumps`, for a model on ``target``; ``None`` if ``parts`` are no model.

    The model's constants lie where ``parts`` are.
    """
    try:
        return _model(json.loads(bytes(parts[0])), parts, target)
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError, AnsorliteError):
        return None


def _model(data: Mapping[str, Any], parts: Sequence[Part], target: Target) -> Model:
    inputs = {name: _read_value(value) for name, value in data["inputs"].items()}
    constants = {name: _array(facts, parts) for name, facts in data["constants"].items()}
    values = inputs | {name: Value(array.shape, array.dtype.name) for name, array in constants.items()}
    nodes, descriptions = {}, {}
    for output, theme, name, reads, attributes, label, described in data["nodes"]:
        operator = _function(theme, name)
        if operator is None:
            raise ValueError(f"{theme}.{name} is no operator")
        given = tuple((_string(key), _read_attribute(value)) for key, value in attributes)
        nodes[output] = Node(_string(output), operator, tuple(map(_string, reads)), given, _string(label))
        descriptions[output] = _description(described)
        values[output] = descriptions[output].value
    outputs = {public: _string(name) for public, name in data["outputs"].items()}
    if not values.keys() >= {*outputs.values(), *(name for node in nodes.values() for name in node.inputs)}:
        raise ValueError("a value that nothing computes is read")
    graph = Graph(inputs, outputs, tuple(nodes.values()), constants, values, descriptions)
    groups = tuple(
        FusionGroup(tuple(nodes[name] for name in names), tuple(map(_string, reads))) for names, reads in data["groups"]
    )
    tasks = tuple((rebuilt(dag, target, _string(key)), int(uses)) for dag, key, uses in data["tasks"])
    assignments = tuple(data["assignments"])
    _check(groups, assignments, tasks)
    return Model(graph, groups, assignments, tasks, target)


def _check(groups: Sequence[FusionGroup], assignments: Sequence[Any], tasks: Sequence[tuple[Task, int]]) -> None:
    """Every group has a task."""
    if len(groups) != len(assignments) or not set(assignments) <= set(range(len(tasks))):
        raise ValueError("groups and tasks do not belong together")


def _function(theme: str, name: str) -> Operator | None:
    """An operator by its name, if it has one."""
    if theme not in THEMES or name.startswith("_"):
        return None
    module = import_module(f"{_TOPI}.{theme}")
    found = vars(module).get(name)
    return found if isfunction(found) and found.__module__ == module.__name__ else None


def _array(facts: Mapping[str, Any], parts: Sequence[Part]) -> Array:
    shape, dtype = tuple(facts["shape"]), dtypes.NUMPY[facts["dtype"]]
    if "value" in facts:
        return splat(_scalar(facts), shape)
    number = int(facts["part"])
    if not 1 <= number < len(parts):
        raise ValueError(f"there is no part {number}")
    elements: Array = np.frombuffer(parts[number], dtype)
    return elements.reshape(shape[::-1]).T if facts["across"] else elements.reshape(shape)


def _scalar(facts: Mapping[str, Any]) -> Any:
    (element,) = np.frombuffer(bytes.fromhex(facts["value"]), dtypes.NUMPY[facts["dtype"]])
    return element


def _read_value(data: Any) -> Value:
    shape, dtype = data
    if dtype not in dtypes.NUMPY or not all(type(extent) is int for extent in shape):
        raise ValueError(f"{data!r} is no shape and dtype")
    return Value(tuple(shape), dtype)


def _description(data: Any) -> Description:
    value, pattern, aligned, by_place = data
    return Description(_read_value(value), Pattern[pattern], tuple(map(bool, aligned)), bool(by_place))


def _read_attribute(data: Any) -> Any:
    match data:
        case list():
            return tuple(_read_attribute(item) for item in data)
        case {"dtype": str(), "value": str()}:
            return _scalar(data)
        case {"kind": str(kind), "member": str(member)}:
            kinds = import_module(f"{_TOPI}.{ENUMERATIONS[kind]}")
            return vars(kinds)[kind][member]
        case None | bool() | int() | float() | str():
            return data
    raise ValueError(f"{data!r} is no attribute")


def _string(data: Any) -> str:
    if not isinstance(data, str):
        raise ValueError(f"{data!r} is no string")
    return data
