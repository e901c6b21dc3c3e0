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

#: Those of one architecture, which LLVM knows only if it makes code for it.
_OWN: Final[Mapping[str, Mapping[str, tuple[str, str]]]] = {
    "x86_64": {
        # The power of two at whose multiples innermost loops begin: a cache line. A core reads instructions by lines, and where
        # two threads share it each has its turn every other cycle: a line more makes a short loop slower.
        "x86-experimental-pref-innermost-loop-alignment": ("6", "4"),
    }
}


@contextmanager
def options_for_emitted_code(architecture: str) -> Iterator[None]:
    """Have LLVM leave out what takes long and gains nothing where straight-line code is long and addresses are cheap, and place
    loops well.

    Options hold for the whole process, so they are set back. (llvmlite lets one thread at a time into LLVM.)

    Args:
        architecture: that code is made for, by the first word of LLVM's triple.
    """
    options = {**_OPTIONS, **_OWN.get(architecture, {})}
    _set({option: ours for option, (ours, _) in options.items()})
    try:
        yield
    finally:
        _set({option: default for option, (_, default) in options.items()})


def _set(values: Mapping[str, str]) -> None:
    for option, value in values.items():
        llvm.set_option("ansorlite", f"-{option}={value}")
