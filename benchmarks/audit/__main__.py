"""Every operator, with random attributes and inputs, beside onnxruntime: ``docs/onnx-audit.md``.

    python -m benchmarks.audit [--number N] [--match REGEX] [--seed S] [--refused] [--write]

Ends with 1 if anything is wrong.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from pathlib import Path
from typing import Final

import click

from benchmarks.audit.page import page
from benchmarks.audit.run import audit
from benchmarks.audit.seeds import seeds
from benchmarks.audit.verdict import Outcome

PAGE: Final = Path(__file__).parents[2] / "docs" / "onnx-audit.md"

_BAD: Final = (Outcome.WRONG, Outcome.CRASH)


@click.command()
@click.option("--number", default=12, show_default=True, help="Variations of each operator.")
@click.option("--match", default="", help="Only operators whose name this regular expression finds.")
@click.option("--seed", default=0, show_default=True)
@click.option("--refused", is_flag=True, help="Show what is refused, too.")
@click.option("--write", is_flag=True, help="Make docs/onnx-audit.md anew.")
def main(number: int, match: str, seed: int, refused: bool, write: bool) -> None:
    """Compare every operator with onnxruntime."""
    if write and match:
        raise click.UsageError("--write is for all operators")
    verdicts = {}
    for operator in seeds():
        if not re.search(match, operator):
            continue
        own = verdicts[operator] = audit(operator, number, seed)
        counts = Counter(verdict.outcome for verdict in own)
        python = sum(verdict.python for verdict in own)
        click.echo(f"{operator:<30}" + "".join(f"{o.value} {counts[o]:<5}" for o in Outcome if counts[o]) + f"in Python {python}")
        for verdict in own:
            if verdict.outcome in (*_BAD, *((Outcome.REFUSED,) if refused else ())):
                where = "in Python" if verdict.python else "native"
                click.echo(f"    {verdict.outcome.value} {verdict.way.value} {where}: {verdict.case}: {verdict.detail}"[:600])
    if write:
        PAGE.write_text(page(verdicts, number))
    sys.exit(any(verdict.outcome in _BAD for own in verdicts.values() for verdict in own))


if __name__ == "__main__":
    main()
