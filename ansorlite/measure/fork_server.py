"""A process that has imported what workers need, and forks them: starting one takes milliseconds then, whenever it is needed.

``python -m ansorlite.measure.fork_server SOCKET MODULE...`` listens to the tuner on a socket (``forking.py`` is the other end).
It has one thread and does nothing else, so forking it is safe; threads begin in its workers. It ends when the tuner does, as soon
as its workers have, and they end when it is killed.

=============  ===========================================================================================================
tuner says     ``fork``: a new worker's number, with its ``folder`` and ``environment``, and as ancillary data the files that
               become its standard input, output and error; ``kill``: the number of one to be killed, with all it started
server says    ``ended``: a worker's number, and its ``code``, as ``subprocess`` has it
=============  ===========================================================================================================
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import os
import select
import selectors
import signal
import socket
import sys
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Final, NoReturn

from ansorlite.measure import worker
from ansorlite.measure.protocol import FORK_MESSAGE

#: Standard input, output and error.
_STREAMS: Final = 3
#: Seconds that workers are given to end by themselves, as their tuner has.
_LAST_SECONDS: Final = 5.0
#: Of ``prctl``: which signal a process gets when its parent dies.
_PARENT_DEATH_SIGNAL: Final = 1


class _Server:
    def __init__(self, tuner: socket.socket) -> None:
        self._tuner = tuner
        self._numbers: dict[int, int] = {}  # of workers, by process id
        self._woken, self._wakes = os.pipe()
        os.set_blocking(self._wakes, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._wakes, warn_on_full_buffer=False)

    def serve(self) -> NoReturn:
        with selectors.DefaultSelector() as selector:
            selector.register(self._tuner, selectors.EVENT_READ, self._listen)
            selector.register(self._woken, selectors.EVENT_READ, self._reap)
            while True:
                for key, _ in selector.select():
                    key.data()

    def _listen(self) -> None:
        content, files, _, _ = socket.recv_fds(self._tuner, FORK_MESSAGE, _STREAMS)
        if not content:
            self._leave()
        message = json.loads(content)
        if "fork" in message:
            self._fork(message["fork"], message["folder"], message["environment"], files)
        else:
            self._kill(message["kill"])

    def _fork(self, number: int, folder: str, environment: Mapping[str, str], files: Sequence[int]) -> None:
        process = os.fork()
        if not process:
            self._become_worker(folder, environment, files)
        self._numbers[process] = number
        for file in files:
            os.close(file)

    def _become_worker(self, folder: str, environment: Mapping[str, str], files: Sequence[int]) -> NoReturn:
        try:
            os.setsid()
            ctypes.CDLL(None).prctl(_PARENT_DEATH_SIGNAL, signal.SIGKILL)
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for stream, file in enumerate(files):
                os.dup2(file, stream)
            for file in (*files, self._woken, self._wakes, self._tuner.detach()):
                os.close(file)
            os.environ.update(environment)
            worker.main(folder)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)  # never back into the server's loop

    def _kill(self, number: int) -> None:
        """Nothing happens to one that has ended: its process id may be another's by now."""
        for process, other in self._numbers.items():
            if other == number:
                with contextlib.suppress(ProcessLookupError):  # it has no session of its own yet
                    os.killpg(process, signal.SIGKILL)
                os.kill(process, signal.SIGKILL)

    def _reap(self) -> None:
        os.read(self._woken, FORK_MESSAGE)
        for number, code in self._ended():
            with contextlib.suppress(BrokenPipeError):
                self._tuner.send(json.dumps({"ended": number, "code": code}).encode())

    def _ended(self) -> Iterator[tuple[int, int]]:
        """The number and the exit status of each worker that has ended by now."""
        while self._numbers:
            process, status = os.waitpid(-1, os.WNOHANG)
            if not process:
                return
            yield self._numbers.pop(process), os.waitstatus_to_exitcode(status)

    def _leave(self) -> NoReturn:
        """The tuner has ended: workers are removing its files."""
        until = time.monotonic() + _LAST_SECONDS
        while self._numbers and time.monotonic() < until:
            if select.select([self._woken], [], [], max(until - time.monotonic(), 0.0))[0]:
                os.read(self._woken, FORK_MESSAGE)
            for _ in self._ended():
                pass
        os._exit(0)


def main() -> None:
    """Serve until the tuner is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the tuner decides what an interrupt means
    for name in sys.argv[2:]:
        import_module(name)
    gc.freeze()  # what is shared is not to be copied for being counted
    _Server(socket.socket(fileno=int(sys.argv[1]))).serve()


if __name__ == "__main__":
    main()
