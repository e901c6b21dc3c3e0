"""The memories of a launch: what is where, who touched it when, and what may not be touched.

Addresses are offsets into one array of bytes for each space; those that a kernel may mix ("generic" ones) tell the space by where
they lie. Shared and local memory come once for each block and thread, one after another.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tests.ptx_machine.errors import PtxError

Ints = NDArray[np.int64]

#: Where generic addresses of shared and of local memory begin; those below are of global memory.
SHARED_WINDOW: Final = 1 << 40
LOCAL_WINDOW: Final = 1 << 41
_FRESH: Final = 0xCD


@dataclass
class History:
    """Who touched each byte last, to tell of races: two threads at one byte, one of them storing, with no barrier in between.

    Times are counts of barriers of the thread's block. Threads of two blocks are never ordered.
    """

    nbytes: int
    writer: NDArray[np.int32] = field(init=False)
    written: NDArray[np.int32] = field(init=False)
    reader: NDArray[np.int32] = field(init=False)
    read: NDArray[np.int32] = field(init=False)
    many: NDArray[np.bool_] = field(init=False)

    def __post_init__(self) -> None:
        self.writer, self.written, self.reader, self.read = (np.full(self.nbytes, -1, np.int32) for _ in range(4))
        self.many = np.zeros(self.nbytes, np.bool_)

    def unordered(
        self, other: NDArray[np.int32], then: NDArray[np.int32], mine: Ints, now: Ints, threads: int
    ) -> NDArray[np.bool_]:
        """Whether what ``other`` threads did at a time is not before what threads ``mine`` do now."""
        same_block = other // threads == mine // threads
        result: NDArray[np.bool_] = (other >= 0) & (other != mine) & (~same_block | (then == now))
        return result


@dataclass
class Memory:
    """One space.

    Attributes:
        stride: bytes between the part of one block, or thread, and the next; 0: there is one for all.
        region: for global memory, which array each byte is of; 0 is none.
        threads: of a block.
        in_flight: bytes that a copy which has not landed yet will store to.
        unfenced: bytes that threads have stored to since what reads shared memory besides threads was told.
    """

    space: str
    content: NDArray[np.uint8]
    stride: int
    threads: int
    region: NDArray[np.int16] | None = None
    history: History | None = None
    in_flight: NDArray[np.int16] | None = None
    unfenced: NDArray[np.bool_] | None = None
    #: Regions read by loads that may only be used for what nobody stores to, and regions stored to.
    constant: set[int] = field(default_factory=set)
    stored: set[int] = field(default_factory=set)

    def place(self, addresses: Ints, parts: Ints, nbytes: int, text: str, aligned: int | None = None) -> Ints:
        """Positions in ``content`` of accesses of ``nbytes`` by the parts (blocks or threads).

        Raises:
            PtxError: out of bounds, or not aligned.
        """
        alignment = aligned or nbytes
        if (addresses % alignment).any():
            wrong = int(addresses[np.flatnonzero(addresses % alignment)[0]])
            raise PtxError(f"misaligned: address {wrong:#x} of {self.space} memory is no multiple of {alignment}: {text}")
        if self.stride or self.region is None:
            outside = (addresses < 0) | (addresses + nbytes > (self.stride or len(self.content)))
        else:
            outside = (addresses < 0) | (addresses + nbytes > len(self.content))
            inside = np.where(outside, 0, addresses)
            first, last = self.region[inside], self.region[np.where(outside, 0, addresses + nbytes - 1)]
            outside |= (first == 0) | (first != last)
        if outside.any():
            wrong = int(addresses[np.flatnonzero(outside)[0]])
            raise PtxError(f"out of bounds: {nbytes} bytes at {wrong:#x} of {self.space} memory: {text}")
        return addresses + parts * self.stride

    def load(self, at: Ints, nbytes: int) -> NDArray[np.uint8]:
        """(accesses, nbytes)"""
        result: NDArray[np.uint8] = self.content[at[:, None] + np.arange(nbytes)]
        return result

    def store(self, at: Ints, values: NDArray[np.uint8], text: str) -> None:
        """Several may store the same to one place, nothing else.

        Raises:
            PtxError: they store different values there.
        """
        where = at[:, None] + np.arange(values.shape[1])
        self.content[where] = values
        if self.unfenced is not None:
            self.unfenced[where] = True
        if (self.content[where] != values).any():
            raise PtxError(f"race: threads store different values to one place of {self.space} memory at once: {text}")
        if self.region is not None and len(at):
            self.stored.update(np.unique(self.region[at]).tolist())

    def note_load(self, at: Ints, nbytes: int, lanes: Ints, now: Ints, text: str) -> None:
        """Threads ``lanes`` load at time ``now`` of each's block."""
        where, mine, time = _bytes(at, nbytes, lanes, now)
        if self.in_flight is not None and self.in_flight[where].any():
            raise PtxError(f"race: a copy that has not landed yet stores to what is read of {self.space} memory: {text}")
        h = self.history
        if h is None:
            return
        if h.unordered(h.writer[where], h.written[where], mine, time, self.threads).any():
            raise PtxError(f"race: another thread stores without a barrier to what is read of {self.space} memory: {text}")
        again = (h.reader[where] >= 0) & (h.reader[where] != mine)
        still = again & ((h.read[where] == time) | (h.reader[where] // self.threads != mine // self.threads))
        h.many[where] = still
        h.reader[where], h.read[where] = mine, time
        # Several of these very threads may read one byte.
        h.many[where[h.reader[where] != mine]] = True

    def note_store(self, at: Ints, values: NDArray[np.uint8], lanes: Ints, now: Ints, text: str) -> None:
        """As :meth:`note_load`, before the store. Who stores what is there already races with nobody."""
        where, mine, time = _bytes(at, values.shape[1], lanes, now)
        if self.in_flight is not None and self.in_flight[where].any():
            raise PtxError(f"race: a copy that has not landed yet stores to the same place of {self.space} memory: {text}")
        h = self.history
        if h is None:
            return
        changes = self.content[where] != values.ravel()
        read = h.unordered(h.reader[where], h.read[where], mine, time, self.threads)
        read |= h.many[where] & (h.read[where] == time) & (h.reader[where] // self.threads == mine // self.threads)
        written = h.unordered(h.writer[where], h.written[where], mine, time, self.threads)
        if (changes & read).any():
            raise PtxError(f"race: another thread reads without a barrier what is stored to {self.space} memory: {text}")
        if (changes & written).any():
            raise PtxError(f"race: another thread stores without a barrier to the same place of {self.space} memory: {text}")
        h.writer[where], h.written[where] = mine, time


def _bytes(at: Ints, nbytes: int, lanes: Ints, now: Ints) -> tuple[Ints, Ints, Ints]:
    return (at[:, None] + np.arange(nbytes)).ravel(), np.repeat(lanes, nbytes), np.repeat(now, nbytes)


def fresh(nbytes: int) -> NDArray[np.uint8]:
    """Memory that nobody has stored to."""
    return np.full(nbytes, _FRESH, np.uint8)
