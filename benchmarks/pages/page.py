"""A page of performance, from the rows of both benchmarks."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from benchmarks.common.machine import Machine
from benchmarks.kernels import tables
from benchmarks.kernels.goals import goals
from benchmarks.kernels.page import page as kernels_page
from benchmarks.kernels.results import Results as KernelResults
from benchmarks.kernels.results import Run as KernelRun
from benchmarks.kernels.suites import SUITES
from benchmarks.models.page import results as models_table
from benchmarks.models.results import Results as ModelResults
from benchmarks.models.results import Run as ModelRun
from benchmarks.pages.bars import bars, by_suite
from benchmarks.pages.kinds import Kind

#: Trials of a case, in the order in which they are made.
EARLY: Final = 64
LATE: Final = 200

_MODELS: Final = "How models are run, and how their table is read, is said in [models_performance.md](models_performance.md)."


def check(found: tuple[KernelResults, ModelResults], folder: Path, cpu: str) -> None:
    """Raises:
    ValueError: there are rows of another processor.
    """
    others = [row.cpu for row in _machines(*found) if row.cpu != cpu]
    if others:
        raise ValueError(f"{folder} has results of {others[0]}, and this is {cpu}; give another folder with --folder")


def machine_of(found: tuple[KernelResults, ModelResults], folder: Path) -> Machine:
    """What all rows in ``folder`` were made on, as the last run of kernels has it.

    Raises:
        ValueError: there are no rows of kernels, or rows of several machines.
    """
    kinds = {(row.cpu, row.target) for row in _machines(*found)}
    if len(kinds) > 1:
        machines = " and ".join(f"{cpu} ({target})" for cpu, target in sorted(kinds))
        raise ValueError(f"{folder} has results of {machines}; a page is of one machine, so give each a folder with --folder")
    if not (kernels := _machines(found[0])):
        raise ValueError(f"{folder} has no results of kernels yet; run the command without --write-only")
    return kernels[-1]


def _machines(*found: KernelResults | ModelResults) -> list[Machine]:
    return [row for results in found for row in results.rows if isinstance(row, Machine)]


def text(
    kind: Kind, forced: bool, command: str, kernels: KernelResults, models: ModelResults, threads: int, model_run: ModelRun
) -> str:
    """The text of the page of ``kind``.

    Args:
        forced: whether the machine can do more, and was held to it.
        model_run: which rows of ``models`` count.
    """
    early_run, late_run = (KernelRun(threads, trials, 0) for trials in (EARLY, LATE))
    suites = list(SUITES)
    early, late = (kernels.timings(suites, run) for run in (early_run, late_run))
    shown = late or early
    tunings = kernels.tunings(suites, late_run if late else early_run)
    machine, seeds, timed = kernels.machine(threads), kernels.variances(suites, threads), models.timings(model_run)
    if any(row.threads == threads for row in _machines(models)):
        machine = replace(machine, versions={**models.machine(threads).versions, **machine.versions})
    found = [bars(kind.bars, early, kernels.tunings(suites, early_run), late, timed)]
    found.append(by_suite(early, late, kind.bars.least))
    found += [table for table in [goals(shown, tunings, seeds)] if table.rows]
    found += tables.everything(machine.all, shown, tunings, seeds, suites)
    if timed:
        table = models_table(timed, models.tuning_seconds(model_run), models.nearly(model_run))
        found.append(replace(table, notes=(*table.notes, _MODELS)))
    title = f"Performance: {kind.title}"
    remark = _remark(kind, forced, kernels, threads, bool(late))
    return kernels_page(machine, command, list(shown.values()), found, title=title, remark=remark)


def _remark(kind: Kind, forced: bool, kernels: KernelResults, threads: int, late: bool) -> str:
    machines = [row for row in _machines(kernels) if row.threads == threads]
    versions = list(dict.fromkeys(row.versions["ansorlite"] for row in machines))
    first, last = (time.strftime("%Y-%m-%d", time.gmtime(machines[place].when)) for place in (0, -1))
    days = first if first == last else f"{first} to {last}"
    trials = f"{EARLY} trials a case, then {LATE}" if late else f"{EARLY} trials a case; none had {LATE} yet"
    sentences = [f"Rows were made on {days} by ansorlite {', '.join(versions)}; {trials}."]
    if forced:
        held = " ".join(f"{variable}={value}" for variable, value in kind.held.items())
        left_out = f", and {_listed(kind.unheld)}, which nothing holds to it, left out" if kind.unheld else ""
        sentences.append(
            f"**No machine with {kind.title} alone was at hand: this one can do more.** Ours were compiled for {kind.level}, the "
            f"others held to {kind.title} (`{held}`){left_out}. Caches, clock and width of memory are this machine's."
        )
    return " ".join(sentences)


def _listed(names: Sequence[str]) -> str:
    return " and ".join(names)
