"""``cp.async``: copies to shared memory that land when their thread waits; bulk ones: ``barriers.py``, ``tensor_maps.py``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tests.ptx_machine import accesses, barriers, tensor_maps
from tests.ptx_machine.errors import PtxError
from tests.ptx_machine.state import Ints, Mask, State
from tests.ptx_machine.text import Instruction


@dataclass
class Copy:
    """What one instruction copies, for some threads.

    Attributes:
        threads: that it has not landed for yet.
        groups: the number of the group that it is in, of each of these.
        values, at: of each.
    """

    threads: Ints
    groups: Ints
    values: NDArray[np.uint8]
    at: Ints
    text: str

    def part(self, chosen: Mask) -> Copy:
        return Copy(self.threads[chosen], self.groups[chosen], self.values[chosen], self.at[chosen], self.text)


@dataclass
class Queue:
    """Copies on their way, and how many groups each thread has committed."""

    committed: Ints
    copies: list[Copy] = field(default_factory=list)


def _queue(s: State) -> Queue:
    result: Queue = s.copies.setdefault(0, Queue(np.zeros(s.n, np.int64)))
    return result


def _copy(s: State, instruction: Instruction, mask: Mask) -> None:
    """``cp.async.{ca,cg}.shared.global [to], [from], bytes{, source bytes};`` what is beyond the source's bytes becomes 0."""
    nbytes = int(instruction.operands[2])
    if nbytes not in ((16,) if instruction.has("cg") else (4, 8, 16)):
        raise PtxError(f"no copy of {nbytes} bytes: {instruction.text}")
    to, source = s.address(instruction.operands[0]), s.address(instruction.operands[1])
    wanted = s.value(instruction.operands[3], "u32").astype(np.int64) if len(instruction.operands) > 3 else np.full(s.n, nbytes)
    if (wanted[mask] > nbytes).any():
        raise PtxError(f"more bytes from the source than are copied: {instruction.text}")
    if (source[mask] % nbytes).any():
        raise PtxError(f"misaligned: a source of a copy of {nbytes} bytes: {instruction.text}")
    values = np.zeros((s.n, nbytes), np.uint8)
    for size in np.unique(wanted[mask]).tolist():
        here = mask & (wanted == size)
        if size:
            at = s.memories["global"].place(source[here], s.block[here], size, instruction.text, 1)
            s.memories["global"].note_load(at, size, s.identities(here), s.times(here), instruction.text)
            accesses.note(s, "global", source, here, size)
            values[here, :size] = s.memories["global"].load(at, size)
    memory = s.memories["shared"]
    at = memory.place(to[mask], s.block[mask], nbytes, instruction.text)
    memory.note_store(at, values[mask], s.identities(mask), s.times(mask), instruction.text)
    accesses.note(s, "shared", to, mask, nbytes)
    assert memory.in_flight is not None
    np.add.at(memory.in_flight, at[:, None] + np.arange(nbytes), 1)
    queue, threads = _queue(s), np.flatnonzero(mask)
    queue.copies.append(Copy(threads, queue.committed[threads], values[mask], at, instruction.text))


def _commit(s: State, mask: Mask) -> None:
    _queue(s).committed[mask] += 1


def _wait(s: State, mask: Mask, pending: int) -> None:
    """All but the last ``pending`` groups of each of these threads land."""
    queue = _queue(s)
    kept = []
    for copy in queue.copies:
        lands = mask[copy.threads] & (copy.groups < queue.committed[copy.threads] - pending)
        if lands.any():
            _land(s, copy.part(lands))
        if not lands.all():
            kept.append(copy.part(~lands))
    queue.copies = kept


def _land(s: State, copy: Copy) -> None:
    memory = s.memories["shared"]
    assert memory.in_flight is not None
    np.subtract.at(memory.in_flight, copy.at[:, None] + np.arange(copy.values.shape[1]), 1)
    mask = np.zeros(s.n, np.bool_)
    mask[copy.threads] = True
    # Seen by other threads once they have passed a barrier after the wait.
    memory.note_store(copy.at, copy.values, s.identities(mask), s.times(mask), copy.text)
    memory.store(copy.at, copy.values, copy.text)


def _asynchronous(s: State, instruction: Instruction, mask: Mask) -> None:
    match instruction.operation[2:]:
        case ("ca" | "cg", *_):
            _copy(s, instruction, mask)
        case ("bulk", "tensor", *_):
            tensor_maps.copy(s, instruction, mask)
        case ("bulk", *_):
            barriers.bulk(s, instruction, mask)
        case ("commit_group",):
            _commit(s, mask)
        case ("wait_group",):
            _wait(s, mask, int(instruction.operands[0]))
        case ("wait_all",):
            _commit(s, mask)
            _wait(s, mask, 0)
        case _:
            raise PtxError(f"unknown instruction: {instruction.text}")


HANDLERS: Final = {"cp": _asynchronous}
