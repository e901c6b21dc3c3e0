"""Boards that this machine stands in for."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from ansorlite.measure.board.agent import Symbols
from tests import emulated

#: A board whose machine code is run by qemu, and whose Python is this machine's.
QEMU_BOARD = """
channel.receive()
from ansorlite.measure.board.agent import serve
from tests.unit.measure.boards import EmulatedLoader
serve(channel, EmulatedLoader())
"""

#: A board that answers as ``lie`` says.
LIAR = """
channel.receive()
from ansorlite.measure.board import agent
from tests.unit.measure.boards import Liar
agent.Agent(Liar(channel, {lie!r}), agent.NativeLoader()).serve()
"""


class EmulatedLoader:
    """Runs machine code in the process that qemu runs."""

    def __init__(self) -> None:
        self._machine = emulated.started(16)

    def everywhere(self, code: bytes) -> None:
        """The machine has a thread team already."""

    def load(self, code: bytes, symbols: Symbols, arrays: Sequence[np.ndarray]) -> Callable[[int], None]:
        there = self._machine
        handle = there.load_library(code)
        prepare = [there.symbol(handle, symbols.prepare)] if symbols.prepare else []
        entry = there.symbol(handle, symbols.entry)

        def call(count: int) -> None:
            copies = [array.copy() for array in arrays]
            there.run([*prepare, *[entry] * count], copies, symbols.blocks)
            for array, copy in zip(arrays, copies, strict=True):
                if array.flags.writeable:
                    array[...] = copy

        return call


class Liar:
    """A channel that changes what the board says once it has run a program."""

    def __init__(self, channel: object, lie: str) -> None:
        self._channel = channel
        self._lie = lie
        self._job = ""

    def receive(self) -> object:
        message = self._channel.receive()  # type: ignore[attr-defined]
        self._job = "" if message is None else message["do"]
        return message

    def send(self, item: object) -> None:
        assert isinstance(item, dict)
        if item["event"] == "done" and self._job == "first" and self._lie == "outputs":
            for said in item["outputs"]:
                said.update({name: bytes(len(said[name])) for name in said if name != "digest"})
        elif item["event"] == "done" and self._job == "first" and self._lie == "no outputs":
            item["outputs"] = [{"whole": b"short"}]
        elif item["event"] == "done" and self._job == "time" and self._lie in LATENCIES:
            item["latency"] = LATENCIES[self._lie]
        elif item["event"] == "done" and self._job == "time" and self._lie == "rubbish":
            item = ["rubbish", {"event": 3}]  # type: ignore[assignment]
        elif item["event"] == "done" and self._job == "first" and self._lie == "hangs":
            time.sleep(1000)
        elif item["event"] == "done" and self._job == "first" and self._lie == "noise":
            self._channel.gateway._io.write(b"\xff\x00 no message of execnet" * 10)  # type: ignore[attr-defined]
        elif item["event"] == "done" and self._job == "first" and self._lie == "dies":
            os._exit(3)
        self._channel.send(item)  # type: ignore[attr-defined]


LATENCIES = {"negative": -1.0, "no number": float("nan"), "text": "0.001", "forever": 1e9, "zero": 0.0}


def bare_python(folder: Path) -> Path:
    """A Python in which numpy is all that there is."""
    (folder / "sitecustomize.py").write_text(
        "import sys\n\n\n"
        "class Nothing:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] in ('ansorlite', 'llvmlite', 'ml_dtypes', 'psutil', 'onnx', 'scipy'):\n"
        "            raise ModuleNotFoundError(f'a board has no {name}')\n\n\n"
        "sys.meta_path.insert(0, Nothing())\n"
    )
    script = folder / "python3"
    script.write_text(f'#!/bin/sh\nPYTHONPATH={folder} exec {sys.executable} "$@"\n')
    script.chmod(0o755)
    return script


def fake_ssh(folder: Path) -> None:
    """An ``ssh`` that runs the command here, and notes for whom."""
    script = folder / "ssh"
    script.write_text(f'#!/bin/sh\necho "$@" >> {folder}/log\nfor last; do :; done\nexec sh -c "$last"\n')
    script.chmod(0o755)
