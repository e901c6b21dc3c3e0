"""The board's side: loads programs, runs them on inputs that it makes itself, shows what they gave, and times them.

It is sent to the board as source, with what it imports of ansorlite, and talks through an execnet channel: dicts of numbers, text
and bytes, both ways. The board needs Python and numpy. A program that takes too long ends this process by an alarm, wherever it
is; the tuner starts another.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import resource
import signal
import struct
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from ansorlite.measure import turns
from ansorlite.measure.board.evidence import Question, shown
from ansorlite.measure.filling import Fill, fill
from ansorlite.measure.settings import MeasureSettings
from ansorlite.measure.timing import TIMINGS
from ansorlite.runtime.pages import guarded_bytes, make_read_only
from ansorlite.runtime.timing import preemptions

Array = np.ndarray[Any, Any]

#: How arrays are stored whose dtype numpy lacks.
_STORED = {"bfloat16": "uint16"}


class Channel(Protocol):
    """So much of execnet's."""

    def send(self, item: object) -> None: ...

    def receive(self) -> Any: ...


@dataclass(frozen=True)
class Symbols:
    """The functions of a program.

    Attributes:
        entry, repeat, prepare: their names; ``prepare`` is empty where nothing is to be prepared.
        blocks: bytes of its workspace, and of the block of what is prepared.
    """

    entry: str
    repeat: str
    prepare: str
    blocks: tuple[int, int]


class Loader(Protocol):
    """Makes machine code callable."""

    def everywhere(self, code: bytes) -> None:
        """Load a shared library whose functions others call."""

    def load(self, code: bytes, symbols: Symbols, arrays: Sequence[Array]) -> Callable[[int], None]:
        """A program in a shared library, prepared, on these arrays: what calls it so many times in a row."""


