"""An option of LLVM's that is set for a while."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import llvmlite.binding as llvm


@contextmanager
def without_strength_reduction() -> Iterator[None]:
    """Keep LLVM from reducing strength in loops, up to half of its time: what is emitted has cheap addresses already.

    The option holds for the whole process, so it is set back. (llvmlite lets one thread at a time into LLVM.)
    """
    llvm.set_option("ansorlite", "-disable-lsr=true")
    try:
        yield
    finally:
        llvm.set_option("ansorlite", "-disable-lsr=false")
