"""A whole computation: the graph of tensors behind a list of arguments, its size, and its name."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from ansorlite.errors import ExpressionError
from ansorlite.te.expr import Axis, Binary, Expr, Read, Reduce, Select, Unary, Var
from ansorlite.te.printer import Names, expression
from ansorlite.te.tensor import Tensor
from ansorlite.te.traversal import reads, walk

#: A key longer than this (characters) is cut, and ends in a hash of the whole.
_KEY_LENGTH: Final = 400


@dataclass(frozen=True, eq=False)
class ComputeDAG:
    """The tensors of a computation, producers first. Make one with :meth:`of`.

    Attributes:
        inputs: the placeholders that are arguments, in call order.
        outputs: the computes that are arguments, in call order; one may be read by another.
        tensors: the inputs in call order, then every compute that an output needs, each after those it reads.
    """

    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    tensors: tuple[Tensor, ...]

    @staticmethod
    def of(tensors: Sequence[Tensor]) -> ComputeDAG:
        """The computation with these arguments in call order: inputs, then outputs.

        An input that nothing reads is allowed.

        Raises:
            ExpressionError: no list of tensors; no output; an input that is missing, given twice, or after an output; a cycle.
        """
        arguments = _checked_arguments(tensors)
        inputs = tuple(t for t in arguments if t.body is None)
        outputs = tuple(t for t in arguments if t.body is not None)
        if not outputs:
            raise ExpressionError("a computation needs at least one te.compute among its arguments, after its inputs")
        order = _topological(outputs)
        for tensor in order:
            if tensor.body is None and tensor not in inputs:
                raise ExpressionError(f"input {tensor.name} is read but is not among the arguments; add it before the outputs")
        return ComputeDAG(inputs, outputs, (*inputs, *(t for t in order if t.body is not None)))

    @cached_property
    def computes(self) -> tuple[Tensor, ...]:
        """Those of ``tensors`` that have a body."""
        return tuple(t for t in self.tensors if t.body is not None)

    def producers(self, tensor: Tensor) -> tuple[Tensor, ...]:
        """The distinct tensors that ``tensor`` reads, in order of first appearance."""
        return self._producers[tensor]

    def consumers(self, tensor: Tensor) -> tuple[Tensor, ...]:
        """The distinct computes that read ``tensor``, in topological order."""
        return self._consumers[tensor]

    @cached_property
    def _producers(self) -> dict[Tensor, tuple[Tensor, ...]]:
        return {t: _producers(t) for t in self.tensors}

    @cached_property
    def _consumers(self) -> dict[Tensor, tuple[Tensor, ...]]:
        return {t: tuple(c for c in self.computes if t in self._producers[c]) for t in self.tensors}

    @cached_property
    def names(self) -> tuple[tuple[str, ...], ...]:
        """Of each tensor the name, and those of its axes: all that equal computations may differ in."""
        return tuple((t.name, *(axis.name for axis in (*t.axes, *t.reduce_axes))) for t in self.tensors)

    @cached_property
    def flops(self) -> int:
        """Operations on data of the computation as written, every one priced 1 (a multiply-add is 2).

        Index arithmetic, conditions on indices alone, and what is made of constant inputs alone, are free.
        """
        return sum(math.prod(t.shape) * _operations(t) for t in self.computes)

    @cached_property
    def key(self) -> str:
        """The workload key: readable, and equal exactly for equal computations, whatever the names in them."""
        full = _canonical_text(self)
        if len(full) <= _KEY_LENGTH:
            return full
        digest = hashlib.sha256(full.encode()).hexdigest()[:24]
        return f"{full[: _KEY_LENGTH - 40]}... sha256:{digest}"


def _checked_arguments(tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    if not isinstance(tensors, Iterable):
        raise ExpressionError(f"a computation is made of a list [inputs..., outputs...] of tensors, not of {tensors!r}")
    arguments = tuple(tensors)
    output: Tensor | None = None
    for position, tensor in enumerate(arguments):
        if not isinstance(tensor, Tensor):
            raise ExpressionError(f"argument {position} is {tensor!r}, not a tensor; give te.placeholder and te.compute results")
        if tensor in arguments[:position]:
            raise ExpressionError(f"{tensor.name} is given twice among the arguments")
        if tensor.body is not None:
            output = tensor
        elif output is not None:
            raise ExpressionError(f"input {tensor.name} comes after output {output.name}; give all inputs before the outputs")
    return arguments


def _producers(tensor: Tensor) -> tuple[Tensor, ...]:
    if tensor.body is None:
        return ()
    return tuple(dict.fromkeys(read.tensor for read in reads(tensor.body)))


def _topological(outputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Everything that the outputs need, depth first, producers before consumers.

    The order depends on the structure alone, never on names or on when a tensor was made.
    """
    order: dict[Tensor, None] = {}
    open_: set[Tensor] = set()
    stack = [(tensor, False) for tensor in reversed(outputs)]
    while stack:
        tensor, finished = stack.pop()
        if finished:
            open_.remove(tensor)
            order[tensor] = None
        elif tensor in open_:
            raise ExpressionError(f"{tensor.name} depends on itself; a computation must not have a cycle")
        elif tensor not in order:
            open_.add(tensor)
            stack.append((tensor, True))
            stack.extend((producer, False) for producer in reversed(_producers(tensor)))
    return tuple(order)


