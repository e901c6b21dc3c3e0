"""One worker process, seen from the tuner."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from ansorlite.measure.protocol import Message, decode, encode

#: Bytes of a dead worker's standard error that are kept.
_WORDS = 4000

#: Seconds that a worker which closed its output is given to be really gone, so that it is known what ended it.
_LAST_SECONDS = 5.0


class WorkerProcess:
    """A fresh Python process that runs ``ansorlite.measure.worker``, in a session of its own.

    Its own session keeps a Ctrl-C in the terminal from it: the tuner alone decides. It ends when its input closes.

    Attributes:
        tasks: keys of the tasks it was sent.
        jobs: how many it was given.
        ready: whether it said that it is.
        ended: whether it closed its output: it is dead, or dying.
    """

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self.tasks: set[str] = set()
        self.jobs = 0
        self.ready = False
        self.ended = False
        self._partial = b""
        self._words = ""
        self._stderr: IO[bytes] = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 (closed by kill)
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "ansorlite.measure.worker", str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            env={**os.environ, **environment, "PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)},
            start_new_session=True,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._stdin = self._process.stdin
        self._stdout = self._process.stdout
        os.set_blocking(self._stdout.fileno(), False)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def output(self) -> int:
        """The file descriptor that becomes readable when the worker says something, or dies."""
        return self._stdout.fileno()

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def send(self, message: Message) -> None:
        """Tell the worker something. That it died is found out when it is listened to."""
        with contextlib.suppress(BrokenPipeError):
            self._stdin.write(encode(message))
            self._stdin.flush()

    def receive(self) -> list[Message]:
        """What the worker has said by now; does not wait."""
        with contextlib.suppress(BlockingIOError):
            while chunk := os.read(self.output, 1 << 16):
                self._partial += chunk
            self.ended = True
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_LAST_SECONDS)
        *lines, self._partial = self._partial.split(b"\n")
        return [decode(line) for line in lines]

    def kill(self) -> None:
        """End the worker and whatever it started, now. Killing twice does nothing."""
        if self._stderr.closed:
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        self._process.wait()
        self._stderr.seek(max(0, self._stderr.seek(0, os.SEEK_END) - _WORDS))
        self._words = self._stderr.read().decode(errors="replace").strip()
        self._stderr.close()
        self._stdout.close()
        with contextlib.suppress(BrokenPipeError):
            self._stdin.close()

    @property
    def cause(self) -> str:
        """How a killed worker ended, for people."""
        code = self._process.returncode
        if code >= 0:
            return f"it exited with status {code}"
        return f"it was ended by {signal.Signals(-code).name} ({signal.strsignal(-code)})"

    @property
    def words(self) -> str:
        """The last that a killed worker wrote to standard error."""
        return self._words
