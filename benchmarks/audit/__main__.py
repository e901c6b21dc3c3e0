"""Every operator, with random attributes and inputs, beside onnxruntime: which ones the Python reference gets wrong.

python -m benchmarks.audit [--number N] [--match REGEX] [--seed S]
"""

from __future__ import annotations

import re
from collections import Counter

import click

from benchmarks.audit.run import audit
from benchmarks.audit.seeds import seeds
from benchmarks.audit.verdict import Outcome


@click.command()
@click.option("--number", default=30, show_default=True, help="Variations of each operator.")
@click.option("--match", default="", help="Only operators whose name this regular expression finds.")
@click.option("--seed", default=0, show_default=True)
@click.option("--all", "show_all", is_flag=True, help="Show what is refused, too.")
def main(number: int, match: str, seed: int, show_all: bool) -> None:
    """Compare."""
    for operator in seeds():
        if not re.search(match, operator):
            continue
        verdicts = audit(operator, number, seed)
        counts = Counter(verdict.outcome for verdict in verdicts)
        python = sum(v.python for v in verdicts if v.outcome is not Outcome.UNCHECKED)
        click.echo(
            f"{operator:<28}" + "".join(f"{o.value} {counts[o]:<5}" for o in Outcome if counts[o]) + f" in Python {python}"
        )
        shown = (Outcome.WRONG, Outcome.CRASH, *((Outcome.REFUSED,) if show_all else ()))
        for v in verdicts:
            if v.outcome in shown:
                click.echo(
                    f"    {v.outcome.value} {v.way.value} {'in Python' if v.python else 'native'}: {v.case}: {v.detail}"[:600]
                )


if __name__ == "__main__":
    main()
