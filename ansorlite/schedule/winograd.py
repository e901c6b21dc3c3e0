"""The rewrite of a short convolution into Winograd's: transforms, one batched matrix product, and the inverse.

All products of a tile are one axis ``g``; in the products all tiles are one axis ``t``, so that its length is whole
vectors however small the image is::

    C[y, x] = sum(D[c, y + r, x + s] * F[c, r, s])
    ->
    C_border[c, y, x]       = D, or 0 beyond its end, where the tiles reach further
    C_data1[g, c, y, tx]    = data row g @ C_border[c, y, m * tx + :]
    C_data0[g, c, ty, tx]   = data row g // a @ C_data1[g % a, c, m * ty + :, tx]
    C_filter..[g, c]        likewise, from F
    C_products[g, t]        = sum(C_data0[g, c, t // nx, t % nx] * C_filter0[g, c])
    C_inverse0[i, g, t]     = inverse row i @ C_products[a * : + g, t]
    C_inverse1[i, t, j]     = inverse row j @ C_inverse0[i, :, t]
    C[y, x]                 = C_inverse1[y % m, y // m * nx + x // m, x % m]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

from ansorlite import te
from ansorlite.analysis.short_convolution import ShortConvolution, short_convolution
from ansorlite.schedule.rewrite import rebuilt, redirected, tensor_named, with_body
from ansorlite.te.dag import ComputeDAG
from ansorlite.te.expr import Axis, Expr, Read, Var
from ansorlite.te.tensor import Tensor
from ansorlite.te.traversal import free_vars, substitute
from ansorlite.topi.winograd import Matrix, Transforms, product, transforms


def winograd(dag: ComputeDAG, stage: str, outputs: Sequence[int]) -> ComputeDAG:
    """``dag`` with ``stage``, a short convolution, computed as Winograd does.

    Args:
        outputs: for each window the number of neighbouring outputs that are computed together (``m``).

    Raises:
        ExpressionError: an ``m`` is too large for its window.
    """
    target = tensor_named(dag, stage)
    form = short_convolution(target)
    assert form is not None

    def change(tensor: Tensor, redirect: Callable[[Expr], Expr]) -> Tensor:
        if tensor is not target:
            return redirected(tensor, redirect)
        data, filter_ = redirect(form.data), redirect(form.filter)
        assert isinstance(data, Read)
        assert isinstance(filter_, Read)
        return with_body(target, _Rewrite(target, ShortConvolution(data, filter_, form.windows), tuple(outputs)).result())

    return rebuilt(dag, change)


def product_name(stage: str) -> str:
    """The name of the stage of products, the one that most of the work is in."""
    return f"{stage}_products"


def border_name(stage: str) -> str:
    """The name of the data with a border, where there is one."""
    return f"{stage}_border"


def data_name(stage: str) -> str:
    """The name of the stage of transformed data, the last one before the products."""
    return f"{stage}_data0"


@dataclass(frozen=True)
class _Rewrite:
    """The stages of one convolution, from the data to the result."""

    target: Tensor
    form: ShortConvolution
    outputs: tuple[int, ...]

    @cached_property
    def matrices(self) -> tuple[Transforms, ...]:
        return tuple(transforms(m, window.tap.extent) for m, window in zip(self.outputs, self.form.windows, strict=True))

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Elements of a tile, along each window."""
        return tuple(len(matrix.data) for matrix in self.matrices)

    @cached_property
    def tiles(self) -> tuple[int, ...]:
        """Tiles along each window."""
        return tuple(-(-w.space.extent // m) for m, w in zip(self.outputs, self.form.windows, strict=True))

    def name(self, part: str) -> str:
        return f"{self.target.name}_{part}"

    def tile_at(self, t: Expr, number: int) -> Expr:
        """Which tile along window ``number`` tile ``t`` is."""
        inner = prod(self.tiles[number + 1 :])
        outer = t // inner if inner > 1 else t
        return outer % self.tiles[number] if number else outer

    def result(self) -> Expr:
        """The target's body."""
        windows = self.form.windows
        last = self.inverse(self.products())
        place = self.tile_place(self.target.axes, [w.space for w in windows])
        t: Expr | None = None
        for window, m, count in zip(windows, self.outputs, self.tiles, strict=True):
            here = window.space // m if m > 1 else window.space
            t = here if t is None else t * count + here
        assert t is not None
        within = [window.space % m for window, m in zip(windows, self.outputs, strict=True)]
        others = [axis for axis in self.target.axes if all(axis is not w.space for w in windows)]
        return last[(*within[:-1], *others[:place], t, within[-1], *others[place:])]

    @staticmethod
    def tile_place(axes: Sequence[object], sliding: Sequence[object]) -> int:
        """Before how many of the other axes the one of all tiles stands: it takes the place of the first it replaces."""
        first = next(position for position, axis in enumerate(axes) if any(axis is s for s in sliding))
        return first

    # The data ----------------------------------------------------------------------------------------------------

    def border(self) -> Tensor:
        """The data, with zeros beyond its end where the last tiles reach further: they make outputs that nobody wants."""
        source, shape = self.form.data.tensor, list(self.form.data.tensor.shape)
        for window, m, count, size in zip(self.form.windows, self.outputs, self.tiles, self.sizes, strict=True):
            shape[window.data_dim] = max(shape[window.data_dim], window.offset + (count - 1) * m + size)
        if tuple(shape) == source.shape:
            return source

        def element(*axes: Expr) -> Expr:
            inside = [axis < old for axis, old, new in zip(axes, source.shape, shape, strict=True) if old < new]
            return te.if_then_else(te.all(*inside), source[axes], te.cast(0, source.dtype))

        return te.compute(tuple(shape), element, name=border_name(self.target.name))

    def data(self) -> Tensor:
        """``[g, dimensions of the data]``, with tiles instead of elements along the windows."""
        source, inner = self.border(), 1
        for number in reversed(range(len(self.form.windows))):
            window, m, matrix = self.form.windows[number], self.outputs[number], self.matrices[number].data
            merged, below, before, dim = number < len(self.form.windows) - 1, inner, source, window.data_dim

            def element(
                g: Expr,
                *axes: Expr,
                m: int = m,
                matrix: Matrix = matrix,
                merged: bool = merged,
                below: int = below,
                before: Tensor = before,
                dim: int = dim,
                offset: int = window.offset,
            ) -> Expr:
                column = (g % below,) if merged else ()
                places = [axes[dim] * m + (offset + k) for k in range(len(matrix))]
                elements = [before[(*column, *axes[:dim], place, *axes[dim + 1 :])] for place in places]
                return product(matrix, g // below if merged else g, elements)

            shape = list(source.shape[1:] if merged else source.shape)
            shape[dim] = self.tiles[number]
            inner *= len(matrix)
            source = te.compute((inner, *shape), element, name=self.name(f"data{number}"))
        return source

    def filter(self) -> Tensor:
        """``[g, other dimensions]``, those that outputs are indexed by last."""
        source = self.form.filter.tensor
        taps = [window.filter_dim for window in self.form.windows]
        order = [*taps, *self.filter_order]

        def element(*axes: Expr) -> Expr:
            return source[tuple(axes[order.index(d)] for d in range(source.ndim))]

        taken = te.compute(tuple(source.shape[d] for d in order), element, name=self.name("taps"))
        return self.transformed("filter", taken, [matrix.filter for matrix in self.matrices])

    @cached_property
    def filter_order(self) -> tuple[int, ...]:
        """The filter's dimensions without taps: those of sums, then those of outputs."""
        taps = {window.filter_dim for window in self.form.windows}

        def of_outputs(d: int) -> bool:
            return any(isinstance(v, Axis) and not v.reduce for v in free_vars(self.form.filter.indices[d]))

        return tuple(sorted((d for d in range(len(self.form.filter.indices)) if d not in taps), key=of_outputs))

    def transformed(self, part: str, source: Tensor, matrices: Sequence[Matrix]) -> Tensor:
        """``source[k1, k2, ..., rest]`` with each ``k`` transformed, the last one first, into ``[g, rest]``."""
        inner = 1
        for number in reversed(range(len(matrices))):
            matrix, outer = matrices[number], number
            rows, length, below, before = len(matrix), len(matrix[0]), inner, source

            def element(
                *axes: Expr,
                matrix: Matrix = matrix,
                outer: int = outer,
                length: int = length,
                below: int = below,
                before: Tensor = before,
                merged: bool = number < len(matrices) - 1,
            ) -> Expr:
                g, rest = axes[outer], axes[outer + 1 :]
                column = (g % below,) if merged else ()
                elements = [before[(*axes[:outer], k, *column, *rest)] for k in range(length)]
                return product(matrix, g // below if merged else g, elements)

            shape = source.shape[number + (2 if number < len(matrices) - 1 else 1) :]
            source = te.compute((*source.shape[:number], rows * inner, *shape), element, name=self.name(f"{part}{number}"))
            inner *= rows
        return source

    # Products and back -------------------------------------------------------------------------------------------

    def products(self) -> Tensor:
        """``[g, other outputs, t]``, the tiles ``t`` in the place of the first axis that they replace."""
        data, filter_ = self.data(), self.filter()
        windows = self.form.windows
        place = self.tile_place(self.target.axes, [w.space for w in windows])
        other = [axis for axis in self.target.axes if all(axis is not w.space for w in windows)]
        reduced = [axis for axis in self.target.reduce_axes if all(axis is not w.tap for w in windows)]
        fresh = [te.reduce_axis(axis.extent, name=axis.name) for axis in reduced]
        sliding = {window.data_dim: number for number, window in enumerate(windows)}

        def element(*axes: Expr) -> Expr:
            rest = list(axes[1:])
            t = rest.pop(place)
            values: dict[Var, Expr] = {**dict(zip(other, rest, strict=True)), **dict(zip(reduced, fresh, strict=True))}
            indices = [
                self.tile_at(t, sliding[d]) if d in sliding else substitute(index, values)
                for d, index in enumerate(self.form.data.indices)
            ]
            weights = [substitute(self.form.filter.indices[d], values) for d in self.filter_order]
            return te.sum(data[(axes[0], *indices)] * filter_[(axes[0], *weights)], axis=fresh)

        extents = [axis.extent for axis in other]
        shape = (prod(self.sizes), *extents[:place], prod(self.tiles), *extents[place:])
        return te.compute(shape, element, name=product_name(self.target.name))

    def inverse(self, source: Tensor) -> Tensor:
        """``[i1, ..., other outputs, t, i, other outputs]``: ``i`` of the last window is next to the tiles."""
        windows = self.form.windows
        place = self.tile_place(self.target.axes, [w.space for w in windows])
        for number, (matrix, m) in enumerate(zip(self.matrices, self.outputs, strict=True)):
            below, final, length, before = prod(self.sizes[number + 1 :]), number == len(windows) - 1, self.sizes[number], source

            def element(
                *axes: Expr,
                number: int = number,
                matrix: Transforms = matrix,
                below: int = below,
                final: bool = final,
                length: int = length,
                before: Tensor = before,
            ) -> Expr:
                done, rest = axes[:number], list(axes[number:])
                # The new index comes after those already there, or, the last time, right after the tiles.
                i = rest.pop(place + 1 if final else 0)
                column = [] if final else [rest.pop(0)]
                elements = [before[(*done, e * below + column[0] if column else e, *rest)] for e in range(length)]
                return product(matrix.inverse, i, elements)

            kept = source.shape[number + 1 :]
            shape = (
                (*source.shape[:number], *kept[: place + 1], m, *kept[place + 1 :])
                if final
                else (*source.shape[:number], m, below, *kept)
            )
            source = te.compute(shape, element, name=self.name(f"inverse{number}"))
        return source
