"""One process on a board, seen from the tuner. Nothing that comes from it is believed to be what it should."""

from __future__ import annotations

import contextlib
import itertools
import math
import re
import time
from collections.abc import Mapping
from typing import Any, Final

import execnet

from ansorlite.errors import TargetError
from ansorlite.measure.board.bundle import BOOTSTRAP, sources
from ansorlite.measure.protocol import Phase

#: Seconds beyond a limit that the board itself keeps, after which the connection is given up.
GRACE = 10.0
#: Seconds to connect.
_CONNECT: Final = 30.0
#: Seconds that a process on a board is given to end by itself.
_GOODBYE: Final = 0.5

_ADDRESS: Final = re.compile(r"(?P<user>[\w.][\w.-]*@)?(?P<host>[A-Za-z0-9_.][\w.-]*|\[[0-9A-Fa-f:.]+\])(:(?P<port>\d{1,5}))?")
_PYTHON: Final = re.compile(r"[\w./+-]+")


class DiedError(Exception):
    """The process on the board is gone.

    Attributes:
        phase: what it was doing.
        timed_out: whether that had taken longer than it may.
        elapsed: seconds in that phase.
    """

    def __init__(self, phase: Phase, timed_out: bool, elapsed: float, reason: str) -> None:
        super().__init__(reason)
        self.phase = phase
        self.timed_out = timed_out
        self.elapsed = elapsed


class RubbishError(Exception):
    """The board sent what it should not."""


def execnet_spec(address: str) -> str:
    """What execnet takes for ``ssh://user@host:port/python3`` or ``popen://python3``.

    Raises:
        TargetError: the address is neither.
    """
    scheme, _, rest = address.partition("://")
    if scheme == "popen" and (not rest or _PYTHON.fullmatch(rest)):
        return f"popen//python={rest}" if rest else "popen"
    place, _, python = rest.partition("/")
    found = _ADDRESS.fullmatch(place)
    if scheme != "ssh" or found is None or not (python == "" or _PYTHON.fullmatch(python)):
        raise TargetError(f"{address!r} is no board; give ssh://user@host, ssh://user@host:port/python3, or popen://python3")
    user, port = found["user"] or "", f"-p {found['port']} " if found["port"] else ""
    # Nobody is there to be asked for a password.
    options = f"-o BatchMode=yes -o ConnectTimeout={_CONNECT:.0f} {port}"
    return f"ssh={options}{user}{found['host']}//python={python or 'python3'}"


class Connection:
    """A process on a board, and a channel to it."""

    def __init__(self, spec: str, bootstrap: str = BOOTSTRAP) -> None:
        """Start the process.

        Args:
            spec: execnet's.
            bootstrap: what it executes first.

        Raises:
            OSError: it does not start.
        """
        self._jobs = itertools.count()
        self._group = execnet.Group()
        try:
            self._gateway = self._group.makegateway(spec)
            self._channel = self._gateway.remote_exec(bootstrap)
            self._channel.send(sources())
        except Exception as error:  # execnet has no base of its own for what goes wrong
            self.close()
            raise OSError(_first_line(error)) from error

    def close(self) -> None:
        """End the process, whatever it does. Closing twice does nothing."""
        with contextlib.suppress(Exception):
            self._group.terminate(timeout=_GOODBYE)

    def ask(self, do: str, fields: Mapping[str, object], limits: Mapping[Phase, float]) -> dict[str, Any]:
        """Have the board do a job.

        Args:
            limits: seconds of each phase that the job may reach; it begins as ``WORKING``.

        Returns:
            Its answer: ``status``, a word; ``error``, text; and whatever else the board has put in.

        Raises:
            DiedError: the process is gone, or was given up.
            RubbishError: what came is no answer.
        """
        job, phase, since = next(self._jobs), Phase.WORKING, time.monotonic()
        try:
            self._channel.send({"do": do, "job": job, **fields})
            while True:
                message = self._channel.receive(timeout=limits[phase] + GRACE)
                event = message.get("event") if isinstance(message, dict) else None
                if event == "done" and message.get("job") == job and isinstance(message.get("status"), str):
                    return dict(message)
                if event not in (Phase.RUNNING.value, Phase.CHECKING.value):
                    raise RubbishError(f"the board sent {repr(message)[:200]} where an answer was due")
                phase, since = Phase(event), time.monotonic()
        except (RubbishError, KeyError) as error:
            raise RubbishError(str(error)) from error
        except Exception as error:  # execnet has no base of its own for what goes wrong
            elapsed = time.monotonic() - since
            raise DiedError(phase, elapsed >= limits[phase], elapsed, _first_line(error)) from error


def said_by(spec: str, program: str, given: object) -> object:
    """What a program that is sent to a board says, once.

    Args:
        spec: execnet's.
        given: what it receives first.

    Raises:
        OSError: the board cannot be reached, or says nothing in time.
    """
    group = execnet.Group()
    try:
        channel = group.makegateway(spec).remote_exec(program)
        channel.send(given)
        return channel.receive(timeout=_CONNECT)
    except Exception as error:  # execnet has no base of its own for what goes wrong
        raise OSError(_first_line(error)) from error
    finally:
        with contextlib.suppress(Exception):
            group.terminate(timeout=_GOODBYE)


def number(answer: Mapping[str, Any], name: str, most: float) -> float:
    """A number of seconds in an answer, of a program that ran.

    Args:
        most: seconds that it cannot be more than, by the tuner's own clock.

    Raises:
        RubbishError: it is none.
    """
    value = answer.get(name)
    if not isinstance(value, float) or not 0 < value < math.inf or value > most:
        raise RubbishError(f"the board says that {name} is {repr(value)[:80]} seconds, {most:.3g} after it was asked")
    return value


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).strip().splitlines()), "") or type(error).__name__
