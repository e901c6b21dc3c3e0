"""Calling a whole model that is native code: arrays in, arrays out, none of them copied; any number of threads at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from ansorlite.runtime.arguments import Array, Signature, by_name, numpy_type
from ansorlite.runtime.builtin import Argument, Direct, DirectCalls, Role
from ansorlite.runtime.device import MemorySpace
from ansorlite.runtime.memory import check_fits, no_room
from ansorlite.runtime.workspace import WorkspacePool, workspace_shape

#: Runs the model once on the addresses of its blocks (``codegen/entry.py``).
Run: TypeAlias = Callable[[Sequence[int]], None]


def direct_arguments(
    signature: Signature, temporaries: int, weights: int, *more_weights: int
) -> tuple[list[int], list[Argument]]:
    """What builtin functions need to know to run a model: the addresses of its blocks as far as they are fixed, and the arrays
    that the others are of: temporaries, inputs, outputs.

    Args:
        temporaries: bytes that one call needs.
        weights, more_weights: where blocks of weights are.
    """
    arguments = [Argument(workspace_shape(temporaries), np.dtype(np.uint8), 0, Role.READ)]
    for values, role in ((signature.inputs, Role.READ), (signature.outputs, Role.WRITTEN)):
        for value in values.values():
            # Behind the weights.
            arguments.append(Argument(value.shape, numpy_type(value.dtype), len(arguments) + 1, role))
    return [0, weights, *[0] * (len(arguments) - 1), *more_weights], arguments


class ModelCall:
    """A model's calls: each has a block of temporaries to itself, and the caller's arrays are read and written in place."""

    def __init__(self, space: MemorySpace, signature: Signature, temporaries: int, weights: int, *more_weights: int) -> None:
        """
        Args:
            space: the memory that the model runs in.
            temporaries: bytes that one call needs.
            weights, more_weights: where blocks of weights are; the owner of this keeps them there.

        Raises:
            MemoryLimitError: this machine has less memory than a call needs.
        """
        check_fits({"outputs": signature.output_bytes, "temporaries": temporaries})
        self.signature = signature
        self._weights = weights
        self._more_weights = more_weights
        self._space = space
        self._blocks = WorkspacePool(space, temporaries)

    def __call__(
        self,
        run: Run,
        arrays: tuple[Any, ...],
        named: Mapping[str, Any],
        out: Mapping[str, Any] | None,
        direct: DirectCalls | None = None,
    ) -> dict[str, Array]:
        """``run`` on inputs given by place or name; the outputs by name.

        Args:
            direct: does the same for a block of temporaries, inputs and outputs that can be used in place, or nothing. It is
                tried first.

        Raises:
            ArgumentError: an input that is missing, unknown, given twice, or of another shape or dtype; ``out`` that does
                not fit.
            MemoryLimitError: there is no room for outputs or temporaries.
        """
        given: list[Any] = []
        if direct is not None:
            found = by_name(self.signature.inputs, arrays, named)
            given = [found[name] for name in self.signature.inputs]
            if direct.making is not None and not out:
                made = self._called(direct.making, given)
                if made is not None:
                    return dict(zip(self.signature.outputs, made, strict=True))
                direct = None  # which fits no better where outputs are given
        results = self.signature.results(out)
        if direct is not None and self._called(direct.given, [*given, *results]) is not None:
            return dict(zip(self.signature.outputs, results, strict=True))
        inputs = self.signature.given(arrays, named)
        if out:
            # An output may be written before an input that lies there is read for the last time.
            inputs = [array.copy() if any(np.may_share_memory(array, r) for r in results) else array for array in inputs]
        block = self._blocks.take()
        addresses, memories = self._space.place([*inputs, *results])
        run([block.address, self._weights, *addresses, *self._more_weights])
        for memory in memories[len(inputs) :]:
            self._space.copy_out(memory)
        self._blocks.give(block)
        return dict(zip(self.signature.outputs, results, strict=True))

    def _called(self, direct: Direct, arrays: Sequence[Any]) -> tuple[Array, ...] | None:
        """What ``direct`` makes; ``None``: some of ``arrays`` cannot be used in place, and it has not run."""
        block = self._blocks.take()
        try:
            made = direct(block.array, *arrays)
        except MemoryError:
            raise no_room("outputs", self.signature.output_bytes) from None
        self._blocks.give(block)
        return made
