"""From a checked ONNX model to native segments and host steps, node by node.

A node becomes, in this order of preference: nothing, if no result depends on it; topi operators, by the table of
converters; what ONNX's own definition of its operator says; constants, if its inputs are; a host step.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Final

import onnx
from onnx import TypeProto, helper

from ansorlite.errors import ExpressionError, ModelError
from ansorlite.frontends.onnx.attributes import title as title_of
from ansorlite.frontends.onnx.bodies import Control
from ansorlite.frontends.onnx.calls import control
from ansorlite.frontends.onnx.contrib.table import defined, is_defined
from ansorlite.frontends.onnx.expansion import expand
from ansorlite.frontends.onnx.folding import known_arrays
from ansorlite.frontends.onnx.inputs import check_output, open_inputs
from ansorlite.frontends.onnx.loops import is_control
from ansorlite.frontends.onnx.meaning import MeaningNode
from ansorlite.frontends.onnx.misread import refusal
from ansorlite.frontends.onnx.node import NodeView, NotKnownError, UnsupportedError
from ansorlite.frontends.onnx.operators.table import converter
from ansorlite.frontends.onnx.recurrence import in_pieces
from ansorlite.frontends.onnx.reference import (
    DOMAINS,
    ReferenceNode,
    free_names,
    infer_types,
    is_deterministic,
    is_small,
    value_of,
    without_elements,
)
from ansorlite.frontends.onnx.scope import Attempt, NameScope
from ansorlite.frontends.onnx.segments import HostNode, Imported, Segments, Slot, empty
from ansorlite.frontends.onnx.tensors import dense_array, tensor_array
from ansorlite.frontends.onnx.types import as_due, check_inputs
from ansorlite.frontends.onnx.writer import OPSETS
from ansorlite.graph.dimensions import ValuesNeededError
from ansorlite.graph.graph import Array, Graph
from ansorlite.graph.hybrid import Datum, HostStep

#: Names of the domain of the standard operators.
_STANDARD: Final = DOMAINS[:2]

#: Elements above which constants are left to the graph's own folding, which makes no needless copies.
_LARGEST_FOLDED: Final = 1 << 16

#: Operators whose constant results, but for scalars, are left to it, too: passes look at the integers in quantised weights.
_NOT_FOLDED: Final = frozenset(("DequantizeLinear",))

#: Operators that tell sizes.
_SIZES: Final = frozenset(("Shape", "Size"))

#: Elements up to which an input may be one whose value decides what is compiled: axes, pads, shapes, scales.
_LARGEST_VALUE: Final = 64


def import_model(
    model: onnx.ModelProto,
    shapes: Mapping[str, Sequence[int]],
    values: Mapping[str, Array] | None = None,
    constants: Mapping[str, Array] | None = None,
    *,
    sizes_vary: bool = False,
) -> Imported:
    """``model``, with ``shapes`` for the inputs whose shapes it leaves open.

    Args:
        values: what some inputs are, so that shapes may depend on them. Without it, whatever depends on their values is a
            host step.
        constants: the model's initializers, for who has them already.
        sizes_vary: whether the model is imported for other shapes, too. What is computed of sizes is then a node where it is
            no integer, so that graphs for different sizes differ in integers alone.

    Raises:
        ModelError: a shape is open or wrong, a node's parts do not fit together, or nothing knows an operator.
        ValuesNeededError: ``values`` is given, and lacks some that would make a node native.
    """
    try:
        known = initializers(model.graph) if constants is None else constants
        return _Importer(model, shapes, values, known, sizes_vary).imported()
    except ExpressionError as error:
        raise ModelError(f"the model asks for what cannot be: {error}") from None


def initializers(graph: onnx.GraphProto) -> dict[str, Array]:
    """The constants of a model, by name."""
    dense = {tensor.name: tensor_array(tensor) for tensor in graph.initializer}
    return dense | {sparse.values.name: dense_array(sparse) for sparse in graph.sparse_initializer}


class _Importer:
    """One import."""

    def __init__(
        self,
        model: onnx.ModelProto,
        shapes: Mapping[str, Sequence[int]],
        values: Mapping[str, Array] | None,
        constants: Mapping[str, Array],
        sizes_vary: bool,
    ) -> None:
        self.proto = model.graph
        self.model = model
        self.shapes = shapes
        self.values = values
        self.constants = constants
        self.sizes_vary = sizes_vary
        self.segments = Segments()
        self.bodies = 0

    def imported(self) -> Imported:
        opsets = {entry.domain: entry.version for entry in self.model.opset_import}
        opsets |= {name: opsets[other] for name, other in (_STANDARD, reversed(_STANDARD)) if other in opsets}
        scope = NameScope({}, opsets, "")
        scope.slots.update((name, Slot.constant(name, array)) for name, array in self.constants.items())
        inputs = open_inputs(self.proto, self.shapes)
        scope.slots.update(inputs)
        for name, array in (self.values or {}).items():
            # Under another name: the input is still there, for the caller to give.
            scope.slots[name] = Slot.constant(f"{name} as given", array)
        wanted = [output.name for output in self.proto.output]
        self.add_nodes(self.proto.node, wanted, scope)
        outputs = {name: self._slot(name, "output", scope) for name in wanted}
        for entry in self.proto.output:
            check_output(entry, outputs[entry.name])
        if self.sizes_vary:
            # Nobody reads what has no elements, and who calls an open model gives its programs what they read.
            inputs = {name: slot for name, slot in inputs.items() if not slot.empty}
        native = all(slot.value is not None and not slot.empty for slot in (*inputs.values(), *outputs.values()))
        if native and not self.segments.has_host_steps:
            return Imported(self.segments.graph(inputs, outputs), (), inputs, outputs)
        steps = self.segments.steps([self.segments.export(slot) for slot in outputs.values()])
        if native and all(isinstance(step, Graph) for step in steps):
            return Imported(self.segments.graph(inputs, outputs), (), inputs, outputs)
        return Imported(None, steps, inputs, outputs)

    def _slot(self, name: str, reader: str, scope: NameScope) -> Slot:
        if name not in scope.slots:
            raise ModelError(f"{reader} reads {name!r}, which nothing computes")
        return scope.slots[name]

    def add_nodes(self, nodes: Sequence[onnx.NodeProto], outputs: Iterable[str], scope: NameScope) -> None:
        """Those of ``nodes`` that ``outputs`` depend on."""
        read = set(outputs)
        live = []
        for node in reversed(nodes):
            if not read.isdisjoint(node.output):
                names = free_names(node)
                live.append((node, names))
                read.update(names)
        for node, names in reversed(live):
            self._add_node(node, names, read, scope)

    def _add_node(self, proto: onnx.NodeProto, names: Sequence[str], read: set[str], scope: NameScope) -> None:
        title = title_of(proto)
        known = proto.domain in DOMAINS or converter(proto) is not None or is_defined(proto)
        if not known or proto.domain not in scope.opsets:
            raise ModelError(f"{title} needs operator {proto.domain}.{proto.op_type}, which is not supported")
        inputs = [self._slot(name, title, scope) if name else None for name in proto.input]
        captured = [self._slot(name, title, scope) for name in names]
        attempt = Attempt(proto, inputs, captured, [name in read for name in proto.output], scope)
        variables = check_inputs(attempt)
        try:
            results = self._native(attempt, variables)
        except UnsupportedError as error:
            emptied = self._emptied(attempt)
            # Behind inputs of unknown shape every node of a definition runs in Python: our own meaning of the whole is better.
            ours = converter(proto) is not None and any(slot is not None and slot.value is None for slot in inputs)
            if emptied is None and not ours and self._expanded(attempt):
                return
            if is_control(proto):
                results = emptied or self._controlled(attempt)
            else:
                results = emptied or self._folded(attempt) or self._hosted(attempt, str(error))
        scope.slots.update((name, slot) for name, slot in zip(proto.output, results, strict=False) if name)

    # The ways to import a node -----------------------------------------------------------------------------------

    def _native(self, attempt: Attempt, variables: Mapping[str, str]) -> Sequence[Slot]:
        """By the table.

        Raises:
            UnsupportedError: there is no converter, or it cannot do this case.
            ModelError: the node's parts do not fit together.
        """
        proto, convert = attempt.proto, converter(attempt.proto)
        if convert is None:
            raise UnsupportedError("it is not written as a tensor expression")
        slots = [slot for slot in attempt.inputs if slot is not None]
        if any(slot.value is None for slot in slots):
            raise UnsupportedError("an input is no tensor of known shape with a dtype that has arithmetic")
        empty_input = any(slot.empty for slot in slots)
        stage = max((slot.stage for slot in slots), default=0)
        places = [None if slot is None else self.segments.bring(slot, stage) for slot in attempt.inputs]
        builder = self.segments.builder(stage)
        node = NodeView(proto, places, attempt.wanted, attempt.opset, builder)
        try:
            result = convert(node)
        except (ExpressionError, ModelError) as error:
            if empty_input:
                raise UnsupportedError("an input has no elements") from None
            raise (node.error(str(error)) if isinstance(error, ExpressionError) else error) from None
        except NotKnownError as error:
            self._ask_for_value(attempt.inputs[error.position])
            raise
        names = as_due(attempt, variables, node, result)
        of_sizes = self.sizes_vary and (proto.op_type in _SIZES or any(slot.of_sizes for slot in attempt.captured))
        if all(slot.known for slot in slots) and any(builder.array(name) is None for name in names):
            shapes = [builder.value(name).shape for name in names]
            stays = proto.op_type in _NOT_FOLDED and any(shapes)
            folded = known_arrays(builder, names) if max(map(math.prod, shapes)) <= _LARGEST_FOLDED and not stays else None
            if folded is not None:
                if not of_sizes or all(array.dtype.kind in "iub" for array in folded):
                    given = [attempt.scope.prefix + name for name in proto.output]
                    return [Slot.constant(name, array, of_sizes) for name, array in zip(given, folded, strict=False)]
                for name, array in zip(names, folded, strict=True):
                    builder.learn(name, array)
        depends = attempt.depends
        return [
            self.segments.computed(attempt.scope.prefix + given, stage, name, depends, of_sizes)
            for given, name in zip(proto.output, names, strict=False)
        ]

    def _ask_for_value(self, slot: Slot | None) -> None:
        """If the value of ``slot`` follows from small inputs of the model, ask for them."""
        if slot is None or self.values is None or not slot.depends:
            return
        sizes = [self._input_size(name) for name in slot.depends]
        if all(size is not None and size <= _LARGEST_VALUE for size in sizes):
            raise ValuesNeededError(slot.depends)

    def _input_size(self, name: str) -> int | None:
        value = open_inputs(self.proto, self.shapes)[name].value
        return None if value is None else math.prod(value.shape)

    def _expanded(self, attempt: Attempt) -> bool:
        """By other nodes that it stands for, if there are some."""
        found = self._definition(attempt)
        if found is None:
            return False
        nodes, opsets = found
        self.bodies += 1
        scope = NameScope(dict(attempt.slots), opsets, f"{attempt.scope.prefix}{attempt.proto.op_type}~{self.bodies}/")
        outputs = [name for name, wanted in zip(attempt.proto.output, attempt.wanted, strict=True) if wanted]
        self.add_nodes(nodes, outputs, scope)
        attempt.scope.slots.update((name, scope.slots[name]) for name in outputs)
        return True

    def _definition(self, attempt: Attempt) -> tuple[Sequence[onnx.NodeProto], Mapping[str, int]] | None:
        """Nodes, and the versions of their operators: a node of onnxruntime's own, a long network, or by ONNX's definition."""
        if is_defined(attempt.proto):
            try:
                return defined(attempt), OPSETS
            except UnsupportedError as error:
                raise ModelError(f"{title_of(attempt.proto)} is not supported as it is here: {error}") from None
        pieces = in_pieces(attempt)
        if pieces:
            return pieces, OPSETS
        tensors = all(slot is None or slot.type.HasField("tensor_type") for slot in attempt.inputs)
        if attempt.proto.domain not in DOMAINS or not tensors:
            return None
        types = [TypeProto() if slot is None else slot.type for slot in attempt.inputs]
        return expand(attempt.proto, attempt.scope.opsets, types)

    def scope_of(self, graph: onnx.GraphProto, given: Mapping[str, Slot], around: NameScope) -> NameScope:
        """A scope for the nodes of a subgraph, whose inputs are ``given``."""
        self.bodies += 1
        constants = {name: Slot.constant(name, array) for name, array in initializers(graph).items()}
        return NameScope(
            {**around.slots, **constants, **given}, around.opsets, f"{around.prefix}{graph.name or 'step'}~{self.bodies}/"
        )

    @property
    def size(self) -> int:
        """How many nodes there are so far, on native segments and beside them."""
        return self.segments.size

    def need(self, slot: Slot) -> None:
        """If the value of ``slot`` follows from small inputs of the model, ask for them."""
        self._ask_for_value(slot)

    def is_native(self, graph: onnx.GraphProto) -> bool:
        """Whether every node of a subgraph is of an operator that the table has, or that is defined by others."""
        return all(converter(node) is not None or (node.domain in _STANDARD and _has_body(node.op_type)) for node in graph.node)

    def _folded(self, attempt: Attempt) -> Sequence[Slot] | None:
        """Constants, if they are small and the reference does not refuse: later nodes may need to know them, as shapes."""
        if not all(slot.known and _size(slot.datum) <= _LARGEST_FOLDED for slot in attempt.captured):
            return None
        random = attempt.proto.domain in DOMAINS and not is_deterministic(attempt.proto, attempt.scope.opsets)
        if random or not self._is_small(attempt):
            return None
        try:
            results = self._function(attempt)([])
        except Exception:
            # The reference fails in every way on what it does not know; the graph's own folding does without it.
            return None
        if any(result is None for result in results):
            return None
        return attempt.named([Slot.constant(name, datum) for name, datum in zip(attempt.names, results, strict=True)])

    def _is_small(self, attempt: Attempt) -> bool:
        types = {name: slot.type for name, slot in attempt.slots.items()}
        return is_small(attempt.proto, attempt.scope.opsets, types, {name: slot.datum for name, slot in attempt.slots.items()})

    def _inferred(self, attempt: Attempt) -> list[TypeProto]:
        """The types of the results, as far as ONNX's own inference knows them."""
        inferred = infer_types(attempt.proto, attempt.scope.opsets, *_types_and_known(attempt))
        return [inferred.get(name, TypeProto()) for name in attempt.proto.output if name]

    def _emptied(self, attempt: Attempt) -> Sequence[Slot] | None:
        """Results that have no elements: nothing computes them."""
        values = without_elements(attempt.proto, attempt.scope.opsets, *_types_and_known(attempt))
        if values is None:
            return None
        return attempt.named([empty(name, value) for name, value in zip(attempt.names, values, strict=True)])

    def _hosted(self, attempt: Attempt, reason: str) -> Sequence[Slot]:
        """In Python."""
        proto = attempt.proto
        kinds = self._inferred(attempt)
        values = [value_of(kind) for kind in kinds]
        try:
            function = self._function(attempt)
        except UnsupportedError as error:
            raise ModelError(f"{title_of(proto)}: {error}") from None
        except Exception as error:
            text = " ".join(str(error).split())
            raise ModelError(f"{title_of(proto)} needs operator {proto.op_type}, which is not supported: {text}") from None
        inputs = tuple(self.segments.export(attempt.slots[name]) for name in function.inputs)
        outputs = tuple(zip(attempt.names, values, strict=True))
        step = HostStep(proto.op_type, title_of(proto), reason, inputs, outputs, function)
        return attempt.named(self._host(attempt, HostNode(step), kinds))

    def _host(self, attempt: Attempt, node: HostNode, kinds: Sequence[TypeProto]) -> Sequence[Slot]:
        """The results of a node that runs in Python, of these types."""
        stage = max((slot.stage for slot in attempt.captured if not slot.known), default=0)
        self.segments.host(stage, node)
        return [
            Slot(name, kind, stage + 1, value, None, attempt.depends)
            for (name, value), kind in zip(node.step.outputs, kinds, strict=True)
        ]

    def _controlled(self, attempt: Attempt) -> Sequence[Slot]:
        """Control flow: as the nodes that it runs, as calls of compiled bodies, or in Python altogether."""
        try:
            found = control(attempt, self)
        except UnsupportedError as error:
            return self._hosted(attempt, str(error))
        return self._calling(attempt, found) if isinstance(found, Control) else found

    def _calling(self, attempt: Attempt, node: Control) -> Sequence[Slot]:
        """Control flow as calls of compiled bodies."""
        inputs = tuple(map(self.segments.export, node.reads))
        outputs = tuple((attempt.scope.prefix + name, value_of(kind)) for name, kind in node.results.items())
        title = title_of(attempt.proto)
        step = HostStep(attempt.proto.op_type, title, node.reason, inputs, outputs, node.run, turns=node.turns)
        slots = self._host(attempt, HostNode(step, node.bodies), list(node.results.values()))
        found = {**dict(zip(node.results, slots, strict=True)), **node.passed}
        return [found.get(name, Slot("", TypeProto())) for name in attempt.proto.output]

    def body(
        self, graph: onnx.GraphProto, given: Mapping[str, Slot], opsets: Mapping[str, int], wanted: Sequence[str]
    ) -> Imported:
        """A subgraph as a model of its own, of those of ``given`` that are not known.

        Args:
            given: the values that it reads from outside, each of known shape.
            wanted: those of its results that are.
        """
        constants = {name: slot.datum for name, slot in given.items() if slot.known}
        inputs = [helper.make_value_info(name, slot.type) for name, slot in given.items() if not slot.known]
        outputs = [helper.make_value_info(name, TypeProto()) for name in dict.fromkeys(wanted)]
        proto = helper.make_graph(graph.node, graph.name or "body", inputs, outputs)
        model = helper.make_model(proto, opset_imports=[helper.make_opsetid(*entry) for entry in opsets.items()])
        return import_model(model, {}, None, constants | initializers(graph))

    def _function(self, attempt: Attempt) -> ReferenceNode | MeaningNode:
        """The node in Python."""
        types, known = _types_and_known(attempt)
        proto, opsets, convert = attempt.proto, attempt.scope.opsets, converter(attempt.proto)
        if convert is None:
            why = refusal(proto)
            if why:
                raise UnsupportedError(why)
            return ReferenceNode(proto, opsets, types, known)
        reference = partial(ReferenceNode, proto, opsets, types, known) if proto.domain in DOMAINS else None
        return MeaningNode(proto, convert, attempt.opset, known, reference)


def _types_and_known(attempt: Attempt) -> tuple[dict[str, TypeProto], dict[str, Datum]]:
    """The types of all that a node reads, and what is known of it."""
    types = {name: slot.type for name, slot in attempt.slots.items()}
    return types, {name: slot.datum for name, slot in attempt.slots.items() if slot.known}


def _size(datum: Datum) -> int:
    return sum(map(_size, datum)) if isinstance(datum, list | tuple) else int(datum.size)


def _has_body(operator: str) -> bool:
    """Whether ONNX defines an operator by others."""
    schema = onnx.defs.get_schema(operator)
    return bool(schema.has_function or schema.has_context_dependent_function)
