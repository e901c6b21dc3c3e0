"""Whether this processor can run what was compiled for another."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ansorlite.errors import TargetError

_FACTS: Final = Path("/proc/cpuinfo")

#: LLVM's name of an instruction set → Linux's, where code that uses it is likely to be generated.
_SETS: Final = {
    "avx": "avx",
    "avx2": "avx2",
    "fma": "fma",
    "f16c": "f16c",
    "bmi2": "bmi2",
    "avx512f": "avx512f",
    "avx512bw": "avx512bw",
    "avx512dq": "avx512dq",
    "avx512vl": "avx512vl",
    "avx512vnni": "avx512_vnni",
    "avx512bf16": "avx512_bf16",
    "avx512fp16": "avx512_fp16",
    "avxvnni": "avx_vnni",
    "amx-tile": "amx_tile",
    "dotprod": "asimddp",
    "fullfp16": "asimdhp",
    "i8mm": "i8mm",
    "bf16": "bf16",
    "sve": "sve",
}


def check_features(needed: Sequence[str], facts: Path = _FACTS) -> None:
    """Compare what the code needs with what Linux says of the processor; where it says nothing, nothing is known to be missing.

    Raises:
        TargetError: an instruction set is missing.
    """
    try:
        lines = facts.read_text().splitlines()
    except OSError:
        return
    listed = next((line.partition(":")[2].split() for line in lines if line.startswith(("flags", "Features"))), None)
    if listed is None:
        return
    missing = [name for name in needed if name in _SETS and _SETS[name] not in listed]
    if missing:
        raise TargetError(
            f"the model was compiled for a processor with {', '.join(missing)}, which this one lacks; export it here"
        )
