"""What the first warp of a block touches at once by one load, or store: sectors of memory, and passes over the banks.

All loops but those over threads are at their first iterations, and the first thread's element counts as the beginning of a
sector, and of the banks: so what is said is of the strides between threads alone. A vector is where it begins. An index that is
no arithmetic of axes (it is read from memory, say) counts as one that threads do not move. A warp has 32 threads.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from ansorlite.analysis.access import walked
from ansorlite.columns.arithmetic import equal, floor, maximum, minimum, modulo, product, where
from ansorlite.columns.tape import Number
from ansorlite.columns.warp import Digit, Layout, touched
from ansorlite.features.population import NestStatements
from ansorlite.loops.swizzle import CHUNK
from ansorlite.machine.gpu import BANKS, SECTOR, WORD
from ansorlite.machine.matrix import WARP
from ansorlite.schedule.nest import Attached, Nest
from ansorlite.schedule.padding import strides
from ansorlite.te import dtypes
from ansorlite.te.expr import Axis, Expr
from ansorlite.te.index.affine import affine
from ansorlite.te.index.form import Affine, division
from ansorlite.te.ops import BinaryOp
from ansorlite.te.tensor import Tensor


@dataclass(frozen=True)
class _Level:
    """A digit of the threads' numbers: along ``axis`` it moves by ``step``, at most by ``limit``; ``None``: along none."""

    radix: Number
    axis: Axis | None
    step: Number = 0
    limit: Number = math.inf


