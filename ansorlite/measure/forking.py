"""The fork server, seen from the tuner."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import IO, Final

from ansorlite.measure.protocol import FORK_MESSAGE, Purpose
from ansorlite.measure.settings import NATIVE, WORKER_ENVIRONMENT

#: What workers import before their first job, where they build and run real programs.
MODULES: Final[dict[Purpose, str]] = {
    Purpose.BUILD: "ansorlite.measure.native.compiling",
    Purpose.RUN: "ansorlite.measure.native.loading",
}
#: Bytes of what a dead process wrote to standard error that are kept.
_WORDS: Final = 4000


def last_words(stderr: IO[bytes]) -> str:
    """The last that a process wrote to the file that was its standard error."""
    stderr.seek(max(0, stderr.seek(0, os.SEEK_END) - _WORDS))
    return stderr.read().decode(errors="replace").strip()


class ForkServer:
    """Starts workers, and knows how they ended. Pools may share one; threads may, too.

    Its process begins when the first joins, and anew where it was killed; it ends when the last has left.
    """

    def __init__(self, purposes: Collection[Purpose], backend: str = NATIVE) -> None:
        """
        Args:
            purposes: of the workers that are to start at once; others can be started, and import what they need then.
            backend: of the workers.
        """
        self._modules = [MODULES[purpose] for purpose in purposes] if backend == NATIVE else []
        self._lock = threading.Lock()
        self._users = 0
        self._number = 0
        self._codes: dict[int, int] = {}  # of workers that have ended, until they are asked for
        self._living: set[int] = set()
        self._process: subprocess.Popen[bytes] | None = None
        self._stderr: IO[bytes] | None = None

    def join(self) -> None:
        """Use it from now on."""
        with self._lock:
            if not self._users:
                self._start()
            self._users += 1

    def leave(self) -> None:
        """Use it no more, as often as it was joined."""
        with self._lock:
            self._users -= 1
            if not self._users:
                self._lost()
                self._close_stderr()

    def fork(self, folder: Path, environment: Mapping[str, str], files: Sequence[int]) -> int:
        """Start a worker.

        Args:
            folder: its argument.
            environment: variables of its own.
            files: what becomes its standard input, output and error.

        Returns:
            its number.
        """
        message = {"folder": str(folder), "environment": dict(environment)}
        with self._lock:
            if self._process is None:
                self._start()
            self._number += 1
            self._living.add(self._number)
            self._say({"fork": self._number, **message}, files)
            return self._number

    def wait(self, number: int, seconds: float) -> None:
        """Until a worker has ended, but for so many seconds at most."""
        with self._lock:
            self._hear(number, seconds)

    def kill(self, number: int) -> int:
        """End a worker and whatever it started, and wait for it; its exit status, which is forgotten."""
        with self._lock:
            if number in self._living:
                self._say({"kill": number})
                self._hear(number, None)
            return self._codes.pop(number)

    def words(self) -> str:
        """What a server wrote to standard error before it died, if one did: that of workers which never began."""
        with self._lock:
            return "" if self._stderr is None else last_words(self._stderr)

    # All with the lock ---------------------------------------------------------------------------------------------

    def _start(self) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._close_stderr()
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 (read when the server has died)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "ansorlite.measure.fork_server", str(theirs.fileno()), *self._modules],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self._stderr,
                env={**os.environ, **WORKER_ENVIRONMENT, "PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)},
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )

    def _say(self, message: Mapping[str, object], files: Sequence[int] = ()) -> None:
        self._socket.settimeout(None)
        try:
            socket.send_fds(self._socket, [json.dumps(message).encode()], list(files))
        except OSError:
            self._lost()

    def _hear(self, number: int, seconds: float | None) -> None:
        """Take note of workers that have ended until this one has, for so many seconds; ``None``: as long as it takes."""
        while number in self._living:
            self._socket.settimeout(seconds)
            try:
                content = self._socket.recv(FORK_MESSAGE)
            except TimeoutError:
                return
            except OSError:
                content = b""
            if not content:
                return self._lost()
            message = json.loads(content)
            self._ended(message["ended"], message["code"])
        return None

    def _ended(self, number: int, code: int) -> None:
        self._living.discard(number)
        self._codes[number] = code

    def _lost(self) -> None:
        """The server cannot be spoken to: whatever it does it is ended, and its workers with it."""
        if self._process is None:
            return
        self._process.kill()
        code = self._process.wait()
        for number in list(self._living):
            self._ended(number, code)
        self._socket.close()
        self._process = None

    def _close_stderr(self) -> None:
        if self._stderr is not None:
            self._stderr.close()
            self._stderr = None
