"""``ansorlite boards``"""

from __future__ import annotations

import importlib.util
import json
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import click
from rich.table import Table

from ansorlite import lazy
from ansorlite.cli import options
from ansorlite.errors import ArgumentError
from ansorlite.measure.board.tracker import Tracker
from ansorlite.report.screen import say, screen
from ansorlite.report.text import plural

#: Need what is installed for boards.
_link = lazy.module("ansorlite.measure.board.tracker_link")
_connection = lazy.module("ansorlite.measure.board.connection")

_PORT: Final = 9190


@click.command("boards")
@click.argument("tracker", required=False)
@click.option("--serve", "file", type=click.Path(dir_okay=False, path_type=Path), help="Lend the boards in a file. Until Ctrl-C.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Where to listen; 0.0.0.0: for the whole network.")
@click.option("--port", default=_PORT, show_default=True, type=click.IntRange(0, 65535), help="The same; 0: any that is free.")
@options.as_json
def command(tracker: str | None, file: Path | None, host: str, port: int, as_json: bool) -> None:
    """Say which boards TRACKER has, who has them since when, and which died; or be a tracker, which lends boards by name.

    A file of boards is a JSON object: names, and a list of addresses for each.

    \b
    echo '{"rpi4": ["ssh://pi@one", "ssh://pi@two"]}' > boards.json
    ansorlite boards --serve boards.json
    ansorlite tune model.onnx --target pi.json --measurer tracker://localhost:9190/rpi4
    ansorlite boards tracker://localhost:9190
    """
    if importlib.util.find_spec("execnet") is None:
        raise ArgumentError("boards need execnet, which is not installed; pip install 'ansorlite[boards]'")
    if (tracker is None) == (file is None):
        raise ArgumentError(f"give either a tracker, as tracker://localhost:{_PORT}, or --serve and a file of boards")
    if file is not None:
        _serve(file, host, port, as_json)
    else:
        _list(str(tracker), as_json)


def _serve(file: Path, host: str, port: int, as_json: bool) -> None:
    tracker = Tracker(_boards(file))
    try:
        server = _link.server_of(tracker, host, port)
    except OSError as error:
        raise ArgumentError(f"{host}:{port} cannot be listened at ({error.strerror or error}); give another --port") from error
    place, count = f"tracker://{host}:{server.server_address[1]}", len(tracker.entries())
    with server, suppress(KeyboardInterrupt):
        if as_json:
            options.print_json({"tracker": place, "boards": count})
        else:
            say(f"{plural(count, 'board')} at {place}")
        server.serve_forever()


def _list(tracker: str, as_json: bool) -> None:
    entries = _link.TrackerLink(tracker).entries()
    if as_json:
        options.print_json({"boards": [vars(entry) for entry in entries]})
        return
    table = Table(box=None, pad_edge=False, header_style="dim")
    for title in ("name", "board", "holder", "since", "died"):
        table.add_column(title)
    for entry in entries:
        died = f"{entry.died} ({_time(entry.died_at)})" if entry.died else ""
        since = _time(entry.since) if entry.holder else ""
        table.add_row(entry.name, entry.address, entry.holder or "free", since, died)
    screen().print(table)


def _time(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds):%d %b %H:%M:%S}"


def _boards(file: Path) -> dict[str, list[str]]:
    """
    Raises:
        ArgumentError: the file cannot be read, or says something else.
        TargetError: an address that is none.
    """
    try:
        said: Any = json.loads(file.read_text())
    except OSError as error:
        raise ArgumentError(f"{file} cannot be read ({error.strerror})") from error
    except (ValueError, RecursionError):
        said = None
    known = isinstance(said, dict) and all(
        isinstance(each, list) and all(isinstance(a, str) for a in each) for each in said.values()
    )
    if not known or not any(said.values()):
        raise ArgumentError(f'{file} names no boards; write a JSON object such as {{"rpi4": ["ssh://pi@one", "ssh://pi@two"]}}')
    addresses = [address for each in said.values() for address in each]
    for address in addresses:
        _connection.execnet_spec(address)
    if len(set(addresses)) < len(addresses):
        raise ArgumentError(f"{file} names a board twice; it can be lent once only")
    return dict(said)
