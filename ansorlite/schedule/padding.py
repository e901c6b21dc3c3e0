"""Padded strides of buffers: how many elements that nobody uses lie behind each run along a dimension."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ansorlite.columns.arithmetic import modulo
from ansorlite.columns.tape import Number
from ansorlite.schedule.samples import Choose, evaluate
from ansorlite.schedule.structure import Alignment


def wanted(aligned: Sequence[Alignment], choose: Choose) -> dict[str, tuple[Number, Number]]:
    """By axis or loop: factor and offset."""
    return {each.along: (evaluate(each.factor, choose), evaluate(each.offset, choose)) for each in aligned}


def paddings(extents: Sequence[Number], aligned: Mapping[int, tuple[Number, Number]]) -> tuple[Number, ...]:
    """For each dimension the elements behind a run along it; ``aligned``: by dimension what strides are to be."""
    pads: list[Number] = [0] * len(extents)
    stride: Number = 1
    for dim in reversed(range(1, len(extents))):
        stride = stride * extents[dim]
        if dim - 1 in aligned:
            factor, offset = aligned[dim - 1]
            pads[dim] = modulo(offset - stride, factor)
            stride = stride + pads[dim]
    return tuple(pads)


def strides(extents: Sequence[Number], pads: Sequence[Number]) -> list[Number]:
    """Elements between neighbours along each dimension; ``pads`` is empty where there are none."""
    result: list[Number] = [1]
    for dim in reversed(range(1, len(extents))):
        result.append(result[-1] * extents[dim] + (pads[dim] if pads else 0))
    return result[: len(extents)][::-1]
