"""Options of LLVM's that are set for a while."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

import llvmlite.binding as llvm

#: By option: what it is for code that the emitter wrote, and what LLVM has by default.
_OPTIONS: Final[Mapping[str, tuple[str, str]]] = {
    # Strength reduction in loops takes up to half of LLVM's time: what is emitted has cheap addresses already.
    "disable-lsr": ("true", "false"),
    # The schedulers look for what depends on what among all accesses to memory of straight-line code, two by two, until they are
    # so many; then a part of them stays in front of the rest as a whole.
    "dag-maps-huge-region": ("100", "1000"),
}


@contextmanager
def options_for_emitted_code() -> Iterator[None]:
    """Keep LLVM from what takes long and gains nothing where straight-line code is long and addresses are cheap.

    Options hold for the whole process, so they are set back. (llvmlite lets one thread at a time into LLVM.)
    """
    _set({option: ours for option, (ours, _) in _OPTIONS.items()})
    try:
        yield
    finally:
        _set({option: default for option, (_, default) in _OPTIONS.items()})


def _set(values: Mapping[str, str]) -> None:
    for option, value in values.items():
        llvm.set_option("ansorlite", f"-{option}={value}")
