"""A machine as one row of facts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from ansorlite.machine.constants import MachineConstants
from ansorlite.machine.families import WIDE
from ansorlite.machine.gpu import Gpu
from ansorlite.te import dtypes
from ansorlite.te.ops import BinaryOp

#: Which features of LLVM's give which dot products of words; of those that add up in one dtype, the one with most products first.
#: Matrix units do some that are no instruction on vectors.
_DOTS: Final[tuple[tuple[str, BinaryOp], ...]] = (
    ("avx512bf16", BinaryOp.DOT_BF16),
    ("bf16", BinaryOp.DOT_BF16),
    ("avx512vnni", BinaryOp.DOT_U8S8),
    ("avxvnni", BinaryOp.DOT_U8S8),
    ("avxvnniint8", BinaryOp.DOT_S8S8),
    ("avxvnniint8", BinaryOp.DOT_U8U8),
    ("amx-int8", BinaryOp.DOT_S8S8),
    ("amx-int8", BinaryOp.DOT_U8U8),
    ("dotprod", BinaryOp.DOT_S8S8),
    ("dotprod", BinaryOp.DOT_U8U8),
    ("i8mm", BinaryOp.DOT_U8S8),
    ("ssse3", BinaryOp.DOT_U8S7),
    ("sse2", BinaryOp.DOT_S16S16),
)
#: Which features of LLVM's give which dot products on matrix units (``loops/matrix_tile.py``), besides the registers themselves.
_MATRIX: Final = "+amx-tile"
_MATRIX_DOTS: Final[Mapping[BinaryOp, str]] = {
    BinaryOp.DOT_BF16: "+amx-bf16",
    BinaryOp.DOT_U8S8: "+amx-int8",
    BinaryOp.DOT_U8S7: "+amx-int8",
    BinaryOp.DOT_S8S8: "+amx-int8",
    BinaryOp.DOT_U8U8: "+amx-int8",
}


@dataclass(frozen=True)
class Target:
    """A machine as the search and the code generator see it.

    Attributes:
        kind: ``"llvm"``: a CPU through LLVM; ``"cuda"``: an NVIDIA GPU; ``"opencl"``: what an OpenCL driver runs programs on;
            ``"emulated"``: a CPU that stands in for a small GPU.
        triple, cpu, features: LLVM's names for the machine.
        vector_bytes: width of one vector register.
        vector_registers: how many of them there are.
        threads: how many threads a kernel runs on.
        l1, l2: bytes of data cache of one core.
        l3: bytes of the last-level cache.
        machine: what instructions, caches and memory cost there, for the analytical cost model.
        gpu: what a GPU has; ``None`` of CPUs. Of GPUs the rest is said per thread, and caches are those of one multiprocessor.
        ordinal: which of this machine's devices of the kind programs run on. Records do not tell devices of one name apart.
    """

    kind: str
    triple: str
    cpu: str
    features: str
    vector_bytes: int
    vector_registers: int
    threads: int
    l1: int
    l2: int
    l3: int
    machine: MachineConstants = WIDE
    gpu: Gpu | None = None
    ordinal: int = 0

    @staticmethod
    def of(facts: Mapping[str, Any]) -> Target:
        """The inverse of ``dataclasses.asdict``."""
        gpu = facts.get("gpu")
        machine = MachineConstants.of(facts["machine"])
        return Target(**{**facts, "machine": machine, "gpu": None if gpu is None else Gpu.of(gpu)})

    @property
    def reach(self) -> tuple[float, float, float]:
        """Bytes of each cache that a sweep can fill before it slows down."""
        m = self.machine
        return self.l1 * m.l1_share, self.l2 * m.l2_share, self.l3 * m.l3_share

    def lanes(self, dtype: str) -> int:
        """How many elements of ``dtype`` one vector register holds."""
        return max(1, self.vector_bytes // dtypes.size(dtype))

    @cached_property
    def sve_bytes(self) -> int | None:
        """How many bytes SVE's registers must have for the code to be right; ``None``: it does not depend on that.

        Vectors of 16 bytes are in NEON's registers, whatever the length of SVE's.
        """
        return self.vector_bytes if self.vector_bytes > 16 and "+sve" in self.features.split(",") else None

    @property
    def dots(self) -> tuple[BinaryOp, ...]:
        """The dot products of words that are instructions here, on vectors or on matrix units, the best first."""
        features = set(self.features.split(","))
        return tuple(dict.fromkeys(op for feature, op in _DOTS if f"+{feature}" in features))

    @cached_property
    def matrix_dots(self) -> frozenset[BinaryOp]:
        """The dot products of words that matrix units do."""
        features = self.features.split(",")
        return frozenset(op for op, feature in _MATRIX_DOTS.items() if _MATRIX in features and feature in features)

    @property
    def key(self) -> str:
        """A readable name under which records are kept: measurements of one target say nothing about another."""
        machine = f"{self.kind} {self.architecture} {self.cpu} v{self.vector_bytes} t{self.threads}"
        return machine if self.gpu is None else f"{machine} {self.gpu.name.replace(' ', '-')} {self.gpu.processors}"

    @cached_property
    def architecture(self) -> str:
        """LLVM's name of the instruction set: the first word of its triple."""
        return self.triple.split("-")[0]

    @property
    def platform(self) -> tuple[str, str]:
        """Which row of ``platforms.PLATFORMS`` says how programs for it are made and run."""
        return self.kind, self.architecture
