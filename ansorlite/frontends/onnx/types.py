"""What the definition of an operator says of the dtypes of its inputs and results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

import onnx
from onnx.defs import OpSchema, SchemaError

from ansorlite.errors import ModelError
from ansorlite.frontends.onnx.node import NodeView
from ansorlite.frontends.onnx.scope import Attempt
from ansorlite.te import dtypes
from ansorlite.topi.elementwise import cast

#: ONNX's word for a tensor of a dtype → that dtype, of those that have arithmetic here.
_WORDS: Final = {f"tensor({ {'float32': 'float', 'float64': 'double'}.get(name, name) })": name for name in dtypes.NUMPY}


@dataclass(frozen=True)
class _Parameter:
    """An input or a result.

    Attributes:
        variable: of one dtype in all parameters that have it; ``""`` where the definition ties them to no other.
        repeats: whether it stands for any number.
        allowed: dtypes that it may have in this version of the operator or in the newest one: what one of them means, all do.
    """

    variable: str
    repeats: bool
    allowed: frozenset[str]


@dataclass(frozen=True)
class _Signature:
    inputs: tuple[_Parameter, ...]
    outputs: tuple[_Parameter, ...]


def check_inputs(attempt: Attempt) -> Mapping[str, str]:
    """The type variables of a node's operator, as far as its inputs say what they are.

    Raises:
        ModelError: an input has a dtype that the operator does not take, or another one than an input that must have the same.
    """
    signature = _signature(attempt.proto.op_type, attempt.proto.domain, attempt.opset)
    found: dict[str, str] = {}
    first: dict[str, str] = {}
    for position, (slot, name) in enumerate(zip(attempt.inputs, attempt.proto.input, strict=True)):
        parameter = _at(signature.inputs, position)
        if slot is None or slot.value is None or parameter is None:
            continue
        dtype = slot.value.dtype
        if parameter.allowed and dtype not in parameter.allowed:
            known = " or ".join(sorted(parameter.allowed))
            raise ModelError(f"{attempt.title}: input {name!r} is {dtype}, and must be {known}")
        if parameter.variable and found.setdefault(parameter.variable, dtype) != dtype:
            both = f"inputs {first[parameter.variable]!r} and {name!r}"
            raise ModelError(f"{attempt.title}: {both} must be of one dtype, and are {found[parameter.variable]} and {dtype}")
        first.setdefault(parameter.variable, name)
    return found


def as_due(attempt: Attempt, variables: Mapping[str, str], node: NodeView, result: str | Sequence[str]) -> list[str]:
    """A node's results, each of the dtype that it has by the operator's definition, however it was computed.

    Args:
        variables: what :func:`check_inputs` found.
        result: what a converter made of ``node``.
    """
    names = [result] if isinstance(result, str) else list(result)
    for position, name in enumerate(names):
        kind = _due(attempt, position, variables)
        if kind is not None and node.builder.value(name).dtype != kind:
            names[position] = node.apply(cast, name, dtype=kind)
    return names


def _due(attempt: Attempt, position: int, variables: Mapping[str, str]) -> str | None:
    """The dtype that a result must have; ``None`` if neither the inputs nor the operator say."""
    parameter = _at(_signature(attempt.proto.op_type, attempt.proto.domain, attempt.opset).outputs, position)
    return None if parameter is None else variables.get(parameter.variable)


def _at(parameters: tuple[_Parameter, ...], position: int) -> _Parameter | None:
    if position < len(parameters):
        return parameters[position]
    return parameters[-1] if parameters and parameters[-1].repeats else None


@cache
def _signature(operator: str, domain: str, version: int) -> _Signature:
    try:
        own = onnx.defs.get_schema(operator, version, domain)
        newest = onnx.defs.get_schema(operator, domain)
    except SchemaError:
        return _Signature((), ())
    return _Signature(_parameters(own.inputs, newest.inputs), _parameters(own.outputs, newest.outputs))


def _parameters(own: list[OpSchema.FormalParameter], newest: list[OpSchema.FormalParameter]) -> tuple[_Parameter, ...]:
    found = []
    for position, parameter in enumerate(own):
        later = newest[position].types if position < len(newest) else ()
        words = {*parameter.types, *later}
        allowed = frozenset(_WORDS[word] for word in words if word in _WORDS)
        repeats = parameter.option == OpSchema.FormalParameterOption.Variadic
        # Each of any number of inputs may be of its own type.
        found.append(_Parameter(parameter.type_str if parameter.is_homogeneous else "", repeats, allowed))
    return tuple(found)
