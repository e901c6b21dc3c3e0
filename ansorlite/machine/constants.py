"""The machine as the analytical cost model sees it: one row of numbers, each with a unit."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, fields

from ansorlite.errors import CalibrationError
from ansorlite.machine import amx


@dataclass(frozen=True)
class MachineConstants:
    """Cycles, bytes a cycle, and sizes. Cycles are those of a dependent integer addition; vectors fill a register.

    Attributes:
        clock: cycles a second while the machine works.
        issue: instructions a cycle.
        arithmetic: a vector addition, multiplication, or both fused, where many are independent.
        div: a vector division or square root.
        math: a vector exponential.
        convert: a vector conversion between integers and floats.
        dot: a vector dot product of words.
        latency: of a fused multiply-add whose result the next one needs.
        add_latency: of an addition, likewise.
        forwarding: of an addition whose operand was just stored.
        load, store: a vector in the first cache.
        broadcast: a load that goes to all lanes.
        gather: each element of a strided vector that is loaded.
        scatter: each of one that is stored.
        masked: what a masked load takes beyond a plain one.
        masked_store: what a masked store takes beyond a plain one.
        crossing: what an access of two cache lines takes beyond one of one.
        update: an addition to memory in the first cache, where the next one is elsewhere.
        move: an accumulator from its tile into a register and back.
        spill: a vector that finds no register, stored and loaded again.
        branch: one iteration of a loop, whatever it does.
        code: instructions of straight-line code that are kept decoded.
        decode: instructions a cycle that are not.
        l2_bytes, l3_bytes, memory_bytes: bytes a cycle that one core reads from there.
        l3_all, memory_all: all cores together.
        l1_share, l2_share, l3_share: the part of a cache that a sweep can fill before it slows down.
        l2_run, l3_run: the start of a run of lines in the second or third cache, which nothing has fetched ahead.
        l3_short, memory_short: what bytes from there take longer where they come in runs that end before a page does, as a share.
        streams: runs side by side that are fetched ahead, as long as they are.
        tlb_pages: pages whose addresses a core remembers nearby.
        page: looking for the address of another page.
        core_overlap, near_overlap, far_overlap: the share of the shorter of two that is not hidden behind the longer: what
            units do and the instructions that keep them busy; both and the second cache; all of that and what lies beyond.
        region: entering and leaving a parallel loop while the thread team is awake.
        wake: what the first parallel loop takes more when the team sleeps.
        half: what a vector of at most half a register takes, as a share of a whole one; below 1 on cores that do a whole one in
            two parts.
        coherence_miss: a line that another core has written, read in runs of two, and what writing it anew then costs that one.
        tile_product: a product of tiles on a matrix unit, where many are independent.
        tile_latency: of one whose sums the next one needs.
        tile_load: a tile in the first cache.
        tile_move: what a tile of sums takes beyond being loaded, where it comes from the second cache and is stored again.
    """

    clock: float
    issue: float
    arithmetic: float
    div: float
    math: float
    convert: float
    dot: float
    latency: float
    add_latency: float
    forwarding: float
    load: float
    store: float
    broadcast: float
    gather: float
    scatter: float
    masked: float
    masked_store: float
    crossing: float
    update: float
    move: float
    spill: float
    branch: float
    code: float
    decode: float
    l2_bytes: float
    l3_bytes: float
    memory_bytes: float
    l3_all: float
    memory_all: float
    l1_share: float
    l2_share: float
    l3_share: float
    l2_run: float
    l3_run: float
    tlb_pages: float
    page: float
    core_overlap: float
    near_overlap: float
    far_overlap: float
    region: float
    wake: float
    half: float = 1.0
    coherence_miss: float = 40.0
    l3_short: float = 0.0
    memory_short: float = 0.0
    streams: float = 16.0
    tile_product: float = amx.PRODUCT
    tile_latency: float = amx.LATENCY
    tile_load: float = amx.LOAD
    tile_move: float = amx.MOVE

    def as_dict(self) -> dict[str, float]:
        """By name, to be written down."""
        return asdict(self)

    @staticmethod
    def of(values: Mapping[str, object]) -> MachineConstants:
        """The inverse of :meth:`as_dict`; what a row was written down without is as it is on most machines.

        Raises:
            CalibrationError: a constant is missing, unknown, or no finite number of at least 0.
        """
        names = [field.name for field in fields(MachineConstants)]
        optional = {field.name for field in fields(MachineConstants) if field.default is not MISSING}
        if wrong := ", ".join(sorted((set(names) - optional - set(values)) | (set(values) - set(names)))):
            raise CalibrationError(f"these constants are missing or unknown: {wrong}")
        for name, value in values.items():
            if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
                raise CalibrationError(f"the constant {name} is {value!r}, not a number of at least 0")
        return MachineConstants(**{name: float(value) for name, value in values.items()})  # type: ignore[arg-type]
