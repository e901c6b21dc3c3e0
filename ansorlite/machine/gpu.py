"""Facts of GPUs, from data sheets: what a block, and a multiprocessor, may have; rates may be measured (``kept_gpu.py``).

The estimate of a program's time (``cost_model/draft_gpu.py``) reads every number of a GPU here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from ansorlite.machine.matrix import AMPERE, HOPPER, HOPPER_WARP, MatrixUnit

#: Bytes of memory that are fetched as one, and that all banks of shared memory give in one pass.
SECTOR: Final = 32
BANKS: Final = 128
#: Bytes of a word of shared memory: of one bank.
WORD: Final = 4


@dataclass(frozen=True)
class Gpu:
    """One GPU.

    Attributes:
        name: as its maker has it.
        warp: threads that run in lockstep.
        block_threads: threads of a block, at most.
        block_shared: bytes of shared memory of a block, at most: above 49,152 its launch must ask for them.
        thread_registers: registers of 32 bits of a thread, at most.
        processors: how many multiprocessors there are.
        shared, registers, threads, blocks: of one multiprocessor: bytes of shared memory, registers of 32 bits, and how many
            threads and blocks it runs at once.
        l2: bytes of the cache that all share.
        bandwidth: of memory, bytes per second.
        flops: of float32 without matrix units, operations per second.
        load_bytes: that a thread loads by one instruction, at most.
        async_copies: whether copies to shared memory may land later.
        bulk_bytes: from how many bytes on neighbours in memory are copied there as one, by a bulk copy; 0: there are none.
        latency: cycles from a load of memory until it lands (microbenchmarks of A100 and H100 say 470 to 600).
        sector_bytes: of memory that a multiprocessor gets in a cycle, in sectors of 32 (NVIDIA's A100 white paper, of its L2).
        map_bytes: from how many bytes of a row on boxes of arrays are copied there as one, by a tensor map; 0: there are none.
        lanes: operations on float32 that a multiprocessor begins in a cycle.
        matrix: the matrix units that programs may use, the best first.
        launch: seconds of one launch (CUDA C++ Best Practices: a few microseconds).
        shared_words: of 32 bits, that the shared memory of a multiprocessor gives in a cycle: one of each bank.
        l2_bandwidth: bytes per second of copies within the cache that all share; 0: not known.
        schedulers: of a multiprocessor, each of which begins an instruction of a warp in a cycle; each has a matrix unit.
        arithmetic_latency: cycles until the result of an addition or product is there (CUDA C++ Programming Guide, on
            multiprocessor level parallelism: 4 cycles and 4 schedulers, so that 16 warps hide it).
        special: reciprocals, roots and such that a multiprocessor begins in a cycle (CUDA C++ Programming Guide, throughput of
            native arithmetic instructions: 16 from compute capability 7.0 on).
    """

    name: str
    warp: int
    block_threads: int
    block_shared: int
    thread_registers: int
    processors: int
    shared: int
    registers: int
    threads: int
    blocks: int
    l2: int
    bandwidth: float
    flops: float
    load_bytes: int
    async_copies: bool
    lanes: int
    launch: float = 3e-6
    shared_words: float = 32.0
    l2_bandwidth: float = 0.0
    matrix: tuple[MatrixUnit, ...] = ()
    bulk_bytes: int = 0
    latency: float = 500.0
    sector_bytes: float = 64.0
    map_bytes: int = 0
    schedulers: int = 4
    arithmetic_latency: float = 4.0
    special: float = 16.0

    @property
    def clock(self) -> float:
        """Cycles per second. A lane does a product and an addition in one; each counts as an operation."""
        return self.flops / (2.0 * self.processors * self.lanes)

    @property
    def sectors(self) -> float:
        """Of memory, that a multiprocessor gets in a cycle."""
        return self.sector_bytes / SECTOR

    @property
    def wavefronts(self) -> float:
        """Passes over all banks of its shared memory that a multiprocessor makes in a cycle."""
        return self.shared_words * WORD / BANKS

    @property
    def limits(self) -> str:
        """Its name, and what its blocks and threads may have, for people."""
        block = f"{self.block_threads:,} threads and {self.block_shared:,} bytes of shared memory"
        return (
            f"{self.name}: {self.processors} multiprocessors; a block has at most {block}, "
            f"a thread {self.thread_registers} registers"
        )

    @staticmethod
    def of(facts: Mapping[str, Any]) -> Gpu:
        """The inverse of ``dataclasses.asdict``."""
        return Gpu(**{**facts, "matrix": tuple(map(MatrixUnit.of, facts.get("matrix", ())))})


#: Least bytes of bulk copies, from compute capability 9.0 on: half of what a warp copies by one instruction else.
#: `ansorlite calibrate` measures it.
BULK_BYTES: Final = 256
#: Least bytes of a row of a box, for machine code of compute capability 9.0 alone: what matrix units read as one.
#: On an H100 maps of such rows were 1.02 to 1.33 times as fast as threads.
MAP_BYTES: Final = 16
#: None that is sold: the one that a CPU stands in for. It is small, so that its programs are. Special units: a quarter as wide.
EMULATED: Final = Gpu(
    name="emulated",
    warp=32,
    block_threads=64,
    block_shared=8 << 10,
    thread_registers=255,
    processors=2,
    shared=16 << 10,
    registers=65_536,
    threads=128,
    blocks=2,
    l2=1 << 20,
    bandwidth=1e10,
    flops=1e10,
    load_bytes=16,
    async_copies=True,
    lanes=128,
    special=32.0,
)
#: NVIDIA A100 Tensor Core GPU, data sheet of SXM with 80 GB; CUDA C++ Programming Guide, compute capability 8.0.
A100: Final = Gpu(
    name="NVIDIA A100-SXM4-80GB",
    warp=32,
    block_threads=1024,
    block_shared=163 << 10,
    thread_registers=255,
    processors=108,
    shared=164 << 10,
    registers=65_536,
    threads=2048,
    blocks=32,
    l2=40 << 20,
    bandwidth=2.039e12,
    flops=19.5e12,
    load_bytes=16,
    async_copies=True,
    lanes=64,
    matrix=AMPERE,
)
#: NVIDIA H100 Tensor Core GPU, data sheet of SXM; compute capability 9.0. The rest is as before.
H100: Final = replace(
    A100,
    name="NVIDIA H100 80GB HBM3",
    block_shared=227 << 10,
    processors=132,
    shared=228 << 10,
    l2=50 << 20,
    bandwidth=3.35e12,
    flops=66.9e12,
    lanes=128,
    matrix=HOPPER,
    bulk_bytes=BULK_BYTES,
    map_bytes=MAP_BYTES,
)
#: The same, for machine code of any GPU of its compute capability: without what sm_90a has.
H100_PLAIN: Final = replace(H100, matrix=HOPPER_WARP, map_bytes=0)
#: Arm Mali-G710 with 10 cores at 850 MHz, 64-bit LPDDR5X-7500. Arm GPU data sheet (16 lanes, 64 multiply-adds of float32 a core
#: and cycle, L2 of 512 KB to 2 MB), Arm Mali GPU OpenCL developer guide (local memory of 32 KB, which lies in main memory; 64
#: registers where half of a core's 2,048 threads run; special functions at a quarter of the rate of additions). Nothing was
#: measured on one.
MALI: Final = Gpu(
    name="Mali-G710",
    warp=16,
    block_threads=1024,
    block_shared=32 << 10,
    thread_registers=64,
    processors=10,
    shared=32 << 10,
    registers=65_536,
    threads=1024,
    blocks=64,
    l2=2 << 20,
    bandwidth=60e9,
    flops=1.09e12,
    load_bytes=16,
    async_copies=False,
    lanes=64,
)
