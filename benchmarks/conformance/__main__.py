"""ONNX's own backend tests, all of them, and what became of each: ``docs/onnx.md``.

    python -m benchmarks.conformance [--kernels meaning|naive|default] [--match REGEX] [--write]

``--write`` makes the page anew, and the list of tests with fallback nodes that the test suite holds every change to.
``--kernels`` says what native nodes run as: the numpy meaning of their tensor expressions (quick; the meaning is what
compiled programs are held to everywhere else), or compiled programs: the loops as written, or the default ones.
"""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Final

import click

from benchmarks.conformance.cases import cases
from benchmarks.conformance.exclusions import EXCLUDED
from benchmarks.conformance.page import page
from benchmarks.conformance.result import Way
from benchmarks.conformance.run import KERNELS, run_all

_ROOT: Final = Path(__file__).parents[2]
PAGE: Final = _ROOT / "docs" / "onnx.md"
FALLBACKS: Final = _ROOT / "tests" / "onnx" / "fallbacks.txt"


@click.command()
@click.option("--kernels", type=click.Choice(list(KERNELS)), default="meaning", show_default=True)
@click.option("--match", default="", help="Only tests whose name this regular expression finds.")
@click.option("--write", is_flag=True, help="Make docs/onnx.md and the list of fallbacks anew.")
def main(kernels: str, match: str, write: bool) -> None:
    """Run ONNX's node tests."""
    if write and (match or kernels != "meaning"):
        raise click.UsageError("--write is for all tests, with --kernels meaning")
    chosen = [case for case in cases() if re.search(match, case.name)]
    begin = time.perf_counter()
    results = run_all(chosen, KERNELS[kernels]())
    seconds = time.perf_counter() - begin
    for result in results:
        if result.way is Way.FAILING:
            click.echo(f"{result.name}: {EXCLUDED.get(result.name, 'NOT EXPECTED')}: {result.error}")
    for way in Way:
        of_way = [result for result in results if result.way is way]
        click.echo(f"{way.value:<10}{len(of_way):>6}, of plain dtypes {sum(result.plain for result in of_way):>6}")
    click.echo(f"{seconds:.0f} s")
    if write:
        PAGE.write_text(page(results, EXCLUDED))
        FALLBACKS.write_text("".join(f"{r.name}\n" for r in sorted(results, key=lambda r: r.name) if r.way is Way.FALLBACK))


if __name__ == "__main__":
    main()
