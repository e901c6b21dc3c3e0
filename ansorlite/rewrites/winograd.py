"""The rewrite of a short convolution into Winograd's: transforms, one batched matrix product, and the inverse.

All products of a tile are one axis ``g``. It stands right before the axis ``t`` of a row of tiles or more (see
``_Rewrite.inner``), here of all of them::

    C[y, x] = sum(D[c, y + r, x + s] * F[c, r, s])
    ->
    C_border[c, y, x]       = D, or 0 beyond its end, where the tiles reach further
    C_data1[g, c, y, tx]    = data row g @ C_border[c, y, m * tx + :]
    C_data0[c, g, ty, tx]   = data row g // a @ C_data1[g % a, c, m * ty + :, tx]
    C_filter..[g, c]        likewise, from F
    C_products[g, t]        = sum(C_data0[c, g, t // nx, t % nx] * C_filter0[g, c])
    C_inverse0[i, g, t]     = inverse row i @ C_products[a * : + g, t]
    C_inverse1[i, t, j]     = inverse row j @ C_inverse0[i, :, t]
    C[y, x]                 = C_inverse1[y % m, y // m * nx + x // m, x % m]
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

from ansorlite import te
from ansorlite.analysis.short_convolution import ShortConvolution, short_convolution
from ansorlite.te.dag import ComputeDAG
from ansorlite.te.expr import Axis, Expr, Read, Var
from ansorlite.te.rewriting import rebuilt, redirected, tensor_named, with_body
from ansorlite.te.tensor import Tensor
from ansorlite.te.traversal import free_vars, substitute
from ansorlite.topi.winograd import Matrix, Transforms, product, transforms

#: At least so many tiles lie side by side in the transformed data, as far as there are such: a register tile's.
RUN = 7


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


def inverse_name(stage: str, number: int) -> str:
    """The name of the stage that is transformed back along the windows up to ``number``."""
    return f"{stage}_inverse{number}"


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

    @cached_property
    def inner(self) -> int:
        """The tiles along the windows from this one on are one dimension of the products, next to that of ``g``.

        Those along the windows before keep dimensions of their own, so that all elements of a few tiles lie near to one
        another: written tile by tile, and read element by element, they stay in the cache.
        """
        last = len(self.tiles) - 1
        return next((number for number in range(last, -1, -1) if prod(self.tiles[number:]) >= RUN), 0)

    @cached_property
    def layout(self) -> tuple[Axis | None, ...]:
        """The dimensions of the products as the target's axes; ``None`` is ``g``."""
        merged = {window.space for window in self.form.windows[self.inner + 1 :]}
        kept: list[Axis | None] = [axis for axis in self.target.axes if axis not in merged]
        kept.insert(kept.index(self.form.windows[self.inner].space), None)
        return tuple(kept)

    @cached_property
    def place(self) -> int:
        """Where the merged tiles stand in :attr:`layout` without ``g``."""
        return [axis for axis in self.layout if axis is not None].index(self.form.windows[self.inner].space)

    def extent(self, axis: Axis | None) -> int:
        """Of a dimension of the products."""
        if axis is None:
            return prod(self.sizes)
        number = next((n for n, window in enumerate(self.form.windows) if window.space is axis), None)
        if number is None:
            return axis.extent
        return prod(self.tiles[number:]) if number == self.inner else self.tiles[number]

    def tile_at(self, at: Mapping[Axis | None, Expr], number: int) -> Expr:
        """Which tile along window ``number`` the element of the products at ``at`` belongs to."""
        if number < self.inner:
            return at[self.form.windows[number].space]
        t, below = at[self.form.windows[self.inner].space], prod(self.tiles[number + 1 :])
        outer = t // below if below > 1 else t
        return outer % self.tiles[number] if number > self.inner else outer

    def result(self) -> Expr:
        """The target's body."""
        last = self.inverse(self.products())
        tile = [w.space // m if m > 1 else w.space for w, m in zip(self.form.windows, self.outputs, strict=True)]
        t = tile[self.inner]
        for number in range(self.inner + 1, len(tile)):
            t = t * self.tiles[number] + tile[number]
        at: dict[Axis | None, Expr] = dict(zip((w.space for w in self.form.windows), tile, strict=True))
        at[self.form.windows[self.inner].space] = t
        within = [window.space % m for window, m in zip(self.form.windows, self.outputs, strict=True)]
        others = [at.get(axis, axis) for axis in self.layout if axis is not None]
        return last[(*within[:-1], *others[: self.place + 1], within[-1], *others[self.place + 1 :])]

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

    @cached_property
    def data_place(self) -> int:
        """Where ``g`` stands among the dimensions of the transformed data."""
        return self.form.windows[self.inner].data_dim

    def data(self) -> Tensor:
        """The dimensions of the data, with tiles instead of elements along the windows, and ``g``."""
        source, inner = self.border(), 1
        for number in reversed(range(len(self.form.windows))):
            window, m, matrix = self.form.windows[number], self.outputs[number], self.matrices[number].data
            merged, below, before, dim = number < len(self.form.windows) - 1, inner, source, window.data_dim
            place = self.data_place if number == 0 else 0

            def element(
                *axes: Expr,
                m: int = m,
                matrix: Matrix = matrix,
                merged: bool = merged,
                below: int = below,
                before: Tensor = before,
                dim: int = dim,
                offset: int = window.offset,
                place: int = place,
            ) -> Expr:
                g, rest = axes[place], (*axes[:place], *axes[place + 1 :])
                column = (g % below,) if merged else ()
                places = [rest[dim] * m + (offset + k) for k in range(len(matrix))]
                elements = [before[(*column, *rest[:dim], at, *rest[dim + 1 :])] for at in places]
                return product(matrix, g // below if merged else g, elements)

            shape = list(source.shape[1:] if merged else source.shape)
            shape[dim] = self.tiles[number]
            inner *= len(matrix)
            shape.insert(place, inner)
            source = te.compute(tuple(shape), element, name=self.name(f"data{number}"))
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
        """The dimensions of the result, with tiles instead of elements along the windows, and ``g``: see :attr:`layout`."""
        data, filter_ = self.data(), self.filter()
        windows = self.form.windows
        reduced = [axis for axis in self.target.reduce_axes if all(axis is not w.tap for w in windows)]
        fresh = [te.reduce_axis(axis.extent, name=axis.name) for axis in reduced]
        sliding = {window.data_dim: number for number, window in enumerate(windows)}

        def element(*axes: Expr) -> Expr:
            at = dict(zip(self.layout, axes, strict=True))
            values: dict[Var, Expr] = {axis: value for axis, value in at.items() if axis is not None}
            values |= dict(zip(reduced, fresh, strict=True))
            indices = [
                self.tile_at(at, sliding[d]) if d in sliding else substitute(index, values)
                for d, index in enumerate(self.form.data.indices)
            ]
            indices.insert(self.data_place, at[None])
            weights = [substitute(self.form.filter.indices[d], values) for d in self.filter_order]
            return te.sum(data[tuple(indices)] * filter_[(at[None], *weights)], axis=fresh)

        return te.compute(tuple(self.extent(axis) for axis in self.layout), element, name=product_name(self.target.name))

    def inverse(self, source: Tensor) -> Tensor:
        """``[i1, ..., dimensions of the products without g, i]``, with ``i`` of the last window next to the merged tiles."""
        dims, last = tuple(self.extent(axis) for axis in self.layout if axis is not None), len(self.matrices) - 1
        for number, (matrix, m) in enumerate(zip(self.matrices, self.outputs, strict=True)):

            def element(
                *axes: Expr,
                number: int = number,
                matrix: Transforms = matrix,
                below: int = prod(self.sizes[number + 1 :]),
                before: Tensor = source,
            ) -> Expr:
                done, rest = axes[:number], list(axes[number:])
                # The new index comes after those already there, or, the last time, right after the tiles.
                i = rest.pop(self.place + 1 if number == last else 0)
                column = 0 if number == last else rest.pop(0)
                place = 0 if number else self.layout.index(None)
                elements = [before[(*done, *rest[:place], e * below + column, *rest[place:])] for e in range(self.sizes[number])]
                return product(matrix.inverse, i, elements)

            done = self.outputs[:number]
            place = self.place + 1
            shape = (
                (*done, *dims[:place], m, *dims[place:]) if number == last else (*done, m, prod(self.sizes[number + 1 :]), *dims)
            )
            source = te.compute(shape, element, name=inverse_name(self.target.name, number))
        return source
