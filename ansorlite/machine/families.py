"""Constants of common processors, for machines that nobody has calibrated.

They are rounded, and after public tables: latencies and throughputs as A. Fog's "Instruction tables", uops.info and Arm's
software optimisation guides have them, rates of caches as vendors' manuals do. Rates of memory depend on the board; those of the
Neoverse are of servers with eight channels. A multiply-add of theirs takes four cycles, but a sum that goes on in the next one
only two; and a V1 is taken with SVE's vectors of 32 bytes, two a cycle, not with NEON's, four. Where no instruction is a dot
product of bytes, it takes the time of the multiplications that it stands for. Only WIDE, znver3, znver4 and
sapphirerapids (on a later Xeon with the same instructions) were measured by us, but for the exponentials of WIDE and znver4,
which are scaled by those of sapphirerapids; ``ansorlite calibrate`` measures any. Rows have the tiles of Sapphire Rapids
(``amx.py``) by default, which count where a processor has such registers. What no table has (overlaps, the cost of spilling) is
as it was fitted to programs on the machine of :data:`WIDE`, but for sapphirerapids; misses of coherence are as that has them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from ansorlite.machine.constants import MachineConstants

#: A server core with vectors of 64 bytes and two units for them: fitted to 1,000 programs of 25 computations on one (2.5 GHz).
WIDE: Final = MachineConstants(
    clock=2.5e9,
    issue=4.0,
    arithmetic=0.5,
    div=8.0,
    math=15.5,
    convert=1.0,
    dot=0.5,
    latency=4.0,
    add_latency=4.0,
    forwarding=7.0,
    load=0.5,
    store=0.5,
    broadcast=0.65,
    gather=0.8,
    scatter=1.5,
    masked=0.0,
    masked_store=0.5,
    crossing=0.5,
    update=2.0,
    move=2.0,
    spill=2.0,
    branch=1.7,
    code=1536.0,
    decode=2.0,
    l2_bytes=64.0,
    l3_bytes=8.0,
    memory_bytes=5.0,
    l3_all=512.0,
    memory_all=10.0,
    l1_share=1.0,
    l2_share=1.0,
    l3_share=1.0,
    l2_run=1.0,
    l3_run=14.0,
    tlb_pages=64.0,
    page=10.0,
    core_overlap=0.3,
    near_overlap=0.8,
    far_overlap=0.5,
    region=2500.0,
    wake=7500.0,
)
#: A core with vectors of 32 bytes and two units for them.
MIDDLE: Final = replace(
    WIDE,
    clock=3.0e9,
    div=5.0,
    math=14.0,
    dot=1.0,
    scatter=3.0,
    l2_bytes=32.0,
    l3_bytes=12.0,
    memory_bytes=6.0,
    memory_all=12.0,
    store=1.0,
    move=1.5,
)
#: A core with vectors of 16 bytes and two units for them.
NARROW: Final = replace(
    MIDDLE, clock=2.5e9, div=5.0, math=15.0, dot=0.5, load=0.5, l2_bytes=24.0, issue=4.0, code=8192.0, decode=4.0
)

#: By LLVM's name of the processor.
FAMILIES: Final[Mapping[str, MachineConstants]] = {
    "haswell": replace(
        MIDDLE, latency=5.0, add_latency=3.0, div=13.0, dot=2.0, update=1.0, l2_bytes=32.0, l3_bytes=10.0, page=7.0,
    ),
    "broadwell": replace(
        MIDDLE, latency=5.0, add_latency=3.0, div=8.0, dot=2.0, update=1.0, l2_bytes=32.0, l3_bytes=10.0, page=7.0,
    ),
    "skylake": replace(MIDDLE, latency=4.0, add_latency=4.0, div=5.0, update=1.0, l2_bytes=43.0, page=7.0),
    "skylake-avx512": replace(WIDE, dot=1.5),
    "cascadelake": WIDE,
    "icelake-server": replace(WIDE, issue=5.0, store=1.0, l2_bytes=48.0, l3_bytes=10.0, code=2304.0),
    "sapphirerapids": replace(
        WIDE, clock=4.0e9, issue=4.9, arithmetic=0.55, div=10.8, math=9.4, convert=0.55, dot=0.55, latency=4.3, add_latency=3.7,
            forwarding=10.3, load=0.55, store=1.0, broadcast=0.55, gather=1.0, scatter=1.1, masked=0.4, masked_store=0.0,
            crossing=0.7, update=1.1, move=1.0, spill=1.5, branch=1.3, code=8192.0, decode=4.9,
        l2_bytes=41.0, l3_bytes=6.2, memory_bytes=3.9, l3_all=13.0, memory_all=7.6, l2_share=0.75, l2_run=0.3, l3_run=0.0,
            l3_short=0.23, memory_short=0.68, streams=64.0, tlb_pages=96.0, page=7.2, near_overlap=0.12, far_overlap=0.6,
            region=1500.0, half=0.9,
        tile_product=18.0, tile_latency=18.0, tile_load=9.6, tile_move=51.0,
    ),
    "znver2": replace(MIDDLE, issue=5.0, latency=5.0, add_latency=3.0, div=5.0, dot=2.0, forwarding=10.0, update=1.0,
        l3_bytes=16.0, code=4096.0, masked_store=11.0),
    "znver3": replace(
        MIDDLE, clock=3.2e9, issue=5.1, div=3.0, math=13.0, convert=0.5, latency=4.0, add_latency=3.0, forwarding=13.0,
            update=1.0, move=1.0, branch=1.0,
        load=0.5, store=1.0, broadcast=0.5, gather=0.5, scatter=1.8, masked_store=11.0,
            l2_bytes=32.0, l3_bytes=22.0, memory_bytes=6.0, l3_all=36.0,
            l3_run=5.0, l3_short=0.3, memory_short=0.8,
            memory_all=10.0, page=7.0,
        tlb_pages=64.0, spill=1.0, code=4096.0, decode=2.0,
    ),
    "znver4": replace(
        WIDE, clock=3.7e9, issue=5.1, arithmetic=1.0, div=6.0, math=9.5, dot=0.55, latency=4.0, add_latency=3.0, forwarding=15.0,
            load=1.0, store=2.0, broadcast=0.5, gather=0.5, masked_store=0.0, update=2.0, move=2.0, spill=1.9, branch=1.12,
            code=8192.0, decode=5.1,
        l2_bytes=31.0, l3_bytes=26.5, memory_bytes=8.4, l3_all=52.0, memory_all=9.2, l2_share=0.75, l3_share=0.75,
            l2_run=0.0, l3_run=5.0, near_overlap=0.4,
        tlb_pages=72.0, page=1.4, region=440.0, half=0.5,
    ),
    "znver5": replace(
        WIDE, clock=4.0e9, issue=8.0, arithmetic=0.5, div=6.0, math=11.0, latency=4.0, add_latency=2.0, forwarding=9.0,
            load=0.5,
        store=1.0, broadcast=0.5, l2_bytes=64.0, l3_bytes=16.0, memory_bytes=7.0, memory_all=14.0, page=4.0, tlb_pages=96.0,
            code=6144.0, decode=4.0,
    ),
    "neoverse-n1": replace(
        NARROW, clock=2.6e9, issue=4.0, div=7.0, math=18.0, convert=2.0, latency=2.0, add_latency=2.0, load=0.5, store=1.0,
        broadcast=0.5, gather=0.5, l2_bytes=24.0, l3_bytes=10.0, memory_bytes=7.0, memory_all=60.0, tlb_pages=48.0, page=5.0,
    ),
    "neoverse-v1": replace(
        MIDDLE, clock=2.6e9, issue=8.0, arithmetic=0.5, dot=0.5, div=7.0, math=18.0, convert=2.0, latency=2.0, add_latency=2.0,
        load=0.5, store=1.0, broadcast=0.5, gather=0.5, l2_bytes=32.0, l3_bytes=12.0, memory_bytes=9.0, memory_all=90.0,
        tlb_pages=40.0, page=5.0,
    ),
    "apple-m1": replace(
        NARROW, clock=3.2e9, issue=8.0, arithmetic=0.25, div=4.0, math=9.0, latency=4.0, add_latency=3.0, load=0.33, store=0.5,
        broadcast=0.33, l2_bytes=48.0, l3_bytes=16.0, memory_bytes=18.0, memory_all=20.0, tlb_pages=160.0, page=5.0,
    ),
}  # fmt: skip


#: Features that only some of these have: what an unknown processor with one of them is taken for.
_LIKE: Final = (("amx-tile", "sapphirerapids"),)


def shipped(cpu: str, features: str, vector_bytes: int) -> MachineConstants:
    """The constants of the processor that LLVM names ``cpu``; where it is not listed, of one like it.

    A virtual machine may hide the name, but not what there is: LLVM's ``features`` tell, else the width of vectors.
    """
    has = {feature[1:] for feature in features.split(",") if feature.startswith("+")}
    like = next((name for feature, name in _LIKE if feature in has), "")
    return FAMILIES.get(cpu) or FAMILIES.get(like) or (WIDE if vector_bytes >= 64 else MIDDLE if vector_bytes >= 32 else NARROW)
