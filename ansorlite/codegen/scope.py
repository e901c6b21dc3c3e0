"""What is known at the point of the function being written: bound loop variables, and values already computed.

Layers nest as loops do. A *barrier* layer is real control flow: what is computed inside is not defined outside. Other
layers (an unrolled iteration, a statement) only bound the life of values that depend on what they bind, so a value is
kept in the layer of the deepest thing it depends on, but never outside of a barrier.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from ansorlite.loops.nodes import Load
from ansorlite.te.expr import Expr, Var


class Binding(NamedTuple):
    """A loop variable's value (a literal, or an SSA name) and the layer that binds it."""

    text: str
    depth: int

    @property
    def literal(self) -> bool:
        return self.text[0] != "%"


@dataclass(frozen=True)
class Dependence:
    """What the value of an expression depends on."""

    variables: frozenset[Var]
    memory: bool


@lru_cache(maxsize=1 << 14)
def dependence(expr: Expr) -> Dependence:
    if isinstance(expr, Var):
        return Dependence(frozenset((expr,)), False)
    below = [dependence(child) for child in expr.children()]
    variables: frozenset[Var] = frozenset().union(*(d.variables for d in below))
    return Dependence(variables, isinstance(expr, Load) or any(d.memory for d in below))


class Scope:
    """A stack of layers."""

    def __init__(self) -> None:
        self.variables: dict[Var, Binding] = {}
        self._values: dict[Hashable, Any] = {}
        self._layers: list[list[Hashable]] = [[]]
        self._barrier = 0
        self.statement = 0

    @property
    def depth(self) -> int:
        """The number of the innermost layer."""
        return len(self._layers) - 1

    @contextmanager
    def layer(self, barrier: bool = False, statement: bool = False) -> Iterator[None]:
        """A layer for the time of a ``with``. ``statement``: loads from memory stay true within it."""
        outer = self._barrier, self.statement
        self._layers.append([])
        if barrier:
            self._barrier = self.depth
        if statement:
            self.statement = self.depth
        try:
            yield
        finally:
            for key in self._layers.pop():
                del self._values[key]
            self._barrier, self.statement = outer

    def bind(self, var: Var, text: str) -> None:
        """``var`` has a value from here on; the innermost layer binds it."""
        self.variables[var] = Binding(text, self.depth)

    def depth_of(self, expr: Expr) -> int:
        """The layer that bounds the life of the value of ``expr``."""
        facts = dependence(expr)
        depth = max((self.variables[var].depth for var in facts.variables), default=0)
        return max(depth, self.statement) if facts.memory else depth

    def get(self, key: Hashable) -> Any:
        return self._values.get(key)

    def keep(self, key: Hashable, value: Any, depth: int) -> None:
        """Remember ``value``, which depends on nothing inside of layer ``depth``."""
        self._values[key] = value
        self._layers[max(depth, self._barrier)].append(key)
