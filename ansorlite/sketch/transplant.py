"""A program of one task as a program of another of the same shape: what one has learnt, tried by the other."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from ansorlite.schedule.samples import Hole
from ansorlite.sketch.sketch import Sketch


def transplant(source: Sketch, row: Sequence[int], target: Sketch) -> tuple[int, ...] | None:
    """The row of ``target`` that is nearest to what ``row`` is in ``source``; ``None`` if the two do not take the same steps.

    Tiles become those whose spans are in the most similar proportions; of other holes the nearest value is taken. What comes out
    need not be valid.
    """
    if shape(source) != shape(target):
        return None
    return tuple(_nearest(ours, value, theirs) for ours, value, theirs in zip(source.holes, row, target.holes, strict=True))


def shape(sketch: Sketch) -> str:
    """The steps of a sketch, whatever its stages are called and how long their axes are."""
    names = {tensor.name: f"t{position}" for position, tensor in enumerate(sketch.structure.dag.tensors)}
    return re.sub(r"\w+", lambda word: names.get(word.group(), word.group()), sketch.text)


def _nearest(ours: Hole, value: int, theirs: Hole) -> int:
    if ours.table is None or theirs.table is None:
        choices = np.asarray(theirs.choices, np.float64)
        return int(np.abs(np.log2(1 + np.maximum(choices, 0)) - np.log2(1 + max(ours.choices[value], 0))).argmin())
    # From the inside: a register tile is as good in a longer axis. The outermost span is the extent itself.
    wanted, known = np.log2(ours.table.spans[value, 1:-1]), np.log2(theirs.table.spans[:, 1:-1])
    return int(np.abs(known - wanted).sum(axis=1).argmin())