class NativeLoader:
    """Loads into this very process."""

    def __init__(self) -> None:
        self._kept = [ctypes.CDLL("libm.so.6", mode=ctypes.RTLD_GLOBAL)]

    def everywhere(self, code: bytes) -> None:
        self._kept.append(_opened(code, ctypes.RTLD_GLOBAL))

    def load(self, code: bytes, symbols: Symbols, arrays: Sequence[Array]) -> Callable[[int], None]:
        library = _Library(_opened(code, ctypes.RTLD_LOCAL))
        blocks = [guarded_bytes(max(64, -(-nbytes // 64) * 64)) for nbytes in symbols.blocks]
        addresses = [array.ctypes.data for array in (*arrays, *blocks)]
        packed = struct.pack(f"{len(addresses)}P", *addresses)
        if symbols.prepare:
            library.function(symbols.prepare, ctypes.c_char_p)(packed)
        repeat = library.function(symbols.repeat, ctypes.c_char_p, ctypes.c_int64)

        def call(count: int, _alive: object = (library, blocks, arrays)) -> None:
            repeat(packed, count)

        return call


class _Library:
    """A shared library that is unloaded when nobody needs it any more."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library

    def function(self, name: str, *arguments: Any) -> Any:
        found = self._library[name]
        found.restype, found.argtypes = None, list(arguments)
        return found

    def __del__(self) -> None:
        close = ctypes.CDLL(None).dlclose
        close.argtypes = [ctypes.c_void_p]
        close(self._library._handle)


def _opened(code: bytes, mode: int) -> ctypes.CDLL:
    with tempfile.TemporaryDirectory(prefix="ansorlite-") as folder:
        file = Path(folder, "program.so")
        file.write_bytes(code)
        return ctypes.CDLL(str(file), mode=mode | os.RTLD_NOW)


@dataclass
class _Place:
    """The arrays of a task."""

    inputs: list[Array]
    outputs: list[Array]
    dtypes: list[str]

    def poison(self) -> None:
        for output in self.outputs:
            output.reshape(-1).view(np.uint8)[...] = 0xA5
            if output.dtype.kind == "f":
                output[...] = np.nan

    @property
    def arrays(self) -> list[Array]:
        return [*self.inputs, *self.outputs]


class _Program:
    """A program on its arrays, and the clock."""

    def __init__(self, call: Callable[[int], None]) -> None:
        self._call = call

    def seconds(self, calls: int) -> float:
        start = time.perf_counter()
        self._call(calls)
        return time.perf_counter() - start

    def disturbances(self) -> int:
        return preemptions()


class Agent:
    """Answers the jobs that come in, one after another."""

    def __init__(self, channel: Channel, loader: Loader) -> None:
        self._channel = channel
        self._loader = loader
        self._settings = MeasureSettings()
        self._place: tuple[str, _Place] | None = None
        self._programs: dict[int, _Program] = {}

    def serve(self) -> None:
        """Answer jobs until ``None`` comes."""
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        while (message := self._channel.receive()) is not None:
            try:
                answer = getattr(self, f"do_{message['do']}")(message)
            except MemoryError as error:
                answer = {"status": "memory", "error": f"the board has no memory left: {error}"}
            except Exception as error:  # whatever a program does is data
                answer = {"status": "error", "error": f"{type(error).__name__}: {error}\n{traceback.format_exc()}"}
            signal.setitimer(signal.ITIMER_REAL, 0)
            self._channel.send({"event": "done", "job": message["job"], "status": "ok", **answer})

    def do_start(self, message: dict[str, Any]) -> dict[str, Any]:
        """Take up settings, and load what programs call."""
        self._settings = MeasureSettings(**message["settings"])
        for code in message["libraries"]:
            self._loader.everywhere(code)
        return {}

    def do_task(self, message: dict[str, Any]) -> dict[str, Any]:
        """Make a task's inputs; of the one before nothing is kept."""
        self._programs.clear()
        rng = np.random.default_rng(message["seed"])
        inputs, hashed = [], hashlib.sha256()
        for shape, dtype, low, high in message["inputs"]:
            array = _array(shape, dtype)
            fill(array, Fill(tuple(shape), dtype, low, high), rng, message["positive"])
            hashed.update(array.tobytes())
            make_read_only(array)
            inputs.append(array)
        outputs = [_array(shape, dtype) for shape, dtype in message["outputs"]]
        self._place = message["key"], _Place(inputs, outputs, [dtype for _, dtype in message["outputs"]])
        return {"inputs": hashed.hexdigest()}

    def do_load(self, message: dict[str, Any]) -> dict[str, Any]:
        """Load a program."""
        place, number = self._place_of(message["key"]), message["program"]
        symbols = Symbols(message["entry"], message["repeat"], message["prepare"], tuple(message["blocks"]))
        self._programs.pop(number, None)
        self._programs[number] = _Program(self._loader.load(message["code"], symbols, place.arrays))
        kept = message["keep"] if message["keep"] in self._programs else next(iter([*self._programs][-2:-1]), number)
        self._programs = {other: program for other, program in self._programs.items() if other in (kept, number)}
        return {}

    def do_first(self, message: dict[str, Any]) -> dict[str, Any]:
        """Call a program once, and show what it gave."""
        place, program = self._place_of(message["key"]), self._programs[message["program"]]
        place.poison()
        self._enter("running", message["running"])
        first = program.seconds(1)
        self._enter("checking", message["checking"])
        question = Question(**message["question"])
        pairs = zip(place.outputs, place.dtypes, strict=True)
        return {"first": first, "outputs": [shown(question, output, dtype) for output, dtype in pairs]}

    def do_time(self, message: dict[str, Any]) -> dict[str, Any]:
        """Time a program that was right, in turns with its rival where it comes near that."""
        settings, first, best = self._settings, message["first"], message["best"]
        program = self._programs[message["program"]]
        self._enter("checking", message["checking"])
        slow = turns.slower(program, first, best, settings)
        if slow is not None:
            return {"slow": slow}
        rival = self._programs.get(message["rival"])
        timing = TIMINGS[settings.timing]
        return {"latency": timing(program, first, None if rival is None else lambda: rival, best, settings)}

    def _place_of(self, key: str) -> _Place:
        assert self._place is not None
        assert self._place[0] == key
        return self._place[1]

    def _enter(self, phase: str, seconds: float) -> None:
        """Let the system end this process if it is still in the phase after so many seconds."""
        self._channel.send({"event": phase})
        signal.setitimer(signal.ITIMER_REAL, seconds)


def _array(shape: Sequence[int], dtype: str) -> Array:
    kind = np.dtype(_STORED.get(dtype, dtype))
    return guarded_bytes(int(np.prod(shape, dtype=np.int64)) * kind.itemsize).view(kind).reshape(tuple(shape))


def serve(channel: Channel, loader: Loader | None = None) -> None:
    """Answer on ``channel`` until the tuner says goodbye."""
    Agent(channel, loader or NativeLoader()).serve()
