"""What a board shows of an output: enough to tell whether it is right, and no more than a network carries quickly.

The tuner says what to show when the program is on the board: a few elements, at places that nobody could guess, and sums of all,
each element times a weight that nobody could guess. Who wants to lie has to compute the right output to know the answer. Needs
nothing but Python and numpy: it runs on boards, too.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ansorlite.measure.filling import from_bfloat16

Array = np.ndarray[Any, Any]

#: Blocks that are summed at a time: what sums take in memory does not grow with the output.
_PIECE: Final = 1024


@dataclass(frozen=True)
class Question:
    """What to show of an output.

    Attributes:
        whole: all of it; else a sample and sums.
        seed: of places and weights.
        sample: how many elements.
        block: how many elements a sum is of.
    """

    whole: bool
    seed: int
    sample: int
    block: int


def digest(output: Array) -> str:
    """Of an output's bytes."""
    return hashlib.sha256(np.ascontiguousarray(output).tobytes()).hexdigest()


def places(question: Question, size: int) -> Array:
    """Of the sample, in an output of so many elements."""
    return np.random.default_rng((question.seed, 0)).integers(0, size, question.sample)


def sums(question: Question, values: Array, *, largest: bool = False) -> Array:
    """Of each ``question.block`` of ``values`` (flat), with their weights. (blocks,) float64.

    Args:
        largest: as large as these sums could be, were each of ``values``, none below 0, the size of an element of either sign.
    """
    generator = np.random.default_rng((question.seed, 1))
    piece = _PIECE * question.block
    found = []
    for begin in range(0, values.size, piece):
        part = values[begin : begin + piece]
        weights = _weights(generator, part.size)
        weighted = (np.abs(weights) if largest else weights) * part
        found.append(np.add.reduceat(weighted, np.arange(0, part.size, question.block)))
    return np.concatenate(found)


def _weights(generator: np.random.Generator, size: int) -> Array:
    """Of so many elements more: of either sign, none near 0. (size,) float64."""
    numbers = generator.random(size, dtype=np.float32)
    return np.where(numbers < 0.5, numbers - 1, numbers).astype(np.float64)


def numbers(output: Array, dtype: str) -> Array:
    """The elements of an output as numbers, flat; of bfloat16 it has the bits."""
    flat = output.reshape(-1)
    return from_bfloat16(flat) if dtype == "bfloat16" else flat


def shown(question: Question, output: Array, dtype: str) -> dict[str, bytes | str]:
    """What a board answers."""
    said: dict[str, bytes | str] = {"digest": digest(output)}
    if question.whole:
        said["whole"] = output.tobytes()
    else:
        said["sample"] = np.ascontiguousarray(output.reshape(-1)[places(question, output.size)]).tobytes()
        said["sums"] = sums(question, numbers(output, dtype)).tobytes()
    return said
