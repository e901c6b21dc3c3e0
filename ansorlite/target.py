"""The machine that programs are made for: one row of facts, read from the machine itself."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import llvmlite.binding as llvm

from ansorlite.errors import TargetError
from ansorlite.machine.constants import MachineConstants
from ansorlite.machine.families import WIDE, shipped
from ansorlite.te import dtypes
from ansorlite.te.ops import BinaryOp

_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")

#: Which features of LLVM's give which dot products of words, the one with most products an instruction first.
_DOTS: Final[tuple[tuple[str, BinaryOp], ...]] = (
    ("avx512vnni", BinaryOp.DOT_U8S8),
    ("avxvnni", BinaryOp.DOT_U8S8),
    ("avxvnniint8", BinaryOp.DOT_S8S8),
    ("avxvnniint8", BinaryOp.DOT_U8U8),
    ("dotprod", BinaryOp.DOT_S8S8),
    ("dotprod", BinaryOp.DOT_U8U8),
    ("i8mm", BinaryOp.DOT_U8S8),
    ("ssse3", BinaryOp.DOT_U8S7),
    ("sse2", BinaryOp.DOT_S16S16),
)


@dataclass(frozen=True)
class Target:
    """A CPU as the search and the code generator see it.

    Attributes:
        kind: ``"llvm"``: a CPU through LLVM.
        triple, cpu, features: LLVM's names for the machine.
        vector_bytes: width of one vector register.
        vector_registers: how many of them there are.
        threads: how many threads a kernel runs on.
        l1, l2: bytes of data cache of one core.
        l3: bytes of the last-level cache.
        machine: what instructions, caches and memory cost there, for the analytical cost model.
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

    @staticmethod
    def of(facts: Mapping[str, Any]) -> Target:
        """The inverse of ``dataclasses.asdict``."""
        return Target(**{**facts, "machine": MachineConstants.of(facts["machine"])})

    @property
    def reach(self) -> tuple[float, float, float]:
        """Bytes of each cache that a sweep can fill before it slows down."""
        m = self.machine
        return self.l1 * m.l1_share, self.l2 * m.l2_share, self.l3 * m.l3_share

    def lanes(self, dtype: str) -> int:
        """How many elements of ``dtype`` one vector register holds."""
        return max(1, self.vector_bytes // dtypes.size(dtype))

    @property
    def dots(self) -> tuple[BinaryOp, ...]:
        """The dot products of words that are instructions here, the best first."""
        features = set(self.features.split(","))
        return tuple(dict.fromkeys(op for feature, op in _DOTS if f"+{feature}" in features))

    @property
    def key(self) -> str:
        """A readable name under which records are kept: measurements of one target say nothing about another."""
        return f"{self.kind} {self.triple.split('-')[0]} {self.cpu} v{self.vector_bytes} t{self.threads}"


def _cache_bytes(level: int, default: int) -> int:
    for entry in sorted(_CACHES.glob("index*")):
        if (entry / "level").read_text().strip() == str(level) and (entry / "type").read_text().strip() != "Instruction":
            size = (entry / "size").read_text().strip()
            return int(size.rstrip("KM")) * {"K": 1 << 10, "M": 1 << 20}.get(size[-1], 1)
    return default


def _vectors(triple: str, features: dict[str, bool]) -> tuple[int, int]:
    """(bytes, count) of the vector registers."""
    if triple.startswith("x86_64"):
        if features.get("avx512f"):
            return 64, 32
        return (32, 16) if features.get("avx2") else (16, 16)
    return 16, 32


def host(threads: int | None = None) -> Target:
    """The machine this runs on.

    Args:
        threads: how many a kernel runs on; by default one for each core that this process may use.

    Raises:
        TargetError: ``threads`` is no integer, or less than 1.
    """
    if threads is not None and (not isinstance(threads, int) or threads < 1):
        raise TargetError(f"threads is {threads!r}; it must be an integer, 1 or more")
    triple = llvm.get_process_triple()
    features = llvm.get_host_cpu_features()
    vector_bytes, vector_registers = _vectors(triple, features)
    return Target(
        kind="llvm",
        triple=triple,
        cpu=llvm.get_host_cpu_name(),
        features=features.flatten(),
        vector_bytes=vector_bytes,
        vector_registers=vector_registers,
        threads=threads or len(os.sched_getaffinity(0)),
        l1=_cache_bytes(1, 32 << 10),
        l2=_cache_bytes(2, 1 << 20),
        l3=_cache_bytes(3, 8 << 20),
        machine=shipped(llvm.get_host_cpu_name(), vector_bytes),
    )


def resolve(target: str | Target) -> Target:
    """``"llvm"`` (this machine's CPU) or a :class:`Target` as it is.

    Raises:
        TargetError: another name.
    """
    if isinstance(target, Target):
        return target
    if target == "llvm":
        return host()
    raise TargetError(f"unknown target {target!r}; the targets are: llvm")
