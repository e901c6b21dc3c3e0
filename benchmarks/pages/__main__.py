"""The command: run both benchmarks as far as they have not been run, and write the page."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import click
from rich.console import Console

from ansorlite.errors import TargetError
from ansorlite.target import LEVELS, check_runs
from benchmarks.common.command import chosen, command_line
from benchmarks.common.machine import cpu_name
from benchmarks.kernels.results import Results as KernelResults
from benchmarks.kernels.suites import SUITES
from benchmarks.models.results import Results as ModelResults
from benchmarks.models.results import Run as ModelRun
from benchmarks.pages import page
from benchmarks.pages.kinds import KINDS, environment, forced, kind_here

#: Trials of a case and seconds of tuning it, few and all; and those of a model, and trials of each of its tasks, all and few.
#: The bar of few is 10 s: a program that is being timed when the time is up is waited for.
_TRIALS: Final = ((page.EARLY, 9.5), (page.LATE, 60.0))
_MODEL_SECONDS: Final = 120.0
_MODEL_TRIALS: Final = 200
_FEW_TRIALS: Final = 8
#: Seconds of comparing a model: the large ones have rounds to choose from.
_COMPARED: Final = 10.0
_KERNEL_PEERS: Final = ("torch", "onnxruntime")
_MODEL_PEERS: Final = ("onnxruntime", "openvino", "torch")
#: What ``benchmarks.models`` needs.
_NEEDED: Final = ("torch", "onnxscript", "onnxruntime")


@click.command()
@click.option("--kind", "kind_name", type=click.Choice(list(KINDS)), help="Of machine.  [default: this one's]")
@click.option("--folder", type=click.Path(file_okay=False, path_type=Path), help="Of results.  [default: performance-KIND]")
@click.option("--page", "path", type=click.Path(dir_okay=False, path_type=Path), help="To be written.  [default: docs/...]")
@click.option("--suite", "suites", multiple=True, default=("all",), help="Of kernels: a suite's name, or all.")
@click.option("--case", "cases", multiple=True, metavar="TEXT", help="Only kernels with this in their name.")
@click.option("--model", "models", multiple=True, default=("all",), help="A model's name, all, or none.")
@click.option("--budget", type=float, metavar="SECONDS", help="Of each run of kernels: then no other case is begun.")
@click.option("--early", is_flag=True, help="Tune kernels with few trials only.")
@click.option("--write-only", is_flag=True, help="Run nothing; write the page of what there is.")
def main(
    kind_name: str | None, folder: Path | None, path: Path | None, suites: tuple[str, ...], cases: tuple[str, ...],
    models: tuple[str, ...], budget: float | None, early: bool, write_only: bool,
) -> None:  # fmt: skip
    """Write the page of performance on machines of a kind. Stopped, it goes on where it was."""
    screen = Console(stderr=True, highlight=False)
    name = kind_name or kind_here()
    if name is None:
        titles = " or ".join(kind.title for kind in KINDS.values())
        raise click.ClickException(f"there are pages for machines with {titles}, which this one is not")
    kind, where = KINDS[name], folder or Path(f"performance-{name}")
    chosen(suites, SUITES, "suite")
    try:
        if not write_only:
            check_runs(LEVELS[kind.level])
            where.mkdir(parents=True, exist_ok=True)
            page.check(_read(where), where, cpu_name())
        wanted = [] if write_only else _commands(name, where, suites, cases, models, budget, early)
        codes = [_run(command, name) for command in wanted]
        kernels, timed = _read(where)
        machine = page.machine_of((kernels, timed), where)
        run = ModelRun(machine.threads, _MODEL_TRIALS, 0, _MODEL_SECONDS)
        held = machine.target == replace(LEVELS[kind.level], threads=machine.threads).key
        text = page.text(kind, held, command_line("benchmarks.pages"), kernels, timed, machine.threads, run)
    except (TargetError, ValueError) as error:
        raise click.ClickException(str(error)) from error
    (path or kind.page).write_text(text)
    screen.print(f"written: {path or kind.page}")
    if any(codes):
        sys.exit(1)


def _read(folder: Path) -> tuple[KernelResults, ModelResults]:
    return KernelResults(folder / "kernels.jsonl"), ModelResults(folder / "models.jsonl")


def _run(words: Sequence[str], kind: str) -> int:
    """The exit status: 1 where an output is wrong, which the page shows.

    Raises:
        ValueError: it failed.
    """
    status = subprocess.run([sys.executable, *words], env=environment(kind, os.environ), check=False).returncode
    if status not in (0, 1):
        raise ValueError(f"`python {' '.join(words)}` ended with status {status}; the same command goes on from there")
    return status


def _commands(
    kind: str,
    folder: Path,
    suites: Sequence[str],
    cases: Sequence[str],
    models: Sequence[str],
    budget: float | None,
    early: bool,
) -> Iterator[list[str]]:
    """What is run, in order; no models where a part of what they need is not installed."""
    unheld = KINDS[kind].unheld if forced(kind) else ()
    which = [word for option, names in (("--suite", suites), ("--case", cases)) for name in names for word in (option, name)]
    rest = [] if budget is None else ["--budget", f"{budget:g}"]
    for trials, limit in _TRIALS[:1] if early else _TRIALS:
        yield [
            *("-m", "benchmarks.kernels", *which, "--trials", str(trials), "--time-limit", f"{limit:g}", "--seconds", "2.5"),
            *("--against", ",".join(peer for peer in _KERNEL_PEERS if peer not in unheld), "--untuned"),
            *("--database", str(folder / "kernels.db"), *rest),
        ]
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        click.echo(f"without models: {', '.join(missing)} is not installed; pip install 'ansorlite[peers]'", err=True)
    elif "none" not in models:
        yield [
            *("-m", "benchmarks.models", *(word for name in models for word in ("--model", name))),
            *("--trials", str(_MODEL_TRIALS), "--time-limit", f"{_MODEL_SECONDS:g}", "--seconds", f"{_COMPARED:g}"),
            *("--untuned", "--few", str(_FEW_TRIALS)),
            *("--against", ",".join(peer for peer in _MODEL_PEERS if peer not in unheld)),
            *("--database", str(folder / "models.db")),
        ]


if __name__ == "__main__":
    main()
