"""The steps of a model on a GPU: launches and copies in a row; as one graph once they are made on the same memory again."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from itertools import pairwise
from typing import Any, Final, Protocol

from ansorlite.codegen.entry import EntryStep
from ansorlite.runtime.builtin import Argument, Direct
from ansorlite.runtime.device import LoadedKernel
from ansorlite.runtime.device_steps import run_step

#: Graphs that are kept, of the bindings used last.
_GRAPHS: Final = 8

_WITHIN: Final = 3


class OnStreams(Protocol):
    """What is needed of a GPU."""

    @property
    def cupy(self) -> Any:
        """CuPy."""

    def current(self) -> AbstractContextManager[Any]:
        """For the time of a ``with`` the GPU is CuPy's current one; gives its current stream."""


class CudaSteps:
    """A :class:`~ansorlite.runtime.device.LoadedSteps`.

    The first run on some blocks of memory launches step by step; the second one is captured as a graph, which is launched from
    then on: callers who pass the same arrays again pay for one launch.
    """

    def __init__(self, steps: Sequence[EntryStep], kernels: Mapping[str, LoadedKernel], device: OnStreams) -> None:
        self._steps = tuple(steps)
        self._kernels = dict(kernels)
        self._device = device
        self._graphs: OrderedDict[bytes, Any] = OrderedDict()

    def run(self, bases: bytes) -> None:
        """
        Args:
            bases: the packed addresses of the blocks.
        """
        with self._device.current() as stream:
            if bases not in self._graphs:
                self._graphs[bases] = None
                self._all(bases, stream)
            else:
                if self._graphs[bases] is None:
                    self._graphs[bases] = self._captured(bases)
                self._graphs[bases].launch(stream)
            self._graphs.move_to_end(bases)
            while len(self._graphs) > _GRAPHS:
                self._graphs.popitem(last=False)

    def profile(self, bases: bytes) -> list[int]:
        """Run them, each between two events; the nanoseconds of each."""
        cp = self._device.cupy
        with self._device.current() as stream:
            events = [cp.cuda.Event() for _ in range(len(self._steps) + 1)]
            events[0].record(stream)
            for step, event in zip(self._steps, events[1:], strict=True):
                self._step(step, bases, stream)
                event.record(stream)
            events[-1].synchronize()
            pairs = pairwise(events)
            return [round(1e6 * float(cp.cuda.get_elapsed_time(start, end))) for start, end in pairs]

    def direct(self, fixed: Sequence[int], arguments: Sequence[Argument]) -> Direct | None:
        """There is no shortcut."""
        del fixed, arguments
        return None

    def _captured(self, bases: bytes) -> Any:
        own = self._device.cupy.cuda.Stream(non_blocking=True)
        with own:
            own.begin_capture()
            self._all(bases, own)
            return own.end_capture()

    def _all(self, bases: bytes, stream: Any) -> None:
        for step in self._steps:
            self._step(step, bases, stream)

    def _step(self, step: EntryStep, bases: bytes, stream: Any) -> None:
        def move(target: int, source: int, nbytes: int) -> None:
            self._device.cupy.cuda.runtime.memcpyAsync(target, source, nbytes, _WITHIN, stream.ptr)

        run_step(step, bases, self._kernels, move)
