"""Loops compiled and timed: the least time of many short attempts, as nothing but other work on the machine slows one."""

from __future__ import annotations

import ctypes
import math
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, TypeAlias

import llvmlite.binding as llvm
import numpy as np

from ansorlite.calibration.loop import HEAD, Loop
from ansorlite.codegen.builder import Module
from ansorlite.codegen.machine import machine, optimise
from ansorlite.runtime.linker import Linked
from ansorlite.runtime.peaks import aligned
from ansorlite.runtime.timing import turns_for
from ansorlite.target import Target

#: Seconds of one attempt, and how many there are of each loop, at least.
_SECONDS: Final = 0.0005
_ATTEMPTS: Final = 40
#: Seconds that all attempts take, at least: a core shares its units with another guest's thread for a second at a time.
_LONG: Final = 0.8
#: Sweeps that are made whatever time they take.
_LEAST_SWEEPS: Final = 3
_NONE: Final[Mapping[str, str]] = {}

Storage: TypeAlias = np.ndarray[Any, np.dtype[np.uint8]]


def storage(nbytes: int) -> Storage:
    """Memory that loops run on, touched: so many bytes of zeros behind the head, which their operands are read from."""
    data = aligned(HEAD + nbytes)
    data[:] = 0
    data[:HEAD].view(np.float32)[:] = 1.0
    return data


class Stopwatch:
    """Loops of one module, and the memory that they run on.

    Args:
        target: the machine; it must be the one that this runs on.
        bodies: by name: what writes one turn, and returns how many of the things measured a turn has.
        data: what they run on, as :func:`storage` makes it.
        definitions: other functions of the module, by name.
    """

    def __init__(
        self, target: Target, bodies: Mapping[str, Callable[[Loop], int]], data: Storage, definitions: Mapping[str, str] = _NONE
    ) -> None:
        module = Module(target)
        for name, text in definitions.items():
            module.define(name, text)
        self._amounts: dict[str, int] = {}
        for name, body in bodies.items():
            loop = Loop(module, name)
            self._amounts[name] = body(loop)
            loop.define()
        library = llvm.JITLibraryBuilder().add_object_img(machine(target).emit_object(optimise(module.text(), target)))
        library.add_current_process()
        for name in bodies:
            library.export_symbol(name)
        self._linked = Linked(library, target)
        kind = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_void_p)
        self._functions = {name: kind(self._linked[name]) for name in bodies}
        self.data = data

    def seconds(self, share: float = 0.0) -> dict[str, float]:
        """Of one of the things that each loop is about, by the loop's name.

        Args:
            share: of the attempts that may take less than what counts, which is the least of all by default.

        The loops take turns: so each of them, the one that tells the clock among them, is tried at moments all over the
        time that this takes, and what else is going on slows none of them throughout.
        """
        turns = {name: turns_for(partial(self.once, name), _SECONDS) for name in self._functions}
        taken: dict[str, list[float]] = {name: [] for name in turns}
        attempts, end = 0, time.perf_counter() + _LONG
        while attempts < _ATTEMPTS or time.perf_counter() < end:
            attempts += 1
            for name, count in turns.items():
                # Caches, and helpers that have slept since, are warmed up first.
                self.once(name, count)
                taken[name].append(self.once(name, count))
        return {name: float(np.quantile(taken[name], share)) / (turns[name] * self._amounts[name]) for name in turns}

    def sweeps(self, amount: int, attempts: int) -> dict[str, float]:
        """Of one of the things that each loop is about, by the loop's name, where it does so many of them, the least of some
        attempts in turns: of what takes too long for :meth:`seconds`, or would find in a cache what it has just read. Where
        a cache is so large that they would take long, fewer are made.
        """
        turns = {name: max(amount // each, 1) for name, each in self._amounts.items()}
        taken, end = dict.fromkeys(turns, math.inf), time.perf_counter() + _LONG
        for attempt in range(attempts):
            if attempt >= _LEAST_SWEEPS and time.perf_counter() > end:
                break
            taken = {name: min(least, self.once(name, turns[name])) for name, least in taken.items()}
        return {name: least / (turns[name] * self._amounts[name]) for name, least in taken.items()}

    def once(self, name: str, turns: int) -> float:
        """Seconds of so many turns, timed once."""
        function, address = self._functions[name], self.data.ctypes.data
        start = time.perf_counter()
        function(turns, address)
        return time.perf_counter() - start
