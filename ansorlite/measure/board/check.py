"""Is what a board shows of its outputs right?"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from ansorlite.measure.board import evidence
from ansorlite.measure.board.connection import RubbishError
from ansorlite.measure.board.evidence import Question
from ansorlite.measure.check import Checker, Tolerance, limit_of
from ansorlite.runtime.arguments import Array, numpy_type
from ansorlite.te.dag import ComputeDAG

#: Outputs of fewer bytes are sent whole.
_WHOLE: Final = 1 << 17
#: Elements of a larger one that are sent, and how many each sum is of: an element that is off by a few hundredths shows.
_SAMPLE: Final = 1024
_BLOCK: Final = 256


class OutputCheck:
    """Asks a board for evidence, and judges it."""

    def __init__(self, dag: ComputeDAG, references: Sequence[Array], allowed: Tolerance) -> None:
        self._names = [tensor.name for tensor in dag.outputs]
        self._dtypes = [tensor.dtype for tensor in dag.outputs]
        self._references = references
        self._allowed = allowed
        self._checker = Checker(self._names, references, allowed)
        self._digests = [evidence.digest(reference) for reference in references]
        self._limits = [limit_of(reference, allowed.relative) for reference in references]
        # What may be off anywhere, or is no number, is not told by sums.
        odd = allowed.jumping > 0 or not all(np.isfinite(wide(reference)).all() for reference in references)
        self._whole = odd or sum(reference.nbytes for reference in references) <= _WHOLE

    def question(self) -> Question:
        """What to show; another time, something else."""
        return Question(self._whole, secrets.randbits(32), _SAMPLE, _BLOCK)

    def wrong(self, question: Question, answer: object) -> str:
        """What is wrong with the outputs, as one sentence; empty if nothing is.

        Raises:
            RubbishError: the answer is none to the question.
        """
        if not isinstance(answer, list) or len(answer) != len(self._references):
            raise RubbishError("the board does not show its outputs")
        if question.whole:
            pairs = zip(answer, self._references, strict=True)
            return self._checker.compare([_array(said, "whole", reference) for said, reference in pairs])
        return next(filter(None, (self._one(question, said, at) for at, said in enumerate(answer))), "")

    def _one(self, question: Question, said: object, at: int) -> str:
        reference, limit, name = self._references[at], self._limits[at], self._names[at]
        if not isinstance(said, dict):
            raise RubbishError("the board does not show its outputs")
        if limit is None:
            return "" if said.get("digest") == self._digests[at] else f"the elements of {name} are not what they should be"
        places = evidence.places(question, reference.size)
        sample = _array(said, "sample", reference.reshape(-1)[places])
        checker = Checker([f"a sample of {name}"], [reference.reshape(-1)[places]], self._allowed)
        error = wide(sample).astype(np.float64) - wide(reference.reshape(-1)[places])
        if not (np.abs(error) <= limit.of(reference.reshape(-1)[places])).all():
            return checker.compare([sample]) or f"elements of {name} are wrong"
        expected = evidence.sums(question, wide(reference.reshape(-1)))
        most = evidence.sums(question, limit.of(reference.reshape(-1)), largest=True)
        sums = _array(said, "sums", expected)
        wrong = ~(np.abs(sums - expected) <= most)
        return f"{int(wrong.sum())} of {wrong.size} sums over {name} are wrong" if wrong.any() else ""


def wide(array: Array) -> Array:
    """Its elements as numbers that numpy computes with."""
    return array.astype(np.float32) if array.dtype.itemsize == 2 and array.dtype.name in ("float16", "bfloat16") else array


def _array(said: Any, name: str, like: Array) -> Array:
    content = said.get(name) if isinstance(said, dict) else None
    if not isinstance(content, bytes) or len(content) != like.nbytes:
        raise RubbishError(f"the board shows {name!r} of an output with another number of bytes than {like.nbytes}")
    array: Array = np.frombuffer(content, np.uint8).view(numpy_type(like.dtype.name)).reshape(like.shape)
    return array
