"""``ansorlite target``"""

from __future__ import annotations

import importlib.util
from pathlib import Path

import click
import numpy as np
from rich.table import Table

from ansorlite import lazy
from ansorlite.cli import options
from ansorlite.errors import ArgumentError
from ansorlite.report.screen import say, screen
from ansorlite.target import NAMED, Target, resolve, to_file
from ansorlite.writing import replacing

#: Needs what is installed for boards.
_probe = lazy.module("ansorlite.measure.board.probe")


@click.command("target")
@options.target
@click.option("--probe", "address", metavar="ADDRESS", help="Ask a board what it is: ssh://USER@BOARD.")
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="A file for --target of other commands.")
@options.as_json
def command(target: str, address: str | None, output: Path | None, as_json: bool) -> None:
    """Say what is known of a target: this machine, one of a name, or a board, which is asked.

    \b
    ansorlite target
    ansorlite target --probe ssh://pi@board -o pi.json
    ansorlite tune model.onnx --target pi.json --measurer ssh://pi@board
    """
    facts: dict[str, object] = {}
    name, found = target, resolve(target)
    if address is not None:
        if importlib.util.find_spec("execnet") is None:
            raise ArgumentError(f"{address} needs execnet, which is not installed; pip install 'ansorlite[boards]'")
        board = _probe.probe(address)
        name, found = board.level, board.target
        facts = {"board": address, "processor": board.name, "python": board.python, "numpy": board.numpy or "none"}
    if output is not None:
        named = name if name in NAMED else found.cpu
        if named not in NAMED:
            raise ArgumentError(f"only a target with a name goes into a file, and {found.key} has none; give one with --target")
        with replacing(output) as new:
            new.write_text(to_file(named, found))
    facts |= {"target": name, **_facts(found)}
    if as_json:
        options.print_json({**facts, **({} if output is None else {"file": str(output)})})
        return
    table = Table(box=None, pad_edge=False, show_header=False)
    for key, value in facts.items():
        table.add_row(key, str(value))
    screen().print(table)
    if facts.get("numpy") not in (None, np.__version__):
        say(f"tuning there needs numpy {np.__version__} on the board, as it makes inputs itself", stderr=True)


def _facts(target: Target) -> dict[str, object]:
    numbers = {name: getattr(target, name) for name in ("vector_bytes", "vector_registers", "threads", "l1", "l2", "l3")}
    limits = {} if target.gpu is None else {"gpu": target.gpu.limits}
    return {"key": target.key, "triple": target.triple, "cpu": target.cpu, "features": target.features, **numbers, **limits}
