"""Where the arrays of a device's launches are: parameters, and places in the workspace and in what is prepared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ansorlite.alignment import aligned
from ansorlite.codegen.compile import arguments
from ansorlite.codegen.object import Slot
from ansorlite.loops.kernel_module import KernelModule
from ansorlite.loops.nodes import Buffer, Function
from ansorlite.target import Target


@dataclass(frozen=True)
class Places:
    """Of one function.

    Attributes:
        slots: of its parameters, and of what its kernels hand on.
        workspace: bytes that it needs in all.
    """

    slots: Mapping[Buffer, Slot]
    workspace: int


class Slots:
    """Of the functions of a kernel module.

    Attributes:
        prepared: bytes of what is prepared.
    """

    def __init__(self, module: KernelModule, target: Target) -> None:
        given = arguments(module, target)
        count = len(module.params)
        self.prepared = given.prepared_bytes
        self._begin = given.temporary_bytes
        self._known = {buffer: Slot(number, 0) for buffer, number in given.positions.items()}
        self._known |= {buffer: Slot(count, offset) for buffer, offset in given.temporaries.items()}
        self._known |= {buffer: Slot(count + 1, offset) for buffer, offset in given.prepared.items()}
        self._workspace = count

    def of(self, function: Function, temporaries: Sequence[Buffer]) -> Places:
        """
        Args:
            temporaries: of scope GLOBAL, that the kernels of ``function`` hand on: they do not share room.
        """
        found = {buffer: self._known[buffer] for buffer in function.params}
        end = self._begin
        for buffer in temporaries:
            found[buffer] = Slot(self._workspace, end)
            end += aligned(buffer.nbytes)
        return Places(found, end)
