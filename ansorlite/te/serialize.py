"""A computation as data that JSON can carry, and back. Loading runs nothing and believes nothing.

Layout (``FORMAT`` 1)::

    {"format": 1, "inputs": 2, "outputs": [3],
     "tensors": [{"name": "A", "shape": [4, 8], "dtype": "float32", "constant": true}, ...,      # constant: only if it is
                 {"name": "C", "shape": [4, 4], "axes": ["i", "j"],
                  "reduce": {"op": "SUM", "axes": [["k", 8]]},          # only in a reduction
                  "nodes": [["axis", 0], ["axis", 2], ["read", 0, [0, 1]], ...]}]}

Tensors come producers first, inputs before all. Nodes name their operands by position, operands first; the last node is
the element (of a reduction: what is folded). Axes are numbered space axes first. Floats are written in hexadecimal: exact,
NaN and infinities too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, Final, TypeAlias, TypeVar

from ansorlite.errors import ExpressionError, RecordsError
from ansorlite.te import dtypes
from ansorlite.te.checks import check_body
from ansorlite.te.dag import ComputeDAG
from ansorlite.te.expr import Axis, Binary, Cast, Const, Expr, Read, Reduce, Select, Unary, const, select, typed_binary, unary
from ansorlite.te.ops import BinaryOp, ReduceOp, UnaryOp
from ansorlite.te.tensor import Tensor, placeholder, reduce
from ansorlite.te.traversal import walk

FORMAT: Final = 1

Data: TypeAlias = dict[str, Any]
T = TypeVar("T")
E = TypeVar("E", bound=Enum)


# Dump ------------------------------------------------------------------------------------------------------------


def dump(dag: ComputeDAG) -> Data:
    """``dag`` as lists, dicts, strings and ints."""
    position = {tensor: number for number, tensor in enumerate(dag.tensors)}
    return {
        "format": FORMAT,
        "inputs": len(dag.inputs),
        "outputs": [position[tensor] for tensor in dag.outputs],
        "tensors": [_dump_tensor(tensor, position) for tensor in dag.tensors],
    }


def _dump_tensor(tensor: Tensor, position: Mapping[Tensor, int]) -> Data:
    data: Data = {"name": tensor.name, "shape": list(tensor.shape)}
    body = tensor.body
    if body is None:
        return {**data, "dtype": tensor.dtype, **({"constant": True} if tensor.constant else {})}
    data["axes"] = [axis.name for axis in tensor.axes]
    if isinstance(body, Reduce):
        data["reduce"] = {"op": body.op.name, "axes": [[axis.name, axis.extent] for axis in body.axes]}
        body = body.body
    axes = {axis: number for number, axis in enumerate((*tensor.axes, *tensor.reduce_axes))}
    number: dict[Expr, int] = {}
    nodes: list[list[Any]] = []
    for node in walk(body):
        nodes.append(_dump_node(node, number, axes, position))
        number[node] = len(number)
    return {**data, "nodes": nodes}


def _dump_node(node: Expr, number: Mapping[Expr, int], axes: Mapping[Axis, int], position: Mapping[Tensor, int]) -> list[Any]:
    match node:
        case Const():
            return ["const", node.value.hex() if isinstance(node.value, float) else int(node.value), node.dtype]
        case Axis():
            return ["axis", axes[node]]
        case Binary(op, a, b):
            return ["binary", op.name, number[a], number[b]]
        case Unary(op, a):
            return ["unary", op.name, number[a]]
        case Select(cond, then, otherwise):
            return ["select", number[cond], number[then], number[otherwise]]
        case Cast(a, dtype):
            return ["cast", number[a], dtype]
        case Read(tensor, indices):
            return ["read", position[tensor], [number[index] for index in indices]]
        case _:
            raise TypeError(f"a {type(node).__name__} is not a tensor expression")


# Load ------------------------------------------------------------------------------------------------------------


def load(data: object) -> ComputeDAG:
    """The computation that :func:`dump` wrote, with the same key.

    Raises:
        RecordsError: the data are malformed, or mean nothing; or a newer version wrote them.
    """
    record = _mapping(data, "a computation")
    version = record.get("format")
    if isinstance(version, int) and version > FORMAT:
        raise RecordsError(f"the computation is in format {version}, this version reads up to {FORMAT}; upgrade ansorlite")
    if version != FORMAT:
        raise RecordsError(f"a computation has format {version!r} instead of {FORMAT}; it was not written by ansorlite")
    tensors: list[Tensor] = []
    for entry in _sequence(record.get("tensors"), "the tensors"):
        try:
            tensors.append(_load_tensor(_mapping(entry, "a tensor"), tensors))
        except (ExpressionError, RecordsError) as error:
            raise RecordsError(f"tensor {len(tensors)} of a recorded computation is malformed: {error}") from None
    inputs = _integer(record.get("inputs"), "the number of inputs")
    outputs = [_at(tensors, number, "an output") for number in _sequence(record.get("outputs"), "the outputs")]
    if [tensor.body is None for tensor in tensors] != [number < inputs for number in range(len(tensors))]:
        raise RecordsError(f"a recorded computation says it has {inputs} inputs, but its tensors say otherwise")
    try:
        return ComputeDAG.of([*tensors[:inputs], *outputs])
    except ExpressionError as error:
        raise RecordsError(f"a recorded computation is malformed: {error}") from None


def _load_tensor(entry: Mapping[str, Any], earlier: Sequence[Tensor]) -> Tensor:
    name = _string(entry.get("name"), "the name")
    shape = [_integer(extent, "an extent") for extent in _sequence(entry.get("shape"), "the shape")]
    if "nodes" not in entry:
        constant = entry.get("constant", False)
        if not isinstance(constant, bool):
            raise RecordsError(f"whether it is constant is {str(constant)[:80]!r}, not true or false")
        return placeholder(shape, _string(entry.get("dtype"), "the dtype"), name, constant=constant)
    labels = [_string(label, "an axis") for label in _sequence(entry.get("axes"), "the axes")]
    if len(labels) != len(shape):
        raise RecordsError(f"it has {len(labels)} axes and {len(shape)} extents")
    space = placeholder(shape, name=name).shape
    axes = tuple(Axis(label, extent=extent) for label, extent in zip(labels, space, strict=True))
    folded = _load_reduction(entry["reduce"]) if "reduce" in entry else None
    body = _load_nodes(entry["nodes"], (*axes, *(folded[1] if folded else ())), earlier)
    if folded:
        body = reduce(folded[0], body, folded[1])
    check_body(name, axes, body)
    return Tensor(name, space, body.dtype, axes, body)


def _load_reduction(data: object) -> tuple[ReduceOp, tuple[Axis, ...]]:
    entry = _mapping(data, "the reduction")
    op = _member(ReduceOp, entry.get("op"))
    axes = []
    for item in _sequence(entry.get("axes"), "the reduce axes"):
        match item:
            case [str(label), int(extent)] if extent >= 1:
                axes.append(Axis(label, extent=extent, reduce=True))
            case _:
                raise RecordsError(f"{item!r} is not a reduce axis")
    return op, tuple(axes)


def _load_nodes(data: object, axes: Sequence[Axis], tensors: Sequence[Tensor]) -> Expr:
    nodes: list[Expr] = []
    for entry in _sequence(data, "the nodes"):
        try:
            nodes.append(_load_node(entry, nodes, axes, tensors))
        except (ExpressionError, RecordsError) as error:
            raise RecordsError(f"node {len(nodes)}: {error}") from None
    if not nodes:
        raise RecordsError("it has no nodes")
    return nodes[-1]


def _load_node(entry: object, nodes: Sequence[Expr], axes: Sequence[Axis], tensors: Sequence[Tensor]) -> Expr:
    def operand(number: object) -> Expr:
        return _at(nodes, number, "an operand")

    match entry:
        case ["const", str() | int() as value, str(dtype)]:
            return _load_const(value, dtypes.check(dtype))
        case ["axis", number]:
            return _at(axes, number, "an axis")
        case ["binary", name, a, b]:
            x, y = operand(a), operand(b)
            return _exactly(typed_binary(_member(BinaryOp, name), x, y), (x, y))
        case ["unary", name, a]:
            x = operand(a)
            return _exactly(unary(_member(UnaryOp, name), x), (x,))
        case ["select", cond, then, otherwise]:
            operands = (operand(cond), operand(then), operand(otherwise))
            return _exactly(select(*operands), operands)
        case ["cast", a, str(dtype)]:
            return Cast(operand(a), dtypes.check(dtype))
        case ["read", number, list(indices)]:
            tensor = _at(tensors, number, "a tensor")
            subscripts = tuple(operand(index) for index in indices)
            return _exactly(tensor[subscripts], subscripts)
        case _:
            raise RecordsError(f"{str(entry)[:80]!r} is not a node")


def _load_const(value: str | int, dtype: str) -> Const:
    if isinstance(value, int):
        if dtypes.is_float(dtype):
            raise RecordsError(f"{value} is not a float in hexadecimal")
        return const(value, dtype)
    try:
        number = float.fromhex(value)
    except (ValueError, OverflowError):
        raise RecordsError(f"{value!r} is not a float in hexadecimal") from None
    if not dtypes.is_float(dtype):
        raise RecordsError(f"{value!r} is not a value of {dtype}")
    return const(number, dtype)


def _exactly(made: Expr, operands: tuple[Expr, ...]) -> Expr:
    """``made`` if it is over just these operands: a record has every conversion written out."""
    if len(made.children()) != len(operands) or any(x is not y for x, y in zip(made.children(), operands, strict=True)):
        raise RecordsError(f"operands of {', '.join(x.dtype for x in operands)} do not fit")
    return made


# Plain data ------------------------------------------------------------------------------------------------------


def _mapping(data: object, what: str) -> Mapping[str, Any]:
    if not isinstance(data, dict):
        raise RecordsError(f"{what} is {str(data)[:80]!r}, not an object")
    return data


def _sequence(data: object, what: str) -> Sequence[Any]:
    if not isinstance(data, list):
        raise RecordsError(f"{what} are {str(data)[:80]!r}, not a list")
    return data


def _string(data: object, what: str) -> str:
    if not isinstance(data, str):
        raise RecordsError(f"{what} is {str(data)[:80]!r}, not a string")
    return data


def _integer(data: object, what: str) -> int:
    if not isinstance(data, int) or isinstance(data, bool):
        raise RecordsError(f"{what} is {str(data)[:80]!r}, not an integer")
    return data


def _at(items: Sequence[T], number: object, what: str) -> T:
    position = _integer(number, what)
    if not 0 <= position < len(items):
        raise RecordsError(f"{what} has number {position}, out of the {len(items)} so far")
    return items[position]


def _member(kind: type[E], name: object) -> E:
    try:
        return kind[_string(name, "an operation")]
    except KeyError:
        raise RecordsError(f"{name!r} is not an operation") from None
