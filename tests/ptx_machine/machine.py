"""Runs PTX as a GPU would, one instruction after another, for all threads of many blocks at once.

Threads run in no fixed order on a GPU; here those with the lowest instruction go first, so that threads which took different
ways meet again. What relies on any order is told by the memory's history (``memory.py``), what relies on a wait that is missing
by copies that land at their wait and not before (``copies.py``, ``barriers.py``). What GPUs answer with a fault is an error: out
of bounds, misaligned addresses, barriers that not all threads reach, an operation of a warp that not all named lanes take part
in, or of a warpgroup that not all of its threads do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tests.ptx_machine import accesses, arithmetic, barriers, copies, matrix, tensor_maps, warpgroup, warps
from tests.ptx_machine.counts import Counts
from tests.ptx_machine.errors import PtxError
from tests.ptx_machine.memory import LOCAL_WINDOW, SHARED_WINDOW, History, Memory, fresh
from tests.ptx_machine.state import State
from tests.ptx_machine.text import Instruction, Kernel, kernels

#: Where global memory begins, and bytes between two arrays that belong to none.
_GUARD: Final = 256
#: Threads that run at once: more of them make better use of numpy, and take more memory.
_AT_ONCE: Final = 1 << 14

Handler = Callable[[State, Instruction, NDArray[np.bool_]], None]
_HANDLERS: Final[Mapping[str, Handler]] = {
    **arithmetic.HANDLERS,
    **accesses.HANDLERS,
    **warps.HANDLERS,
    **copies.HANDLERS,
    **barriers.HANDLERS,
    **tensor_maps.HANDLERS,
    **matrix.HANDLERS,
    **warpgroup.HANDLERS,
}

#: Operations that are told by more than their first word.
_WAITING: Final = ("bar", "barrier")


def launch(
    ptx: str,
    grid: int,
    arrays: Sequence[NDArray[Any]],
    *,
    threads: int | None = None,
    shared: int = 0,
    kernel: str | None = None,
    races: bool = True,
    limit: int = 2_000_000,
) -> Counts:
    """Run a kernel; ``arrays`` are its parameters, which it works on in place. Those that cannot be written are only read.

    Args:
        grid: blocks.
        threads: of a block, where the kernel does not say.
        shared: bytes of shared memory besides those that the kernel declares.
        kernel: its name, where the module has several.
        races: whether races are looked for.
        limit: instructions after which it is taken to hang.

    Raises:
        PtxError: it does what PTX does not allow, or what is not known here.
    """
    found = kernels(ptx)
    if kernel is None and len(found) != 1:
        raise PtxError(f"the module has the kernels {', '.join(found)}; say which")
    chosen = found[kernel or next(iter(found))]
    if len(chosen.parameters) != len(arrays):
        raise PtxError(f"{chosen.name} takes {len(chosen.parameters)} parameters, not {len(arrays)}")
    block = chosen.threads or ((threads, 1, 1) if threads else None)
    if block is None or (threads is not None and int(np.prod(block)) != threads):
        raise PtxError(f"{chosen.name} is for blocks of {chosen.threads} threads, not of {threads}")
    space = _Space.of(chosen, arrays, int(np.prod(block)), races)
    counts = Counts()
    together = max(1, _AT_ONCE // int(np.prod(block)))
    for first in range(0, grid, together):
        _run(chosen, space, block, range(first, min(grid, first + together)), grid, shared, races, counts, limit)
    space.finish(arrays)
    return counts


@dataclass
class _Space:
    """Global memory of a launch."""

    memory: Memory
    addresses: list[int] = field(default_factory=list)
    names: dict[str, int] = field(default_factory=dict)
    read_only: set[int] = field(default_factory=set)

    @staticmethod
    def of(kernel: Kernel, arrays: Sequence[NDArray[Any]], threads: int, races: bool) -> _Space:
        owned = [variable for variable in kernel.variables if variable.space in ("global", "const")]
        sizes = [array.nbytes for array in arrays] + [variable.nbytes or 0 for variable in owned]
        begins, end = [], _GUARD
        for size in sizes:
            begins.append(end)
            end += -(-size // _GUARD) * _GUARD + _GUARD
        region = np.zeros(end, np.int16)
        content = fresh(end)
        for number, (begin, size) in enumerate(zip(begins, sizes, strict=True), 1):
            region[begin : begin + size] = number
        for array, begin in zip(arrays, begins, strict=False):
            content[begin : begin + array.nbytes] = np.ascontiguousarray(array).view(np.uint8).ravel()
        history = History(end) if races else None
        result = _Space(Memory("global", content, 0, threads, region, history, np.zeros(end, np.int16)), begins[: len(arrays)])
        for variable, begin in zip(owned, begins[len(arrays) :], strict=True):
            result.names[variable.name] = begin
            content[begin : begin + (variable.nbytes or 0)] = 0
            if variable.content is not None:
                content[begin : begin + len(variable.content)] = np.frombuffer(variable.content, np.uint8)
        result.read_only = {number for number, array in enumerate(arrays, 1) if not array.flags.writeable}
        return result

    def finish(self, arrays: Sequence[NDArray[Any]]) -> None:
        if both := self.memory.stored & self.memory.constant:
            raise PtxError(f"array {min(both) - 1} is stored to, but also read by loads for what nobody stores to")
        if wrong := self.memory.stored & self.read_only:
            raise PtxError(f"array {min(wrong) - 1} is only to be read, but is stored to")
        for array, begin in zip(arrays, self.addresses, strict=True):
            if array.flags.writeable:
                array[...] = self.memory.content[begin : begin + array.nbytes].view(array.dtype).reshape(array.shape)


def _run(
    kernel: Kernel,
    space: _Space,
    block: tuple[int, int, int],
    blocks: range,
    grid: int,
    dynamic: int,
    races: bool,
    counts: Counts,
    limit: int,
) -> None:
    threads = int(np.prod(block))
    names = dict(space.names)
    ends = {"shared": 0, "local": 0}
    last: list[str] = []
    for variable in kernel.variables:
        if variable.space not in ends:
            continue
        if variable.nbytes is None:
            last.append(variable.name)
            ends["shared"] = -(-ends["shared"] // variable.alignment) * variable.alignment
            continue
        begin = -(-ends[variable.space] // variable.alignment) * variable.alignment
        names[variable.name] = begin
        ends[variable.space] = begin + variable.nbytes
    names.update(dict.fromkeys(last, ends["shared"]))
    shared, local = ends["shared"] + dynamic, ends["local"]
    of_shared = shared * len(blocks)
    state = State(
        kernel,
        threads,
        np.asarray(blocks),
        grid,
        block,
        names,
        dict(zip((p.name for p in kernel.parameters), space.addresses, strict=True)),
        {
            "global": space.memory,
            "shared": Memory(
                "shared",
                fresh(of_shared),
                shared or 1,
                threads,
                history=History(of_shared) if races else None,
                in_flight=np.zeros(of_shared, np.int16),
                unfenced=np.zeros(of_shared, np.bool_),
            ),
            "local": Memory("local", fresh(local * len(blocks) * threads), local or 1, threads),
        },
        counts,
        (SHARED_WINDOW, LOCAL_WINDOW),
    )
    _Loop(state, kernel).run(limit)


@dataclass
class _Loop:
    """Which threads run what next."""

    state: State
    kernel: Kernel
    steps: int = 0

    def run(self, limit: int) -> None:
        s = self.state
        s.pc = np.zeros(s.n, np.int64)
        s.done, s.waiting = np.zeros(s.n, np.bool_), np.zeros(s.n, np.bool_)
        while not s.done.all():
            ready = ~s.done & ~s.waiting & ~s.held & ~s.parked
            if not ready.any():
                self.stuck()
                continue
            pc = int(s.pc[ready].min())
            self.straight(pc, ready & (s.pc == pc), limit)
        barriers.check_end(s)

    def stuck(self) -> None:
        """Nobody can go on: let the threads of blocks go on that all wait at one barrier."""
        s = self.state
        waiting = s.waiting.reshape(len(s.blocks), -1)
        free: NDArray[np.bool_] = np.asarray(waiting.all(1))
        if not free.any():
            if s.parked.any():
                barriers.advance(s)
                return
            if s.held.any():
                text = self.kernel.instructions[int(s.pc[s.held].min())].text
                raise PtxError(f"not all threads that are to take part in it come to it: {text}")
            raise PtxError("not all threads of a block reach the barrier that others wait at")
        for pcs, there in zip(s.pc[s.in_warp], s.in_warp >= 0, strict=True):
            if len(set(pcs[there])) > 1:
                raise PtxError("not all threads of a block reach the barrier that others wait at: lanes of a warp are at several")
        s.release(free)

    def straight(self, pc: int, mask: NDArray[np.bool_], limit: int) -> None:
        """Run ``mask`` from ``pc`` on until it jumps, waits, or meets others."""
        s, kernel = self.state, self.kernel
        while True:
            if pc >= len(kernel.instructions):
                raise PtxError("a thread runs past the end of the kernel")
            instruction = kernel.instructions[pc]
            self.steps += 1
            if self.steps > limit:
                raise PtxError(f"more than {limit} instructions: it hangs at {instruction.text}")
            taken = mask if instruction.guard is None else mask & s.predicate(instruction.guard)
            operation = instruction.operation[0]
            s.counts.instructions[operation] += int(s.in_warps(taken).any(1).sum())
            if operation == "bra":
                s.pc[mask] = pc + 1
                s.pc[taken] = self.target(instruction)
                return
            if operation in ("ret", "exit"):
                s.pc[mask] = pc + 1
                s.done |= taken
                return
            if operation in _WAITING and "warp" not in instruction.operation:
                warps.block_barrier(s, instruction, taken, mask)
                s.pc[mask] = pc + 1
                return
            if warps.waits(instruction) and not warps.gather(s, instruction, taken, pc):
                s.pc[mask] = pc
                return
            if warpgroup.waits(instruction) and not warpgroup.gather(s, instruction, taken, mask, pc):
                s.pc[mask] = pc
                return
            if barriers.waits(instruction) and barriers.park(s, instruction, taken):
                s.pc[mask] = pc
                return
            if s.freed is not None:
                # The last of a warp's lanes is here: those that were held go on with it.
                mask, taken, s.freed = mask | s.freed, taken | s.freed, None
            if operation not in _HANDLERS:
                raise PtxError(f"unknown instruction: {instruction.text}")
            if taken.any():
                with np.errstate(all="ignore"):
                    _HANDLERS[operation](s, instruction, taken)
            pc += 1
            if pc in kernel.targets:
                s.pc[mask] = pc
                return

    def target(self, instruction: Instruction) -> int:
        label = instruction.operands[-1]
        if label not in self.kernel.labels:
            raise PtxError(f"no label {label}")
        return self.kernel.labels[label]
