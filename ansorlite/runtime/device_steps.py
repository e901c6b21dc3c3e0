"""One step of a model on a device: the addresses of what it takes, then a launch or a copy."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping

from ansorlite.codegen.entry import Address, Call, EntryStep, Move
from ansorlite.runtime.device import LoadedKernel


def run_step(step: EntryStep, bases: bytes, kernels: Mapping[str, LoadedKernel], move: Callable[[int, int, int], None]) -> None:
    """Begin it.

    Args:
        bases: addresses of the model's blocks of memory, 64 bits each.
        kernels: by the symbols that steps call them by.
        move: copies from one address to another: (target, source, bytes).
    """
    addresses = struct.unpack(f"{len(bases) // 8}Q", bases)

    def at(address: Address) -> int:
        return int(addresses[address.base]) + address.offset

    match step:
        case Call(entry, arguments):
            kernels[entry].call(struct.pack(f"{len(arguments)}Q", *map(at, arguments)))
        case Move(source, target, nbytes):
            move(at(target), at(source), nbytes)
