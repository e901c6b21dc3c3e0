"""Open dimensions: names in the place of extents, and the sizes that they have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from ansorlite.errors import ArgumentError
from ansorlite.graph.graph import Array, Graph
from ansorlite.graph.hybrid import HybridModel

#: An extent, or the name of one that is open. Equal names are equal extents.
Dim: TypeAlias = int | str

#: Of an open dimension: the one that it has, or those that programs are made for.
Sizes: TypeAlias = int | Sequence[int]

#: Input name → extents.
Shapes: TypeAlias = Mapping[str, tuple[int, ...]]


class ValuesNeededError(Exception):
    """The model's shapes depend on the values of these inputs. Never an answer to the user."""

    def __init__(self, names: Iterable[str]) -> None:
        super().__init__()
        self.names = frozenset(names)


@dataclass(frozen=True)
class OpenValue:
    """What is known of an input beforehand.

    Attributes:
        shape: ``None`` if not even the number of dimensions is known, or for what is no tensor.
        dtype: ``None`` for what is no tensor of numbers.
    """

    shape: tuple[Dim, ...] | None
    dtype: str | None


#: Input shapes, and values of inputs that decide shapes → the model for these: its graph, if all of it is native. Without values,
#: what depends on them runs in Python; with them, :class:`ValuesNeededError` says which are missing.
Specialize: TypeAlias = Callable[[Shapes, Mapping[str, Array] | None], Graph | HybridModel]


@dataclass(frozen=True, eq=False)
class Dimensions:
    """Inputs with open dimensions.

    Attributes:
        inputs: name → shape and dtype.
        buckets: open dimension → the sizes, rising, that programs are made for. Those of the others are powers of two.
    """

    inputs: Mapping[str, OpenValue]
    buckets: Mapping[str, tuple[int, ...]]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The open dimensions, in order of first use."""
        return open_dims(self.inputs)

    def shapes(self, sizes: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
        """Input name → shape, where it is known, for one size of each open dimension.

        Raises:
            ArgumentError: a dimension that is not there, or lacks a size.
        """
        check_dims(sizes, self.names)
        missing = [name for name in self.names if name not in sizes]
        if missing:
            raise ArgumentError(
                f'dimension {missing[0]!r} is open; give its size: dims={{"{missing[0]}": 8}}, or --dim {missing[0]}=8'
            )
        shapes = substituted(self.inputs, sizes)
        return {name: tuple(extent for extent in shape if isinstance(extent, int)) for name, shape in shapes.items()}

    def bucket(self, dim: str, size: int) -> int:
        """The size of the programs that serve ``size``: itself, if it is beyond all named ones."""
        named = self.buckets.get(dim)
        if named is None:
            return 1 << (size - 1).bit_length() if size else 0
        return next((upper for upper in named if upper >= size), size)


def open_dims(inputs: Mapping[str, OpenValue]) -> tuple[str, ...]:
    """The names of open dimensions, in order of first use."""
    shapes = [value.shape or () for value in inputs.values()]
    return tuple(dict.fromkeys(dim for shape in shapes for dim in shape if isinstance(dim, str)))


def substituted(inputs: Mapping[str, OpenValue], sizes: Mapping[str, int]) -> dict[str, tuple[Dim, ...]]:
    """The shapes of ``inputs``, where those are known, with ``sizes`` for open dimensions."""
    shapes = {name: value.shape for name, value in inputs.items() if value.shape is not None}
    return {name: tuple(sizes.get(d, d) if isinstance(d, str) else d for d in shape) for name, shape in shapes.items()}


def sizes_of(inputs: Mapping[str, OpenValue], shapes: Mapping[str, Sequence[int]]) -> dict[str, int]:
    """The sizes of open dimensions, where some inputs have these shapes.

    Raises:
        ArgumentError: a shape that the model contradicts, or two sizes for one dimension.
    """
    sizes: dict[str, int] = {}
    first: dict[str, str] = {}
    for name, shape in shapes.items():
        declared = inputs[name].shape
        if declared is None:
            continue
        text = f"({', '.join(map(str, declared))})"
        if len(declared) != len(shape):
            raise ArgumentError(f"input {name!r} has shape {tuple(shape)}, but the model takes {text}")
        for dim, extent in zip(declared, shape, strict=True):
            if isinstance(dim, int):
                if dim != extent:
                    raise ArgumentError(f"input {name!r} has shape {tuple(shape)}, but the model takes {text}")
            elif sizes.setdefault(dim, extent) != extent:
                raise ArgumentError(f"dimension {dim!r} is {sizes[dim]} in input {first[dim]!r} and {extent} in input {name!r}")
            else:
                first.setdefault(dim, name)
    return sizes


def with_sizes(
    inputs: Mapping[str, OpenValue], sizes: Mapping[str, Sizes]
) -> tuple[dict[str, OpenValue], dict[str, tuple[int, ...]]]:
    """``inputs`` with the dimensions fixed that have one size, and the buckets of those that have several.

    Raises:
        ArgumentError: a dimension that is not open, or sizes that are not positive integers.
    """
    check_dims(sizes, open_dims(inputs))
    fixed: dict[str, int] = {}
    buckets: dict[str, tuple[int, ...]] = {}
    for name, size in sizes.items():
        several = tuple(size) if isinstance(size, Iterable) and not isinstance(size, str) else (size,)
        if not several or not all(isinstance(one, int) and one > 0 for one in several):
            raise ArgumentError(f"dimension {name!r} is given the sizes {several}; give one or more, all of them greater than 0")
        if isinstance(size, int):
            fixed[name] = size
        else:
            buckets[name] = tuple(sorted(set(several)))
    shapes = substituted(inputs, fixed)
    return {name: OpenValue(shapes.get(name), value.dtype) for name, value in inputs.items()}, buckets


def check_dims(named: Iterable[str], dims: Sequence[str]) -> None:
    """Whether what is said of dimensions is said of open ones.

    Raises:
        ArgumentError: of another one.
    """
    unknown = [name for name in named if name not in dims]
    if unknown:
        raise ArgumentError(f"the model has no open dimension {unknown[0]!r}; it has: {', '.join(dims) or 'none'}")
