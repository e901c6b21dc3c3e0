"""The steps of a model on a GPU: launches and copies in a row; as graphs where they are made on the same memory again."""

from __future__ import annotations

import struct
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from itertools import pairwise
from threading import Lock
from typing import Any, Final, Protocol

from ansorlite.codegen.entry import Call, EntryStep
from ansorlite.runtime.builtin import Argument, DirectCalls
from ansorlite.runtime.device import LoadedKernel
from ansorlite.runtime.device_steps import run_step

#: Graphs that are kept of the same steps, of the memory used last.
_GRAPHS: Final = 8
#: Fewer steps are not worth a graph of their own.
_FEW: Final = 4
#: A block of memory that has been at more places than these moves: no graph is made of what touches it alone.
_PLACES: Final = 4

_WITHIN: Final = 3


class OnStreams(Protocol):
    """What is needed of a GPU."""

    @property
    def cupy(self) -> Any:
        """CuPy."""

    def current(self) -> AbstractContextManager[Any]:
        """For the time of a ``with`` the GPU is CuPy's current one; gives its current stream."""


class _Row:
    """Steps in a row.

    Attributes:
        steps: these.
        blocks: numbers of the blocks of memory that they touch.
        graphs: addresses of these blocks → the graph, ``None`` where they were seen once.
    """

    def __init__(self, steps: Sequence[EntryStep]) -> None:
        self.steps = tuple(steps)
        self.blocks = tuple(sorted(set().union(*map(_touched, steps))))
        self.graphs: OrderedDict[tuple[int, ...], Any] = OrderedDict()

    def key(self, addresses: Sequence[int]) -> tuple[int, ...]:
        """What a graph of them depends on."""
        return tuple(addresses[block] for block in self.blocks)


class CudaSteps:
    """A :class:`~ansorlite.runtime.device.LoadedSteps`.

    The first run on some blocks of memory launches step by step; the second one is captured as a graph, which is launched from
    then on: callers who pass the same arrays again pay for one launch. Of callers whose arrays move, the steps that touch these
    are launched one by one, and the rows of steps between them, which touch what stays, are graphs. Nothing is copied for that.
    """

    def __init__(self, steps: Sequence[EntryStep], kernels: Mapping[str, LoadedKernel], device: OnStreams) -> None:
        self._kernels = dict(kernels)
        self._device = device
        self._whole = _Row(steps)
        self._rows: tuple[_Row, ...] = ()
        #: Of each block where it has been, as far as that matters; and those that move.
        self._places: tuple[set[int], ...] = ()
        self._moved: frozenset[int] = frozenset()
        # A graph must not be launched by two threads at once.
        self._lock = Lock()

    def run(self, bases: bytes) -> None:
        """
        Args:
            bases: the packed addresses of the blocks.
        """
        addresses = struct.unpack(f"{len(bases) // 8}Q", bases)
        with self._lock, self._device.current() as stream:
            if stream.is_capturing():
                # The caller makes a graph: the steps are a part of it.
                self._launch(self._whole.steps, bases, stream)
            elif self._whole.key(addresses) in self._whole.graphs or not self._moving(addresses):
                self._run(self._whole, addresses, bases, stream)
            else:
                self._seen(self._whole, self._whole.key(addresses))
                for row in self._rows:
                    if self._moved.isdisjoint(row.blocks) and len(row.steps) >= _FEW:
                        self._run(row, addresses, bases, stream)
                    else:
                        self._launch(row.steps, bases, stream)

    def profile(self, bases: bytes) -> list[int]:
        """Run them, each between two events; the nanoseconds of each."""
        cp = self._device.cupy
        with self._device.current() as stream:
            events = [cp.cuda.Event() for _ in range(len(self._whole.steps) + 1)]
            events[0].record(stream)
            for step, event in zip(self._whole.steps, events[1:], strict=True):
                self._launch((step,), bases, stream)
                event.record(stream)
            events[-1].synchronize()
            pairs = pairwise(events)
            return [round(1e6 * float(cp.cuda.get_elapsed_time(start, end))) for start, end in pairs]

    def direct(self, fixed: Sequence[int], arguments: Sequence[Argument]) -> DirectCalls | None:
        """There is no shortcut."""
        del fixed, arguments
        return None

    def _moving(self, addresses: tuple[int, ...]) -> bool:
        """Whether some blocks move; the steps are cut by those. That is learnt from one run to the next."""
        self._places = self._places or tuple(set() for _ in addresses)
        for places, address in zip(self._places, addresses, strict=True):
            if len(places) <= _PLACES:
                places.add(address)
        moved = frozenset(block for block, places in enumerate(self._places) if len(places) > _PLACES)
        if moved != self._moved:
            self._moved, self._rows = moved, tuple(map(_Row, _cut(self._whole.steps, moved)))
        return bool(moved)

    def _run(self, row: _Row, addresses: tuple[int, ...], bases: bytes, stream: Any) -> None:
        key = row.key(addresses)
        if not self._seen(row, key):
            self._launch(row.steps, bases, stream)
            return
        if row.graphs[key] is None:
            row.graphs[key] = self._captured(row, bases)
        row.graphs[key].launch(stream)

    @staticmethod
    def _seen(row: _Row, key: tuple[int, ...]) -> bool:
        """Whether it has run on that memory before; now it has."""
        known = key in row.graphs
        row.graphs.setdefault(key, None)
        row.graphs.move_to_end(key)
        while len(row.graphs) > _GRAPHS:
            row.graphs.popitem(last=False)
        return known

    def _captured(self, row: _Row, bases: bytes) -> Any:
        own = self._device.cupy.cuda.Stream(non_blocking=True)
        with own:
            own.begin_capture()
            self._launch(row.steps, bases, own)
            return own.end_capture()

    def _launch(self, steps: Sequence[EntryStep], bases: bytes, stream: Any) -> None:
        def move(target: int, source: int, nbytes: int) -> None:
            self._device.cupy.cuda.runtime.memcpyAsync(target, source, nbytes, _WITHIN, stream.ptr)

        for step in steps:
            run_step(step, bases, self._kernels, move)


def _touched(step: EntryStep) -> frozenset[int]:
    """Numbers of the blocks that a step reads or writes."""
    places = step.arguments if isinstance(step, Call) else (step.source, step.target)
    return frozenset(place.base for place in places)


def _cut(steps: Sequence[EntryStep], moved: frozenset[int]) -> list[list[EntryStep]]:
    """Rows of steps that touch nothing of ``moved``, and such that do."""
    rows: list[list[EntryStep]] = []
    before: bool | None = None
    for step in steps:
        stays = moved.isdisjoint(_touched(step))
        if stays != before:
            rows.append([])
            before = stays
        rows[-1].append(step)
    return rows
