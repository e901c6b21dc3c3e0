"""Who has which board: many boards by name, each lent to one tuner at a time.

A lease ends when its holder gives the board back, says that it died, or is not heard of for a while. The tracker hands out
addresses; tuners reach the boards themselves.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

#: Seconds after which a holder that was not heard of has lost its boards; holders say that they are there three times as often.
LEASE_SECONDS: Final = 30.0
#: A board that died is offered again after so many seconds: somebody may have started it anew.
DIED_SECONDS: Final = 60.0


@dataclass(frozen=True)
class Entry:
    """A board, and what is known of it. Times are Unix times.

    Attributes:
        name: of its kind.
        address: where tuners reach it.
        holder: who has it, in the holder's words; empty: nobody.
        since: when it was lent.
        died: why it was given up last, if it has not worked since; empty: it has.
        died_at: when that was.
    """

    name: str
    address: str
    holder: str = ""
    since: float = 0.0
    died: str = ""
    died_at: float = 0.0


@dataclass(frozen=True)
class Lease:
    """A board that was lent, and the word by which its holder is known."""

    address: str
    token: str


@dataclass
class _Held:
    token: str
    until: float


class Tracker:
    """Keeps the entries. Any number of threads may ask."""

    def __init__(self, boards: Mapping[str, Sequence[str]], now: Callable[[], float] = time.time) -> None:
        """
        Args:
            boards: addresses by name.
        """
        self._now = now
        self._lock = threading.Lock()
        self._entries = {address: Entry(name, address) for name, addresses in boards.items() for address in addresses}
        self._held: dict[str, _Held] = {}

    def entries(self) -> list[Entry]:
        """All boards, as they were given."""
        with self._lock:
            self._expire()
            return list(self._entries.values())

    def take(self, name: str, most: int, holder: str) -> list[Lease]:
        """Lend up to so many boards of a name, those first that have not died."""
        with self._lock:
            self._expire()
            now = self._now()
            free = [entry for entry in self._entries.values() if entry.name == name and not entry.holder]
            free = sorted((e for e in free if not e.died or now - e.died_at >= DIED_SECONDS), key=lambda e: e.died_at)
            return [self._lend(entry.address, secrets.token_hex(16), holder) for entry in free[:most]]

    def renew(self, leases: Sequence[Lease], holder: str) -> list[Lease]:
        """Those of ``leases`` that are still the holder's, for another while. After a start the tracker knows of none: what is
        not lent to somebody else, is."""
        with self._lock:
            self._expire()
            kept = []
            for lease in leases:
                held, entry = self._held.get(lease.address), self._entries.get(lease.address)
                if entry is None or (held is not None and not secrets.compare_digest(held.token, lease.token)):
                    continue
                if held is None:
                    self._lend(lease.address, lease.token, holder)
                else:
                    held.until = self._now() + LEASE_SECONDS
                kept.append(lease)
            return kept

    def give_back(self, lease: Lease, died: str = "") -> None:
        """End a lease.

        Args:
            died: why the board is given up, if it is.
        """
        with self._lock:
            held = self._held.get(lease.address)
            if held is None or not secrets.compare_digest(held.token, lease.token):
                return
            self._free(lease.address)
            entry = self._entries[lease.address]
            self._entries[lease.address] = replace(entry, died=died, died_at=self._now() if died else 0.0)

    def _lend(self, address: str, token: str, holder: str) -> Lease:
        self._held[address] = _Held(token, self._now() + LEASE_SECONDS)
        self._entries[address] = replace(self._entries[address], holder=holder, since=self._now())
        return Lease(address, token)

    def _free(self, address: str) -> None:
        del self._held[address]
        self._entries[address] = replace(self._entries[address], holder="", since=0.0)

    def _expire(self) -> None:
        for address in [address for address, held in self._held.items() if held.until < self._now()]:
            self._free(address)
