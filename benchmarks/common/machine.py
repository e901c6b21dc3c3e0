"""Where and beside what a run was made."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psutil

from ansorlite.runtime.peaks import MemoryLevel, Peaks, measure_peaks
from ansorlite.target import host
from benchmarks.common.tables import Table, markdown


@dataclass(frozen=True)
class Machine:
    """
    Attributes:
        memory: bytes.
        versions: of the systems that took part; of ansorlite with the commit, where it lies in a repository.
        one, all: peaks of one core, and of as many as kernels use.
    """

    cpu: str
    target: str
    threads: int
    memory: int
    versions: Mapping[str, str]
    one: Peaks
    all: Peaks
    when: float

    @staticmethod
    def here(threads: int, peers: Mapping[str, str]) -> Machine:
        """This one, beside ``peers``: name -> version. Its peaks are measured, which takes some seconds."""
        target = host(threads)
        one = measure_peaks(target, 1)
        return Machine(
            cpu=cpu_name(),
            target=target.key,
            threads=target.threads,
            memory=int(psutil.virtual_memory().total),
            versions={"ansorlite": f"{version('ansorlite')}{_commit()}", **peers},
            one=one,
            all=one if threads == 1 else measure_peaks(target, threads),
            when=time.time(),
        )

    @staticmethod
    def of(fields: Mapping[str, Any]) -> Machine:
        """From what ``dataclasses.asdict`` makes of one."""
        return Machine(**{**fields, "one": _peaks(fields["one"]), "all": _peaks(fields["all"])})


def describe(machine: Machine, busy: float) -> str:
    """A paragraph and a table for a page. ``busy``: the share of the machine that other work took."""
    versions = ", ".join(f"{name} {version}" for name, version in machine.versions.items())
    day = time.strftime("%Y-%m-%d", time.gmtime(machine.when))
    return f"""{machine.cpu} ({machine.target}), {_threads(machine.threads)}, {machine.memory / 2**30:.0f} GiB; {day}; {versions}.
Beside the rounds that count, other work took {busy:.0%} of the machine (median){_warning(busy)}.

{markdown(_peaks_table(machine))}"""


def cpu_name() -> str:
    """The processor, as it calls itself."""
    names = [line.partition(":")[2].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line]
    return names[0] if names else os.uname().machine


def _commit() -> str:
    """As an addition to a version; a "+" after it says that files were changed since."""
    try:
        found, changed = (
            subprocess.run(["git", *words], cwd=Path(__file__).parent, capture_output=True, text=True, check=True).stdout.strip()
            for words in (["rev-parse", "--short", "HEAD"], ["status", "--porcelain", "--untracked-files=no"])
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return f" ({found}{'+' if changed else ''})"


def _peaks(fields: Mapping[str, Any]) -> Peaks:
    return Peaks(fields["threads"], fields["flops"], tuple(MemoryLevel(**level) for level in fields["levels"]))


def _threads(count: int) -> str:
    return "1 thread" if count == 1 else f"{count} threads"


def _warning(busy: float) -> str:
    return ": **it was a busy machine, and the figures are to be taken again on a quiet one**" if busy > 0.1 else ""


def _peaks_table(machine: Machine) -> Table:
    peaks = {"one core": machine.one} | ({} if machine.threads == 1 else {f"{machine.threads} cores": machine.all})
    levels = [level.name for level in next(iter(peaks.values())).levels]
    rows = [
        (name, f"{peak.flops / 1e9:.0f} GFLOP/s", *(f"{v.read / 1e9:.1f} / {v.copy / 1e9:.1f}" for v in peak.levels))
        for name, peak in peaks.items()
    ]
    return Table("peaks", ("measured peaks", "multiply-adds", *(f"{name}, GB/s read / copy" for name in levels)), tuple(rows))
