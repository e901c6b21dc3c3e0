"""Cases of an open model: shapes, and values that decide shapes; and how programs are made for more than one."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass

from ansorlite.graph.dimensions import Shapes
from ansorlite.graph.graph import Array


@dataclass(frozen=True)
class Growth:
    """Dimensions that are filled up together, by as many elements each.

    Attributes:
        dims: the first one's bucket decides.
        sizes: of the first one, in the smaller and in the larger graph that the program's is made of.
    """

    dims: tuple[str, ...]
    sizes: tuple[int, int]


@dataclass(frozen=True, eq=False)
class Case:
    """What a graph is made for.

    Attributes:
        shapes: input name → shape.
        sizes: open dimension → size.
        values: of the inputs that decide shapes.
        growths: what is filled up.
    """

    shapes: Shapes
    sizes: Mapping[str, int]
    values: Mapping[str, Array]
    growths: tuple[Growth, ...] = ()

    @property
    def key(self) -> Hashable:
        """Of what the exact graph depends on."""
        return key_of(self.shapes, self.values)

    @property
    def kind(self) -> Hashable:
        """What kind of call it is: a first one, whose caches have no places yet, one of a single place, or another."""
        return tuple((dim, min(size, 2)) for dim, size in self.sizes.items())


def key_of(shapes: Shapes, values: Mapping[str, Array]) -> Hashable:
    """What is the same for equal shapes and values."""
    return tuple(shapes.items()), tuple((name, array.tobytes()) for name, array in values.items())
