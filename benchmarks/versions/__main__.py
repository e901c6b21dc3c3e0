"""No loss: this version beside another one, in one run.

    python -m benchmarks.versions --against REVISION [--cases 30] [--trials 64] [--time-limit SECONDS] [--seed 0] [--json FILE]

Cases are taken evenly from all suites. Each is tuned by both versions, by turns the one and the other first; then the tuned and
the untuned programs of both have short turns, many times over, with rests so that the other's threads sleep. Printed are ratios:
above 1 this version is faster; of each suite, with quartiles, and of all. A file of JSON lines makes the run resumable: cases in
it are not run again.
"""

from __future__ import annotations

import argparse
import io
import json
import math
import os
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import numpy as np

from ansorlite.cache.disk import CACHE_VARIABLE
from benchmarks.kernels.suites import SUITES

ROOT: Final = Path(__file__).parents[2]
WORKER: Final = Path(__file__).with_name("worker.py")

#: Seconds of one turn, of the rest after it, and how many rounds of turns there are.
TURN, REST, ROUNDS = 0.02, 0.03, 15
PROGRAMS: Final = ("tuned", "untuned")

#: What is said of a case: how many times as fast as the other version its programs, and its trials, are.
COLUMNS: Final = (*PROGRAMS, "trial")


class Version:
    """A process with one version, and a cache of its own."""

    def __init__(self, name: str, checkout: Path, folder: Path) -> None:
        self.name, self.folder = name, folder
        cache = folder / f"cache-{name}"
        cache.mkdir(mode=0o700)
        environment = {**os.environ, "PYTHONPATH": str(checkout), CACHE_VARIABLE: str(cache)}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package has its byte code
        self.process = subprocess.Popen(
            [sys.executable, str(WORKER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, cwd=folder
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.process.kill()
        self.process.wait()

    def ask(self, do: str, **arguments: object) -> dict[str, Any]:
        """
        Raises:
            RuntimeError: the process is gone; what it said last is on the terminal.
        """
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps({"do": do, **arguments}) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"version {self.name} is gone; its last words are above")
        answer: dict[str, Any] = json.loads(line)
        return answer


def evenly(count: int) -> list[tuple[str, str]]:
    """So many cases of all suites, as (suite, case)."""
    everything = [(suite, case.name) for suite, cases in SUITES.items() for case in cases]
    return [everything[number * len(everything) // count] for number in range(min(count, len(everything)))]


def check_out(revision: str, folder: Path) -> Path:
    """The package and the benchmarks of a revision.

    Raises:
        subprocess.CalledProcessError: git does not know it.
    """
    archive = subprocess.run(["git", "archive", revision, "ansorlite", "benchmarks"], cwd=ROOT, capture_output=True, check=True)
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as packed:
        packed.extractall(folder, filter="data")
    return folder


def compare(
    here: Version, there: Version, suite: str, case: str, budget: Mapping[str, float | None], seed: int, first: int
) -> dict[str, object]:
    """One case: how many times as fast this version's programs, and its trials, are.

    Args:
        budget: the trials and the seconds of tuning, at most, by the names that the worker has for them.
    """
    versions = (here, there) if first % 2 == 0 else (there, here)
    tuned = {
        version.name: version.ask(
            "tune", suite=suite, case=case, **budget, seed=seed, database=str(version.folder / f"{version.name}-{first}.db")
        )
        for version in versions
    }
    for name, answer in tuned.items():
        if not answer["alike"]:
            raise RuntimeError(f"{suite} {case}: version {name} computes two results: tuned and untuned programs differ")
    ratios: dict[str, list[float]] = {program: [] for program in PROGRAMS}
    for _ in range(ROUNDS):
        for program in PROGRAMS:
            taken = {}
            for version in versions:
                taken[version.name] = version.ask("turn", program=program, seconds=TURN)["latency"]
                time.sleep(REST)
            ratios[program].append(taken[there.name] / taken[here.name])
    medians = {program: statistics.median(values) for program, values in ratios.items()}
    seconds = {name: answer["seconds"] for name, answer in tuned.items()}
    return {"suite": suite, "case": case, **medians, "trial": seconds[there.name] / seconds[here.name], "seconds": seconds}


def geometric_mean(values: Sequence[float]) -> float:
    return math.exp(statistics.fmean(map(math.log, values)))


def by_suite(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """A line for each suite: of the tuned and the untuned programs the geometric mean, and the quartiles."""
    for suite in dict.fromkeys(row["suite"] for row in rows):
        found = [row for row in rows if row["suite"] == suite]
        columns = []
        for column in PROGRAMS:
            values = [row[column] for row in found]
            low, high = np.quantile(values, (0.25, 0.75))
            columns.append(f"{column} {geometric_mean(values):.3f} ({low:.2f} to {high:.2f})")
        yield f"{suite:10} {', '.join(columns)} of {len(found)} cases"


def summary(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """A line for each column."""
    for column in COLUMNS:
        values = [row[column] for row in rows]
        worst = min(rows, key=lambda row: row[column])
        below = sum(value < 0.9 for value in values)
        yield (
            f"{column:8} {geometric_mean(values):.3f} in geometric mean of {len(rows)} cases, {below} below 0.9; "
            f"worst {worst[column]:.3f} ({worst['suite']} {worst['case']})"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", required=True, metavar="REVISION", help="of git")
    parser.add_argument("--cases", type=int, default=30)
    parser.add_argument("--trials", type=int, default=64)
    parser.add_argument("--time-limit", type=float, metavar="SECONDS", help="of tuning one case by one version")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, metavar="FILE", help="keeps each case's row, and has those of before")
    given = parser.parse_args()
    rows = [json.loads(line) for line in given.json.read_text().splitlines()] if given.json and given.json.exists() else []
    known = {(row["suite"], row["case"]) for row in rows}
    budget = {"trials": given.trials, "time_limit": given.time_limit}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        other = check_out(given.against, folder / "there")
        with Version("here", ROOT, folder) as here, Version("there", other, folder) as there:
            for number, (suite, case) in enumerate(evenly(given.cases)):
                if (suite, case) in known:
                    continue
                row = compare(here, there, suite, case, budget, given.seed, number)
                rows.append(row)
                print(f"{suite:10} {case:32}", *(f"{column} {row[column]:.3f} " for column in COLUMNS), flush=True)
                if given.json:
                    with given.json.open("a") as file:
                        file.write(json.dumps(row) + "\n")
    print(*by_suite(rows), *summary(rows), sep="\n")


if __name__ == "__main__":
    main()
