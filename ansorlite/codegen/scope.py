"""What is known at the point of the function being written: bound loop variables, and values already computed.

Layers nest as loops do. A *barrier* layer is real control flow: what is written inside of it is not defined outside. Other
layers (an unrolled iteration, a statement) only bound the life of values that depend on what they bind.

Every barrier keeps a slot right before it. A value that depends on nothing bound inside is written there instead of
inside, however deep its first use is: so nothing is computed more often than it must, and once.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

from ansorlite.codegen.builder import Slot
from ansorlite.loops.nodes import Buffer, Load
from ansorlite.once import once_for_each
from ansorlite.te.expr import Expr, Var


class Binding(NamedTuple):
    """A loop variable's value: an SSA name, or the text of a literal; the layer that binds it; the literal's value."""

    text: str
    depth: int
    value: int | None


class Barrier(NamedTuple):
    """Control flow around the point of the function being written.

    Attributes:
        depth: its layer.
        slot: for what is to be computed before it.
        written: the buffers that are stored to inside, if it is a loop that runs; ``None`` if what is inside possibly never
            runs, so that nothing may be loaded for it in advance.
    """

    depth: int
    slot: Slot
    written: frozenset[Buffer] | None


@dataclass(frozen=True)
class Dependence:
    """What the value of an expression depends on."""

    variables: frozenset[Var]
    memory: bool


@once_for_each
def dependence(expr: Expr) -> Dependence:
    if isinstance(expr, Var):
        return Dependence(frozenset((expr,)), False)
    below = [dependence(child) for child in expr.children()]
    variables: frozenset[Var] = frozenset().union(*(d.variables for d in below))
    return Dependence(variables, isinstance(expr, Load) or any(d.memory for d in below))


class _Layer:
    """What :meth:`LayerStack.layer` returns: a class of its own, being entered ten thousand times a program."""

    __slots__ = ("_outer", "_scope", "_statement")

    def __init__(self, scope: LayerStack, statement: bool) -> None:
        self._scope = scope
        self._statement = statement
        self._outer = 0

    def __enter__(self) -> None:
        self._outer = self._scope.push(self._statement)

    def __exit__(self, *_: object) -> None:
        self._scope.pop(self._outer)


class LayerStack:
    """A stack of layers."""

    def __init__(self) -> None:
        self.variables: dict[Var, Binding] = {}
        self._values: dict[Hashable, Any] = {}
        self._layers: list[list[Hashable]] = [[]]
        self._barriers: list[Barrier] = []
        self._statement = 0

    @property
    def depth(self) -> int:
        """The number of the innermost layer."""
        return len(self._layers) - 1

    @property
    def here(self) -> int:
        """The layer that bounds the life of what is written at this point and depends on memory."""
        return max(self._statement, self.barrier)

    @property
    def barrier(self) -> int:
        """The innermost barrier layer: what is written at this point is not defined outside of it."""
        return self._barriers[-1].depth if self._barriers else 0

    def layer(self, statement: bool = False) -> _Layer:
        """A layer for the time of a ``with``. ``statement``: loads from memory stay true within it."""
        return _Layer(self, statement)

    @contextmanager
    def inside(self, slot: Slot, written: frozenset[Buffer] | None = None) -> Iterator[None]:
        """A barrier layer for the time of a ``with``; see :class:`Barrier`."""
        self._layers.append([])
        self._barriers.append(Barrier(self.depth, slot, written))
        try:
            yield
        finally:
            self._barriers.pop()
            self._pop()

    def push(self, statement: bool) -> int:
        """Begin a layer, by hand; what :meth:`pop` wants in return."""
        outer = self._statement
        self._layers.append([])
        if statement:
            self._statement = self.depth
        return outer

    def pop(self, outer: int) -> None:
        """End the innermost layer."""
        self._pop()
        self._statement = outer

    def _pop(self) -> None:
        for key in self._layers.pop():
            del self._values[key]

    def bind(self, var: Var, text: str) -> None:
        """``var`` has a value from here on; the innermost layer binds it."""
        self.variables[var] = Binding(text, self.depth, None if text[0] == "%" else int(text))

    # What follows is called for every expression of every unrolled statement: plain loops, for they are the fastest.

    def depth_of(self, facts: Dependence) -> int:
        """The layer that bounds the life of the value of an expression of these ``facts``."""
        depth = self.here if facts.memory else 0
        for var in facts.variables:
            own = self.variables[var].depth
            if own > depth:
                depth = own
        return depth

    def home_depth(self, facts: Dependence) -> int:
        """The layer throughout which the value of an expression that loads nothing is defined. Literals bind nothing."""
        depth = 0
        for var in facts.variables:
            binding = self.variables[var]
            if binding.value is None and binding.depth > depth:
                depth = binding.depth
        return depth

    def home(self, facts: Dependence) -> Slot | None:
        """Where an expression that loads nothing is best computed: see :meth:`slot`."""
        return self.slot(self.home_depth(facts))

    def slot(self, depth: int) -> Slot | None:
        """The outermost place for what depends on nothing inside of layer ``depth``; ``None`` is right here."""
        if self.barrier <= depth:
            return None
        for barrier in self._barriers:
            if barrier.depth > depth:
                return barrier.slot
        return None

    def load_depth(self, depth: int, buffer: Buffer) -> int:
        """The outermost layer at which an element may be loaded whose address depends on nothing inside of layer ``depth``."""
        for barrier in reversed(self._barriers):
            if barrier.depth <= depth:
                break
            if barrier.written is None or buffer in barrier.written:
                return barrier.depth
        return depth

    def get(self, key: Hashable) -> Any:
        return self._values.get(key)

    def keep(self, key: Hashable, value: Any, depth: int) -> None:
        """Remember ``value``, which is defined throughout layer ``depth``."""
        self._values[key] = value
        self._layers[depth].append(key)
