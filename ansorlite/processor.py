"""Whether this processor can run code that was compiled for some processor: the one place that is asked."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Final

_FACTS: Final = Path("/proc/cpuinfo")

#: LLVM's name of an instruction set → Linux's, where code that uses it is generated without being asked for.
_SETS: Final = {
    "cx16": "cx16",
    "popcnt": "popcnt",
    "sse3": "pni",
    "ssse3": "ssse3",
    "sse4.1": "sse4_1",
    "sse4.2": "sse4_2",
    "avx": "avx",
    "avx2": "avx2",
    "bmi": "bmi1",
    "bmi2": "bmi2",
    "f16c": "f16c",
    "fma": "fma",
    "fma4": "fma4",
    "lzcnt": "abm",
    "movbe": "movbe",
    "xop": "xop",
    "gfni": "gfni",
    "avx512f": "avx512f",
    "avx512bw": "avx512bw",
    "avx512cd": "avx512cd",
    "avx512dq": "avx512dq",
    "avx512vl": "avx512vl",
    "avx512bf16": "avx512_bf16",
    "avx512bitalg": "avx512_bitalg",
    "avx512fp16": "avx512_fp16",
    "avx512ifma": "avx512ifma",
    "avx512vbmi": "avx512vbmi",
    "avx512vbmi2": "avx512_vbmi2",
    "avx512vnni": "avx512_vnni",
    "avx512vpopcntdq": "avx512_vpopcntdq",
    "avxifma": "avx_ifma",
    "avxneconvert": "avx_ne_convert",
    "avxvnni": "avx_vnni",
    "avxvnniint8": "avx_vnni_int8",
    "avxvnniint16": "avx_vnni_int16",
    "amx-tile": "amx_tile",
    "neon": "asimd",
    "lse": "atomics",
    "rdm": "asimdrdm",
    "dotprod": "asimddp",
    "fullfp16": "asimdhp",
    "fp16fml": "asimdfhm",
    "i8mm": "i8mm",
    "bf16": "bf16",
    "sha3": "sha3",
    "sve": "sve",
    "sve2": "sve2",
}


#: As the first word of LLVM's triples.
ARCHITECTURE: Final = platform.machine()


def missing(needed: Iterable[str], facts: Path = _FACTS) -> tuple[str, ...]:
    """What code for this architecture needs and this processor lacks; nothing: it can run.

    Args:
        needed: instruction sets, in LLVM's words. Those that Linux says nothing of are believed to be there.
        facts: where Linux describes the processor.
    """
    listed = _listed(facts)
    return () if listed is None else tuple(name for name in needed if name in _SETS and _SETS[name] not in listed)


@cache
def _listed(facts: Path) -> frozenset[str] | None:
    """The instruction sets that Linux names; ``None`` where it does not."""
    try:
        lines = facts.read_text().splitlines()
    except OSError:
        return None
    return next((frozenset(line.partition(":")[2].split()) for line in lines if line.startswith(("flags", "Features"))), None)


def name(facts: Path = _FACTS) -> str:
    """What the processor calls itself; its architecture, where Linux does not tell."""
    try:
        lines = facts.read_text(errors="replace").splitlines()
    except OSError:
        return ARCHITECTURE
    found = (line.partition(":")[2].strip() for line in lines if line.startswith(("model name", "CPU part")))
    return next(found, "") or ARCHITECTURE
