"""Whether this processor can run code that was compiled for some processor: the one place that is asked."""

from __future__ import annotations

import ctypes
import platform
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Final

_FACTS: Final = Path("/proc/cpuinfo")
_CACHES: Final = Path("/sys/devices/system/cpu/cpu0/cache")

#: Linux's: a question to prctl, and the part of its answer that is a length.
_PR_SVE_GET_VL: Final = 51
_LENGTH: Final = 0xFFFF

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
    "amx-bf16": "amx_bf16",
    "amx-int8": "amx_int8",
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
    return () if listed is None else lacking(needed, listed)


def lacking(needed: Iterable[str], sets: frozenset[str]) -> tuple[str, ...]:
    """Which of ``needed``, in LLVM's words, are not among ``sets``, in Linux's."""
    return tuple(name for name in needed if name in _SETS and _SETS[name] not in sets)


def sets() -> frozenset[str]:
    """The instruction sets that Linux names; none where it does not."""
    return _listed(_FACTS) or frozenset()


def cache_bytes(level: int, default: int) -> int:
    """Of data, of a core: what Linux says; ``default`` where it says nothing, as in many virtual machines and containers."""
    for entry in sorted(_CACHES.glob("index*")):
        try:
            found, kind, size = ((entry / name).read_text().strip() for name in ("level", "type", "size"))
            if found == str(level) and kind != "Instruction":
                return int(size.rstrip("KM")) * {"K": 1 << 10, "M": 1 << 20}.get(size[-1], 1)
        except (OSError, ValueError, IndexError):
            continue
    return default


def sve_bytes() -> int | None:
    """Length of SVE's registers, as this thread has them and those that it starts; ``None``: there are none.

    Linux can set it to less than the processor has.
    """
    if ARCHITECTURE != "aarch64":
        return None
    answer = int(ctypes.CDLL(None).prctl(_PR_SVE_GET_VL, 0, 0, 0, 0))
    return None if answer < 0 else answer & _LENGTH


def other_vectors(wanted: int | None) -> str | None:
    """Why code for SVE's registers of so many bytes is wrong here, as the end of a sentence; ``None``: it is not.

    Such code would not fail, it would leave elements out.
    """
    found = sve_bytes()
    if wanted is None or found == wanted:
        return None
    return f"SVE's registers have {found or 'no'} bytes here, not {wanted}"


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
