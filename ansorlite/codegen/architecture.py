"""What LLVM's generic instructions do not say, or say badly, on each architecture that code is made for: a row of a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ansorlite.errors import TargetError
from ansorlite.target import Target


@dataclass(frozen=True)
class Architecture:
    """An architecture.

    Attributes:
        pause: the intrinsic that tells the core that a loop only watches memory; its parameter's type, and the argument. None for
            those that have no team of threads (``team.py``).
        half: whether every processor converts between float16 and float32; else those with the feature ``f16c`` do.
        saturates: whether vectors of floats become integers with what does not fit replaced by the nearest, in one instruction.
        permutes: whether every processor picks any elements of two vectors in one instruction; else those with the feature
            ``avx512vl`` do.
        streamed: bytes of a store that goes past the caches; 0 where there is none.
        fence: the intrinsic that puts such stores in order with others.
        library: whether the C library's functions of numbers are at hand.
        branches: whether a load under a condition of one thread is behind a branch; else some other readable element is loaded.
        ahead: how many bytes before they are read sums in registers ask for their operands; 0 where asking does not pay.
            Half as much and four times as much were no better.
        overwrites: whether a multiply-add may overwrite a factor as well as the sum (:mod:`ansorlite.codegen.factors`).
        shifts_by_words: whether amounts of shifts are words of 32 bits. LLVM 22 forgets the upper half of a wider one that it
            takes to be limited by the instruction.
    """

    pause: tuple[str, str, str] | None
    half: bool
    saturates: bool
    permutes: bool
    streamed: int = 0
    fence: str = ""
    library: bool = True
    branches: bool = False
    ahead: int = 1024
    overwrites: bool = False
    shifts_by_words: bool = False


#: By the first word of LLVM's triple.
ARCHITECTURES: Final[Mapping[str, Architecture]] = {
    "x86_64": Architecture(
        pause=("llvm.x86.sse2.pause", "", ""),
        half=False,
        saturates=False,
        permutes=False,
        streamed=16,
        fence="llvm.x86.sse.sfence",
        overwrites=True,
    ),
    "aarch64": Architecture(pause=("llvm.aarch64.hint", "i32", "i32 1"), half=True, saturates=True, permutes=True),
    "nvptx64": Architecture(
        pause=None,
        half=True,
        saturates=True,
        permutes=False,
        library=False,
        branches=True,
        ahead=0,
        shifts_by_words=True,
    ),
}


def architecture_of(target: Target) -> Architecture:
    """Raises:
    TargetError: no code is made for it.
    """
    if target.architecture not in ARCHITECTURES:
        raise TargetError(f"no code is made for {target.architecture}; the architectures are: {', '.join(ARCHITECTURES)}")
    return ARCHITECTURES[target.architecture]
