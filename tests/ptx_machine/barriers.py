"""mbarriers, and the bulk copies that land when one ends its phase: as late as they may, when no thread can go on without."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tests.ptx_machine.errors import PtxError
from tests.ptx_machine.state import Ints, Mask, State
from tests.ptx_machine.text import Instruction

#: Bytes that addresses and sizes of bulk copies are multiples of.
_UNIT: Final = 16
#: Bytes of a barrier.
_BARRIER: Final = 8


@dataclass
class _Bulk:
    """What is copied to (positions in shared memory) and what."""

    at: Ints
    values: NDArray[np.uint8]
    text: str


@dataclass
class Barrier:
    """One, of one block.

    Attributes:
        count: arrivals that a phase takes.
        arrived: those so far.
        expected: bytes that the phase waits for.
        phase: how many have ended.
        copies: that land when it ends.
    """

    count: int
    arrived: int = 0
    expected: int = 0
    phase: int = 0
    copies: list[_Bulk] = field(default_factory=list)

    @property
    def nbytes(self) -> int:
        """On their way."""
        return sum(copy.values.shape[1] for copy in self.copies)


def _all(s: State) -> dict[tuple[int, int], Barrier]:
    """By block and address."""
    result: dict[tuple[int, int], Barrier] = s.copies.setdefault("mbarrier", {})
    return result


def _of(s: State, thread: int, address: int, text: str) -> Barrier:
    s.memories["shared"].place(np.array([address]), s.block[[thread]], _BARRIER, text)
    found = _all(s).get((int(s.block[thread]), address))
    if found is None:
        raise PtxError(f"no mbarrier was made there: {text}")
    return found


def _in_use(barrier: Barrier, text: str) -> None:
    """Nothing may be added to a phase that only waits for its end: it may have ended, or not."""
    if barrier.arrived == barrier.count:
        raise PtxError(f"a barrier is used for its next phase, though nobody has waited for the last one: {text}")


def _barrier(s: State, instruction: Instruction, mask: Mask) -> None:
    words, operands = instruction.operation[1:], list(instruction.operands)
    if "try_wait" in words or "test_wait" in words:
        s.put(operands[0], _ended(s, instruction, mask), mask)
        return
    if words[0] == "arrive":
        s.put(operands.pop(0), np.zeros(s.n, np.uint64), mask)
    addresses = s.address(operands[0])
    numbers = s.value(operands[1], "u32").astype(np.int64) if len(operands) > 1 else np.zeros(s.n, np.int64)
    memory = s.memories["shared"]
    for thread in np.flatnonzero(mask).tolist():
        address, number = int(addresses[thread]), int(numbers[thread])
        match words:
            case ("init", *_):
                at = memory.place(addresses[[thread]], s.block[[thread]], _BARRIER, instruction.text)
                _all(s)[int(s.block[thread]), address] = Barrier(number)
                assert memory.unfenced is not None
                memory.unfenced[at[:, None] + np.arange(_BARRIER)] = True
                if memory.history is not None:
                    memory.history.writer[at[:, None] + np.arange(_BARRIER)] = s.identities_of(np.array([thread]))
            case ("expect_tx", *_):
                barrier = _of(s, thread, address, instruction.text)
                _in_use(barrier, instruction.text)
                barrier.expected += number
            case ("arrive", *rest):
                barrier = _of(s, thread, address, instruction.text)
                _in_use(barrier, instruction.text)
                barrier.expected += number if "expect_tx" in rest else 0
                barrier.arrived += 1
            case _:
                raise PtxError(f"unknown instruction: {instruction.text}")


def _ended(s: State, instruction: Instruction, mask: Mask) -> Mask:
    """Whether the phase of that parity has ended, for each thread: it is not the one that runs."""
    addresses, parities = s.address(instruction.operands[1]), s.value(instruction.operands[2], "u32")
    result = np.zeros(s.n, np.bool_)
    known: dict[tuple[int, int], Barrier] = {}
    for thread in np.flatnonzero(mask).tolist():
        key = int(s.block[thread]), int(addresses[thread])
        if key not in known:
            known[key] = _of(s, thread, key[1], instruction.text)
        result[thread] = known[key].phase % 2 != int(parities[thread])
    return result


def waits(instruction: Instruction) -> bool:
    """Whether threads may have to wait there for the end of a phase."""
    return instruction.operation[:2] == ("mbarrier", "try_wait")


def park(s: State, instruction: Instruction, taken: Mask) -> bool:
    """Let those of ``taken`` wait whose phase has not ended; whether there are such."""
    late = taken & ~_ended(s, instruction, taken)
    s.parked |= late
    return bool(late.any())


def advance(s: State) -> None:
    """No thread can go on: end the phases that those who wait are waiting for, and let these go on.

    Raises:
        PtxError: no phase can end.
    """
    addresses: dict[tuple[int, int], str] = {}
    for thread in np.flatnonzero(s.parked).tolist():
        instruction = s.kernel.instructions[int(s.pc[thread])]
        key = int(s.block[thread]), int(s.address(instruction.operands[1])[thread])
        addresses.setdefault(key, instruction.text)
    ended = False
    for key, text in addresses.items():
        barrier = _all(s)[key]
        if barrier.arrived != barrier.count:
            continue
        if barrier.nbytes != barrier.expected:
            there = f"{barrier.nbytes} are on their way: {text}"
            raise PtxError(f"a barrier was told to expect {barrier.expected} bytes, and {there}")
        _land(s, barrier)
        ended = True
    if not ended:
        raise PtxError(f"a phase of a barrier is waited for that never ends: {next(iter(addresses.values()))}")
    s.parked[:] = False


def _land(s: State, barrier: Barrier) -> None:
    memory = s.memories["shared"]
    assert memory.in_flight is not None
    assert memory.unfenced is not None
    for copy in barrier.copies:
        where = copy.at[:, None] + np.arange(copy.values.shape[1])
        np.subtract.at(memory.in_flight, where, 1)
        memory.store(copy.at, copy.values, copy.text)
        memory.unfenced[where] = False
        if memory.history is not None:
            # All who run have waited for it, or meet those who have.
            memory.history.writer[where] = -1
    barrier.arrived, barrier.expected, barrier.copies = 0, 0, []
    barrier.phase += 1


def bulk(s: State, instruction: Instruction, mask: Mask) -> None:
    """``cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [to], [from], bytes, [barrier];``"""
    if instruction.operation[3:] != ("shared::cluster", "global", "mbarrier::complete_tx::bytes"):
        raise PtxError(f"unknown instruction: {instruction.text}")
    text = instruction.text
    to, source, barriers = (s.address(instruction.operands[number]) for number in (0, 1, 3))
    sizes = s.value(instruction.operands[2], "u32").astype(np.int64)
    outside = s.memories["global"]
    for thread in np.flatnonzero(mask).tolist():
        nbytes, part = int(sizes[thread]), s.block[[thread]]
        if nbytes % _UNIT or not nbytes:
            raise PtxError(f"misaligned: {nbytes} bytes are no multiple of {_UNIT}: {text}")
        only = np.arange(s.n) == thread
        begin = outside.place(source[[thread]], part, nbytes, text, _UNIT)
        outside.note_load(begin, nbytes, s.identities(only), s.times(only), text)
        pieces = source[thread] + np.arange(0, nbytes, _UNIT)
        s.counts.memory(np.full(len(pieces), s.warp[thread]), pieces, _UNIT)
        send(s, thread, outside.load(begin, nbytes), int(to[thread]), int(barriers[thread]), _UNIT, text)


def send(s: State, thread: int, values: NDArray[np.uint8], to: int, barrier: int, aligned: int, text: str) -> None:
    """Bytes, (1, count), are on their way to shared memory, and land when the barrier ends its phase."""
    memory, part = s.memories["shared"], s.block[[thread]]
    assert memory.in_flight is not None
    assert memory.unfenced is not None
    only = np.arange(s.n) == thread
    nbytes = values.shape[1]
    at = memory.place(np.array([to]), part, nbytes, text, aligned)
    memory.note_store(at, values, s.identities(only), s.times(only), text)
    where = at[:, None] + np.arange(nbytes)
    here = memory.place(np.array([barrier]), part, _BARRIER, text)[:, None] + np.arange(_BARRIER)
    if memory.unfenced[where].any() or memory.unfenced[here].any():
        raise PtxError(f"no fence.proxy.async since threads stored what is copied to, or made the barrier: {text}")
    np.add.at(memory.in_flight, where, 1)
    found = _of(s, thread, barrier, text)
    if found.nbytes + nbytes > found.expected:
        # Its bytes may yet be announced in this phase, if that cannot end before.
        _in_use(found, text)
    found.copies.append(_Bulk(at, values, text))


def check_end(s: State) -> None:
    """No copy is left on its way when all threads have ended.

    Raises:
        PtxError: one is.
    """
    for barrier in _all(s).values():
        if barrier.copies:
            raise PtxError(f"a block ends before what it copies has landed: {barrier.copies[0].text}")


HANDLERS: Final = {"mbarrier": _barrier}