@dataclass(frozen=True, eq=False)
class WarpLanes:
    """The threads of the first warp, at a statement.

    Attributes:
        levels: the fastest digit first.
        threads: that there are.
        corners: where axes are at the first thread; 0 where nothing is said.
    """

    view: NestStatements
    levels: Sequence[_Level]
    threads: Number
    corners: Mapping[Axis, Number]

    @staticmethod
    def in_loops(view: NestStatements, nest: Nest, tensor: Tensor) -> WarpLanes:
        """Of a nest's anchor, or its epilogue."""
        own = dict(zip(nest.anchor.axes, tensor.axes, strict=True)) if tensor is not nest.anchor else {}
        levels = [
            _Level(
                loop.trip,
                own.get(loop.axis, loop.axis),
                loop.step,
                math.inf if loop.name in nest.cut else loop.span - loop.step,
            )
            for loop in reversed(nest.thread_loops)
        ]
        return WarpLanes(view, levels, product([1, *(level.radix for level in levels)]), {})

    @staticmethod
    def dealt(view: NestStatements, stage: Attached) -> WarpLanes:
        """Of what the threads of a block compute together (``schedule/lower_dealt.py``)."""
        tensor = stage.tensor
        order = walked(tensor)
        lengths = list(stage.lengths)
        levels: list[_Level] = []
        wide: Number = stage.lanes
        if tensor.reduce_axes:
            along = stage.lane_axis if stage.lane_axis is not None and stage.lane_axis.reduce else tensor.reduce_axes[-1]
            levels.append(_Level(stage.lanes, along, 1))
            wide = 1
        elif order:
            lengths[order[-1]] = lengths[order[-1]] / wide
        for dim in reversed(order):
            levels.append(_Level(lengths[dim], tensor.axes[dim], wide if dim == order[-1] else 1))
        there = minimum(stage.dealt, product(level.radix for level in levels))
        corners = {
            axis: _first(box.constant, extent - length)
            for axis, box, extent, length in zip(tensor.axes, stage.region, tensor.shape, stage.lengths, strict=True)
            if box is not None
        }
        return WarpLanes(view, levels, there, corners)

    def sectors(self, tensor: Tensor, forms: Sequence[Affine | None]) -> Number:
        """That a load, or store, of an element of ``tensor`` touches."""
        return touched(*self._walked(tensor, forms, swizzled=False), self.threads, SECTOR, WARP)[0]

    def passes(self, tensor: Tensor, forms: Sequence[Affine | None], nbytes: Number) -> Number:
        """Over the banks of shared memory, that a load, or store, of ``nbytes`` takes; three words count as four.

        As many threads as fill the banks go at a time.
        """
        wide = where(nbytes > 2 * WORD, 4 * WORD, where(nbytes > WORD, 2 * WORD, WORD))
        swizzle = self.view.program.swizzles.get(tensor, 1)
        swizzled = len(forms) > 1 and (not isinstance(swizzle, int) or swizzle > 1)
        digits, besides = self._walked(tensor, forms, swizzled)
        layout = self._layout(tensor, swizzle) if swizzled else Layout()
        return touched(digits, besides, self.threads, wide, BANKS / wide, layout)[1]

    def _between(self, tensor: Tensor) -> list[Number]:
        return strides(self.view.extents(tensor), self.view.pads.get(tensor, ()))

    def _layout(self, tensor: Tensor, swizzle: Number) -> Layout:
        item, row = dtypes.size(tensor.dtype), self._between(tensor)[-2]
        chunk = CHUNK // item
        return Layout(row * item, item, swizzle, maximum(1, floor(BANKS // CHUNK * chunk / row)), chunk)

    def _walked(
        self, tensor: Tensor, forms: Sequence[Affine | None], swizzled: bool
    ) -> tuple[list[Digit], list[tuple[Number, Number, Number]]]:
        """By digit how it moves the address, and by thread what comes on top of that."""
        item = dtypes.size(tensor.dtype)
        by_dim: list[tuple[Number, int]] = [(between * item, 0) for between in self._between(tensor)]
        if swizzled:
            by_dim[-2:] = [(1, 1), (1, 2)]
        moved: dict[Axis, list[Number]] = {}
        besides: list[list[Number]] = []
        for form, (scale, part) in zip(forms, by_dim, strict=True):
            for term, coefficient in form.terms if form is not None else ():
                if isinstance(term, Axis):
                    by = moved.setdefault(term, [0, 0, 0])
                    by[part] = by[part] + coefficient * scale
                elif any(level.axis in Affine(((term, 1),), 0).variables for level in self.levels):
                    besides = besides or [[0, 0, 0] for _ in range(WARP)]
                    values = [self._value(term, thread) for thread in range(WARP)]
                    for here, value in zip(besides, values, strict=True):
                        here[part] = here[part] + coefficient * scale * (value - values[0])
        none: list[Number] = [0, 0, 0]
        digits = [
            Digit(level.radix, level.step, level.limit, *(moved.get(level.axis, none) if level.axis is not None else none))
            for level in self.levels
        ]
        return digits, [(apart, row, column) for apart, row, column in besides]

    def _value(self, term: Expr, thread: int) -> Number:
        """Of a term of a form, at a thread."""
        if isinstance(term, Axis):
            return self.corners.get(term, 0) + self._coordinates[thread].get(term, 0)
        found = division(term)
        assert found is not None
        op, dividend, divisor = found
        form = affine(dividend)
        assert form is not None
        inside: Number = form.constant
        for each, coefficient in form.terms:
            inside = inside + coefficient * self._value(each, thread)
        return floor(inside / divisor) if op is BinaryOp.FLOORDIV else modulo(inside, divisor)

    @cached_property
    def _coordinates(self) -> list[dict[Axis, Number]]:
        """By thread how far it is along each axis."""
        found: list[dict[Axis, Number]] = []
        for thread in range(WARP):
            left: Number = thread
            here: dict[Axis, Number] = {}
            for level in self.levels:
                on = floor(left / level.radix)
                if level.axis is not None:
                    along = minimum((left - on * level.radix) * level.step, level.limit)
                    here[level.axis] = here.get(level.axis, 0) + along
                left = on
            found.append(here)
        return found


def own_forms(tensor: Tensor) -> list[Affine | None]:
    """Of the element that a statement stores."""
    return [Affine(((axis, 1),), 0) for axis in tensor.axes]


def request_bytes(lanes: Number, stride: Number, item: int) -> Number:
    """Of one load, or store, of a thread: a vector where neighbours are, else an element."""
    return where(equal(stride, 1), lanes * item, item)


def _first(constant: int, most: Number) -> Number:
    """Where the first box along a dimension begins: shifted inwards."""
    return maximum(minimum(constant, most), 0)
