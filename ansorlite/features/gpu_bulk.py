"""Which copies to shared memory are bulk copies, and what these cost a block: what ``codegen/nvptx/bulk.py`` does, in columns.

The threads of a block copy the elements of a box in the order in which its source lies in memory. Those that follow each other in
memory, and in shared memory too, are a run; where runs are long enough, and begin at multiples of 16 bytes, each is asked for by
one thread, and lands by itself. A source whose indices are more than sums (of windows) counts as one that threads copy.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from ansorlite.analysis.access import walked
from ansorlite.columns.arithmetic import both, ceil, either, equal, every, floor, maximum, modulo, product, where
from ansorlite.columns.tape import Number
from ansorlite.features.population import NestStatements
from ansorlite.loops.arguments import argument
from ansorlite.machine.gpu import BANKS, SECTOR, Gpu
from ansorlite.machine.matrix import WARP
from ansorlite.schedule.nest import Attached
from ansorlite.schedule.padding import strides
from ansorlite.sketch.gpu_limits import shared_bytes, threads
from ansorlite.te import dtypes
from ansorlite.te.expr import Axis, Read
from ansorlite.te.index.form import Affine, flat

#: Bytes that addresses and sizes of such copies are multiples of.
_UNIT: Final = 16
#: Bytes of shared memory that the barriers take which such copies land at: of 8 groups at once, at most.
BARRIERS: Final = 64


@dataclass(frozen=True)
class BulkCopy:
    """A copy of a box by runs.

    Attributes:
        there: flag: whether it is one.
        requests: runs that a thread asks for.
        sectors, wavefronts: of memory, and passes over the banks, in all, for each warp of the block.
    """

    there: Number
    requests: Number
    sectors: Number
    wavefronts: Number

    @staticmethod
    def of(count: Number, nbytes: Number, block: Number, there: Number = 1) -> BulkCopy:
        """``count`` runs of ``nbytes``, by a block of so many threads."""
        warps = ceil(block / WARP)
        sectors, passes = (count * ceil(nbytes / wide) / warps for wide in (SECTOR, BANKS))
        return BulkCopy(there, ceil(count / block), sectors, passes)


def bulk_copy(view: NestStatements, stage: Attached, gpu: Gpu) -> BulkCopy | None:
    """How a stage that threads share is copied in bulk; ``None``: in no program."""
    nest, body = view.nest, stage.tensor.body
    if not gpu.bulk_bytes or not isinstance(body, Read) or any(loop.guard is not None for loop in nest.loops):
        return None
    if any(other.tensor is body.tensor for other in nest.attached) or body.tensor in view.pads:
        return None
    form = flat(body, argument(body.tensor).strides)
    if any(not isinstance(term, Axis) for term, _ in form.terms):
        return None
    item = dtypes.size(stage.tensor.dtype)
    run, evenly = _longest(view, stage, form, item)
    nbytes, block = run * item, threads(nest)
    fits = shared_bytes(view.program, nest) + BARRIERS <= gpu.block_shared
    long = both(nbytes >= gpu.bulk_bytes, _even(nbytes))
    there = every((stage.slots > 1, _in_order(view, stage, item), fits, long, *evenly, *_corner(view, stage, form, item)))
    return BulkCopy.of(product([1, *stage.lengths]) / run, nbytes, block, there)


def _in_order(view: NestStatements, stage: Attached, item: int) -> Number:
    """Whether rows lie as they are: not swizzled, or so few that all have the same order. Else 16 bytes are a run."""
    tensor = stage.tensor
    if tensor.ndim < 2:
        return 1
    row = strides(view.extents(tensor), view.pads.get(tensor, ()))[-2]
    together = maximum(1, floor(BANKS // item / row))
    return either(equal(view.program.swizzles.get(tensor, 1), 1), stage.lengths[-2] <= together)


def _longest(view: NestStatements, stage: Attached, form: Affine, item: int) -> tuple[Number, list[Number]]:
    """Elements of a run, and whether the others begin at even places."""
    tensor = stage.tensor
    put = strides(view.extents(tensor), view.pads.get(tensor, ()))
    run: Number = 1
    going: Number = 1
    evenly: list[Number] = [_even(form.constant * item)]
    for dim in reversed(walked(tensor)):
        taken, length = form.coefficients.get(tensor.axes[dim], 0), stage.lengths[dim]
        alone = equal(length, 1)
        follows = every((going, equal(put[dim], run), equal(run, taken)))
        evenly.append(either(either(alone, follows), both(_even(put[dim] * item), _even(taken * item))))
        run = where(both(follows, length > 1), run * length, run)
        going = both(going, either(alone, follows))
    return run, evenly


def _corner(view: NestStatements, stage: Attached, form: Affine, item: int) -> Iterator[Number]:
    """Whether the boxes begin at even places: flags."""
    outside = view.outside(stage.at)
    for axis, box, extent, length in zip(stage.tensor.axes, stage.region, stage.tensor.shape, stage.lengths, strict=True):
        apart = form.coefficients.get(axis, 0) * item
        if box is None or apart % _UNIT == 0:
            continue
        low, high = box.reach
        if low < 0 or high >= extent:
            yield _even((extent - length) * apart)
        yield _even(box.constant * apart)
        for term, factor in box.terms:
            if factor < 0:
                yield 0
            for loop, here in zip(view.loops, outside, strict=True):
                if loop.axis is term:
                    # The last one of an uneven split is shifted inwards.
                    last = either(equal(modulo(loop.span, loop.step), 0), _even((loop.span - loop.step) * factor * apart))
                    even = both(_even(loop.step * factor * apart), last)
                    yield either(either(loop.trip <= 1, equal(here, 0)), even)


def _even(nbytes: Number) -> Number:
    return equal(modulo(nbytes, _UNIT), 0)
