"""Machines that tests are about, as facts written down: what is derived for them is the same wherever the tests run."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from ansorlite.target import Target

#: Two cores with vectors of 64 bytes.
WIDE: Final = Target(
    kind="llvm",
    triple="x86_64-unknown-linux-gnu",
    cpu="x86-64-v4",
    features="",
    vector_bytes=64,
    vector_registers=32,
    threads=2,
    l1=32 << 10,
    l2=1 << 20,
    l3=32 << 20,
)
#: Many cores with vectors of 16 bytes.
NARROW: Final = replace(WIDE, cpu="x86-64", vector_bytes=16, vector_registers=16, threads=16)
