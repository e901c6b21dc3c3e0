"""The way to a tracker: JSON over HTTP. Nothing of it is executed, and addresses are checked before anybody is called."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict
from http.client import HTTPConnection, HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

from ansorlite.errors import TargetError, TuningError
from ansorlite.measure.board.connection import execnet_spec
from ansorlite.measure.board.tracker import Entry, Lease, Tracker

#: Bytes of a question or an answer, at most, and characters of a word in it.
_LARGEST: Final = 1 << 20
_LONGEST: Final = 400
#: Seconds for an answer.
_ANSWER: Final = 10.0

_PLACE: Final = re.compile(r"tracker://(?P<host>[A-Za-z0-9_.-]+)(:(?P<port>\d{1,5}))?(/(?P<name>[\w.-]+)(\*(?P<most>\d{1,4}))?)?")
PORT: Final = 9190
_HERE: Final = ("127.0.0.1", "localhost")


def server_of(tracker: Tracker, host: str, port: int) -> ThreadingHTTPServer:
    """Answers for ``tracker``; ``serve_forever`` begins it. Port 0: any that is free.

    Raises:
        OSError: the port is taken, or the host is not this machine.
    """

    class Handler(BaseHTTPRequestHandler):
        timeout = _ANSWER

        def do_POST(self) -> None:
            try:
                length = int(self.headers.get("Content-Length", ""))
                if not 0 <= length <= _LARGEST:
                    raise ValueError
                answer, status = _answer(tracker, json.loads(self.rfile.read(length))), 200
            except (ValueError, TypeError, KeyError, RecursionError) as error:
                answer, status = {"error": f"that is no question to a tracker ({type(error).__name__})"}, 400
            body = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: object) -> None:
            """Nothing: what matters is in the list of boards."""

    return ThreadingHTTPServer((host, port), Handler)


def _answer(tracker: Tracker, question: Any) -> dict[str, Any]:
    """
    Raises:
        ValueError, TypeError, KeyError: it is none.
    """
    match question["do"]:
        case "list":
            return {"boards": [asdict(entry) for entry in tracker.entries()]}
        case "take":
            taken = tracker.take(_word(question["name"]), _count(question["most"]), _word(question["holder"]))
            return {"leases": [asdict(lease) for lease in taken]}
        case "renew":
            kept = tracker.renew([_lease(each) for each in question["leases"]], _word(question["holder"]))
            return {"leases": [asdict(lease) for lease in kept]}
        case "give back":
            tracker.give_back(_lease(question["lease"]), _word(question["died"]))
            return {}
    raise ValueError


class TrackerLink:
    """A tracker, from afar."""

    def __init__(self, address: str, holder: str = "") -> None:
        """
        Args:
            address: ``tracker://host:9190/name*2``; the name, and how many boards of it, where some are to be taken.
            holder: who asks, for people.

        Raises:
            TargetError: the address is none.
        """
        found = _PLACE.fullmatch(address)
        if found is None:
            raise TargetError(f"{address!r} is no tracker; give tracker://host:{PORT}/name, or name*2 for two boards")
        self.address = address
        self.name = found["name"] or ""
        self.most = int(found["most"] or 1)
        self._place = found["host"], int(found["port"] or PORT)
        self._holder = holder[:_LONGEST]

    def entries(self) -> list[Entry]:
        """Raises:
        TuningError: the tracker does not answer as it should.
        """
        found: list[Entry] = self._checked(lambda said: [_entry(each) for each in said["boards"]], {"do": "list"})
        return found

    def take(self, most: int) -> list[Lease]:
        """Up to so many boards of the name.

        Raises:
            TuningError: the tracker does not answer as it should, or names what is no board.
        """
        said = {"do": "take", "name": self.name, "most": most, "holder": self._holder}
        leases: list[Lease] = self._checked(lambda answer: [_lease(each) for each in answer["leases"]], said)
        for lease in leases:
            try:
                execnet_spec(lease.address)
            except TargetError as error:
                raise TuningError(f"the tracker {self.address} names what is no board: {error}") from error
            if lease.address.startswith("popen") and self._place[0] not in _HERE:
                raise TuningError(f"the tracker {self.address} is elsewhere, and must not name programs of this machine")
        return leases

    def renew(self, leases: Sequence[Lease]) -> list[Lease]:
        """Those that are still this holder's.

        Raises:
            TuningError: the tracker does not answer as it should.
        """
        said = {"do": "renew", "leases": [asdict(lease) for lease in leases], "holder": self._holder}
        kept: list[Lease] = self._checked(lambda answer: [_lease(each) for each in answer["leases"]], said)
        return [lease for lease in leases if lease in kept]

    def give_back(self, lease: Lease, died: str = "") -> None:
        """Raises:
        TuningError: the tracker does not answer as it should.
        """
        self._checked(lambda _: None, {"do": "give back", "lease": asdict(lease), "died": died[:_LONGEST]})

    def _checked(self, read: Any, question: dict[str, Any]) -> Any:
        connection = HTTPConnection(*self._place, timeout=_ANSWER)
        try:
            connection.request("POST", "/", json.dumps(question).encode(), {"Content-Type": "application/json"})
            response = connection.getresponse()
            answer = json.loads(response.read(_LARGEST))
            if response.status != 200:
                raise ValueError(str(answer["error"])[:_LONGEST])
            return read(answer)
        except OSError as error:
            raise TuningError(f"the tracker {self.address} cannot be reached: {error}") from error
        except (HTTPException, ValueError, TypeError, KeyError, RecursionError) as error:
            raise TuningError(f"the tracker {self.address} does not answer as it should: {str(error)[:_LONGEST]}") from error
        finally:
            connection.close()


def _entry(said: Any) -> Entry:
    since, died_at = (float(said[name]) for name in ("since", "died_at"))
    return Entry(_word(said["name"]), _word(said["address"]), _word(said["holder"]), since, _word(said["died"]), died_at)


def _lease(said: Any) -> Lease:
    return Lease(_word(said["address"]), _word(said["token"]))


def _word(said: object) -> str:
    if not isinstance(said, str) or len(said) > _LONGEST:
        raise TypeError("a word is due")
    return said


def _count(said: object) -> int:
    if not isinstance(said, int) or not 0 < said < 10_000:
        raise ValueError
    return said