def _operations(tensor: Tensor) -> int:
    """Operations on data for one element of ``tensor``."""
    assert tensor.body is not None
    if isinstance(tensor.body, Reduce):
        domain = math.prod(axis.extent for axis in tensor.body.axes)
        return domain * (1 + _data_operations(tensor.body.body))
    return _data_operations(tensor.body)


def _data_operations(body: Expr) -> int:
    """The distinct operations into which data flow that are not constant, outside of indices."""
    carries: set[Expr] = set()
    count = 0
    for node in _values(body):
        if isinstance(node, Read):
            if not node.tensor.constant:
                carries.add(node)
        elif any(child in carries for child in node.children()):
            carries.add(node)
            count += isinstance(node, Binary | Unary | Select)
    return count


def _values(body: Expr) -> list[Expr]:
    """The distinct nodes of ``body``, operands first, without those that are only parts of indices."""
    wanted: set[Expr] = set()
    stack = [body]
    while stack:
        node = stack.pop()
        if node not in wanted:
            wanted.add(node)
            if not isinstance(node, Read):
                stack.extend(node.children())
    return [node for node in walk(body) if node in wanted]


def _canonical_text(dag: ComputeDAG) -> str:
    """The whole computation in canonical names: inputs ``a0 a1 ...``, computes ``t0 t1 ...``, axes ``i0 ... k0 ...``."""
    names = Names()
    parts = []
    for position, tensor in enumerate(dag.inputs):
        names.name_tensor(tensor, f"a{position}")
        kind = "constant " if tensor.constant else ""
        parts.append(f"{names.tensors[tensor]} {kind}{tensor.dtype}[{_extents(tensor)}]")
    for position, tensor in enumerate(dag.computes):
        assert tensor.body is not None
        names.name_tensor(tensor, f"t{position}")
        names.axes = {**_numbered("i", tensor.axes), **_numbered("k", tensor.reduce_axes)}
        parts.append(f"{names.tensors[tensor]}[{_extents(tensor)}] = {expression(tensor.body, names)}")
    parts.append("return " + ", ".join(names.tensors[tensor] for tensor in dag.outputs))
    return "; ".join(parts)


def _numbered(letter: str, axes: tuple[Axis, ...]) -> dict[Var, str]:
    return {axis: f"{letter}{number}" for number, axis in enumerate(axes)}


def _extents(tensor: Tensor) -> str:
    return "x".join(map(str, tensor.shape))
