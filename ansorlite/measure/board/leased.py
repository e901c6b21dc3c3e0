"""Boards that a tracker lends."""

from __future__ import annotations

import contextlib
import getpass
import os
import socket
import threading
import time
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from ansorlite import visible
from ansorlite.errors import AnsorliteError, TuningError
from ansorlite.measure.board.bundle import BOOTSTRAP
from ansorlite.measure.board.runner import BoardRunner
from ansorlite.measure.board.tracker import LEASE_SECONDS, Lease
from ansorlite.measure.board.tracker_link import TrackerLink
from ansorlite.measure.local import LocalBuilder
from ansorlite.measure.roles import Artifact, LostError, Ran, Rival, Workers
from ansorlite.measure.settings import MeasureSettings
from ansorlite.target import Target
from ansorlite.task import Task

_log = visible.logger(__name__)

#: Seconds between two looks for a free board.
_LOOK: Final = 1.0


class Lender:
    """What this tuner has of a tracker's boards. It says from time to time that it is still there."""

    def __init__(self, link: TrackerLink) -> None:
        self._link = link
        self._lock = threading.Lock()
        self._leases: set[Lease] = set()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._renew, name="ansorlite-leases", daemon=True)
        self._thread.start()

    def take(self, most: int, seconds: float) -> list[Lease]:
        """Boards of the link's name, at least one; waits so long for it.

        Raises:
            TuningError: there is none of that name, or none is free.
        """
        until, told = time.monotonic() + seconds, False
        while not (leases := self._link.take(most)):
            known = [entry for entry in self._link.entries() if entry.name == self._link.name]
            if not known:
                raise TuningError(f"{self._link.address}: the tracker has no board of that name")
            said = "; ".join(
                f"{entry.address} is {entry.holder}'s since {datetime.fromtimestamp(entry.since):%d %b %H:%M}"
                if entry.holder
                else f"{entry.address} died: {entry.died}"
                for entry in known
            )
            if time.monotonic() >= until:
                raise TuningError(f"no board of {self._link.address} came free within {seconds:.0f} s: {said}")
            if not told:
                _log.warning("no board of %s is free (%s); waiting %.0f s for one", self._link.address, said, seconds)
                told = True
            time.sleep(min(_LOOK, seconds))
        with self._lock:
            self._leases.update(leases)
        return leases

    def has(self, lease: Lease) -> bool:
        """Whether the board is still this tuner's, as far as is known."""
        with self._lock:
            return lease in self._leases

    def give_back(self, lease: Lease, died: str = "") -> None:
        with self._lock:
            if lease not in self._leases:
                return
            self._leases.discard(lease)
        with contextlib.suppress(TuningError):  # it finds out by itself
            self._link.give_back(lease, died)

    def close(self) -> None:
        """Give all back."""
        self._ended.set()
        self._thread.join()
        for lease in list(self._leases):
            self.give_back(lease)

    def _renew(self) -> None:
        while not self._ended.wait(LEASE_SECONDS / 3):
            with self._lock:
                leases = list(self._leases)
            try:
                kept = self._link.renew(leases) if leases else []
            except TuningError as error:
                _log.warning("%s; the boards are used nevertheless", error)
                continue
            with self._lock:
                self._leases.difference_update(set(leases) - set(kept))


class LeasedRunner:
    """A :class:`~ansorlite.measure.roles.Runner`: a board that was lent. If it dies the tracker is told, and lends another."""

    def __init__(
        self, lender: Lender, lease: Lease, target: Target, settings: MeasureSettings, builder: LocalBuilder, bootstrap: str
    ) -> None:
        """
        Raises:
            TuningError: the board cannot be reached; the tracker has been told.
        """
        self._lender = lender
        self._settings = settings

        def opened(lease: Lease) -> BoardRunner:
            return BoardRunner(lease.address, target, settings, builder.reference, bootstrap)

        self._open = opened
        self._use(lease)

    def _use(self, lease: Lease) -> None:
        self._lease = lease
        try:
            self._board = self._open(lease)
        except AnsorliteError as error:
            self._lender.give_back(lease, str(error))
            raise

    @property
    def machine(self) -> str:
        return self._board.machine

    def close(self) -> None:
        self._board.close()
        self._lender.give_back(self._lease)

    def revive(self) -> bool:
        """Another board of the name, or the same if that works again."""
        try:
            (lease,) = self._lender.take(1, 0.0)
            self._use(lease)
        except AnsorliteError:
            return False
        return True

    def prepare(self, task: Task) -> None:
        self._board.prepare(task)

    def run(self, task: Task, artifacts: Sequence[Artifact], rival: Rival | None) -> list[Ran]:
        if not self._lender.has(self._lease):
            self._board.close()
            raise LostError("its lease ended, and somebody else may use it")
        try:
            return self._board.run(task, artifacts, rival)
        except LostError as error:
            self._board.close()
            self._lender.give_back(self._lease, str(error))
            raise


class _Builder(LocalBuilder):
    """Gives the boards back, too."""

    def __init__(self, target: Target, settings: MeasureSettings, lender: Lender) -> None:
        super().__init__(target, settings)
        self._lender = lender

    def close(self) -> None:
        super().close()
        self._lender.close()


def open_workers(address: str, target: Target, settings: MeasureSettings, bootstrap: str = BOOTSTRAP) -> Workers:
    """Builders here, and boards that a tracker lends.

    Args:
        address: ``tracker://host:9190/name``, or ``name*3`` for up to three boards of that name.

    Raises:
        TargetError: the address is none.
        TuningError: the tracker cannot be reached; it has no such board, or none came free in time, or none can be reached.
    """
    lender = Lender(TrackerLink(address, f"{getpass.getuser()}@{socket.gethostname()} ({os.getpid()})"))
    builder = _Builder(target, settings, lender)
    runners: list[LeasedRunner] = []
    try:
        most, reason = TrackerLink(address).most, None
        for lease in lender.take(most, settings.wait_seconds):
            try:
                runners.append(LeasedRunner(lender, lease, target, settings, builder, bootstrap))
            except TuningError as error:
                _log.warning("%s", error)
                reason = error
        if reason is not None and not runners:
            raise reason
        return Workers(builder, runners)
    except BaseException:
        for runner in runners:
            runner.close()
        builder.close()
        raise
