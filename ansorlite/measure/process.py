"""One worker process, seen from the tuner."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from ansorlite.measure.forking import ForkServer, last_words
from ansorlite.measure.protocol import Message, decode, encode

#: Seconds that a worker which closed its output is given to be really gone, so that it is known what ended it.
_LAST_SECONDS = 5.0


class WorkerProcess:
    """A process that runs ``ansorlite.measure.worker``, in a session of its own, forked by a server.

    Its own session keeps a Ctrl-C in the terminal from it: the tuner alone decides. It ends when its input closes.

    Attributes:
        tasks: keys of the tasks it was sent.
        jobs: how many it was given.
        ready: whether it said that it is.
        ended: whether it closed its output: it is dead, or dying.
    """

    def __init__(self, server: ForkServer, folder: Path, environment: Mapping[str, str]) -> None:
        self.tasks: set[str] = set()
        self.jobs = 0
        self.ready = False
        self.ended = False
        self._server = server
        self._partial = b""
        self._words = ""
        self._code = 0
        self._stderr: IO[bytes] = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 (closed by kill)
        stdin, self._stdin = os.pipe()
        self._stdout, stdout = os.pipe()
        self._number = server.fork(folder, environment, (stdin, stdout, self._stderr.fileno()))
        os.close(stdin)
        os.close(stdout)
        os.set_blocking(self._stdout, False)

    @property
    def output(self) -> int:
        """The file descriptor that becomes readable when the worker says something, or dies."""
        return self._stdout

    @property
    def alive(self) -> bool:
        """Its end of its output closes as it dies; how it ended becomes known a moment later."""
        poll = select.poll()
        poll.register(self._stdout, 0)
        return not poll.poll(0)

    def send(self, message: Message) -> None:
        """Tell the worker something. That it died is found out when it is listened to."""
        content = encode(message)
        with contextlib.suppress(BrokenPipeError):
            while content:
                content = content[os.write(self._stdin, content) :]

    def receive(self) -> list[Message]:
        """What the worker has said by now; does not wait."""
        with contextlib.suppress(BlockingIOError):
            while chunk := os.read(self.output, 1 << 16):
                self._partial += chunk
            self.ended = True
            self._server.wait(self._number, _LAST_SECONDS)
        *lines, self._partial = self._partial.split(b"\n")
        return [decode(line) for line in lines]

    def kill(self) -> None:
        """End the worker and whatever it started, now. Killing twice does nothing."""
        if self._stderr.closed:
            return
        self._code = self._server.kill(self._number)
        self._words = last_words(self._stderr) or self._server.words()
        self._stderr.close()
        os.close(self._stdout)
        os.close(self._stdin)

    @property
    def cause(self) -> str:
        """How a killed worker ended, for people."""
        if self._code >= 0:
            return f"it exited with status {self._code}"
        return f"it was ended by {signal.Signals(-self._code).name} ({signal.strsignal(-self._code)})"

    @property
    def words(self) -> str:
        """The last that a killed worker wrote to standard error, or its server, if it wrote nothing."""
        return self._words
