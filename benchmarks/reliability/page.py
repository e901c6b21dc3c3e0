"""``docs/reliability.md``: what the long runs found."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from benchmarks.common.tables import Table, markdown
from benchmarks.reliability.results import Run, total

_HEAD: Final = """\
# Reliability

Long runs that try to make ansorlite give a wrong value, end in a traceback, or lose something.
`python -m benchmarks.reliability page` made this page from what they found. Each command goes on where the last one stopped, in
attempts with numbers of their own; the number decides everything random: `--attempt NUMBER` makes one again. The test suite
makes a short form of each (`tests/unit/benchmarks/test_reliability.py`).
"""


@dataclass(frozen=True)
class Scenario:
    """
    Attributes:
        command: what makes it.
        what: is done, and what must hold.
    """

    title: str
    command: str
    what: str


SCENARIOS: Final[Mapping[str, Scenario]] = {
    "programs": Scenario(
        "Random programs",
        "programs --interpreted 1000000 --compiled 100000",
        "Random computations and the contracts' named ones; for each, the sketches of one of three machines, and extreme "
        "and random rows of each sketch, no two of one program. Each program is verified, then interpreted on two sets of "
        "inputs (loops in order; then parallel loops shuffled and vector lanes in lockstep) and held against the numpy "
        "meaning. Some are compiled, as users get them, and held against the interpreter.",
    ),
    "kills": Scenario(
        "Kills",
        "kills --count 66",
        "Tuning is killed with SIGKILL at random instants, while it starts and while it measures, and started again. The "
        "database must be whole, with every record that it had; no program is measured twice; no process is left.",
    ),
    "corruptions": Scenario(
        "Damaged files",
        "corruptions --count 1000",
        "Files of the cache (programs, models) and databases are emptied, cut, lengthened, overwritten, flipped in "
        "places, or joined with others. What is compiled then must compute the same; of a database, one sentence may say "
        "that it is damaged.",
    ),
    "planted": Scenario(
        "Planted files",
        "planted",
        "Sound machine code of another computation lies in the cache, in a file or folder that is another user's or that "
        "others may write. It must not be used, and one warning must say so.",
    ),
    "disk": Scenario(
        "Full disks",
        "disk --count 60",
        "Tuning, compiling and exporting write to disks of 8 to 600 KiB. Each must succeed or end in one sentence; a "
        "database must be whole, and nothing half-written may stay.",
    ),
    "soak": Scenario(
        "Soak",
        "soak --minutes 10",
        "Four threads call 300 kernels in random order, check every result, and compile kernels anew in the place of "
        "others, which are deleted. Memory must stay flat.",
    ),
}


def page(runs: Sequence[Run]) -> str:
    """The page in Markdown."""
    return "\n".join([_HEAD, *(_section(name, scenario, runs) for name, scenario in SCENARIOS.items())])


def _section(name: str, scenario: Scenario, runs: Sequence[Run]) -> str:
    own = [run for run in runs if run.scenario == name]
    command = f"```\npython -m benchmarks.reliability {scenario.command}\n```"
    failures = [failure for run in own for failure in run.failures]
    parts = [f"## {scenario.title}", scenario.what, command, markdown(_table(own)) if own else "Not run yet."]
    parts += [f"```\n{failure}\n```" for failure in failures]
    return "\n\n".join(parts) + "\n"


def _table(runs: Sequence[Run]) -> Table:
    """One row for each machine and commit."""
    groups: dict[tuple[str, str, str], list[Run]] = {}
    for run in runs:
        groups.setdefault((run.cpu, run.target, run.commit), []).append(run)
    kinds = list(dict.fromkeys(kind for run in runs for kind in run.counts))
    figures = list(dict.fromkeys(figure for run in runs for figure in run.figures))
    rows = [
        (
            f"{cpu} ({target})",
            f"`{commit}`",
            _days(group),
            *(f"{total(group)[kind]:,}" for kind in kinds),
            *(_figure(run.figures.get(figure, 0.0) for run in group) for figure in figures),
            f"{sum(run.seconds for run in group) / 60:.1f}",
            str(sum(len(run.failures) for run in group)),
        )
        for (cpu, target, commit), group in groups.items()
    ]
    return Table("", ("machine", "commit", "date", *kinds, *figures, "process minutes", "failures"), tuple(rows))


def _figure(values: Iterable[float]) -> str:
    """Of several attempts, from the least to the largest."""
    found = sorted(values)
    low, high = f"{found[0]:.4g}", f"{found[-1]:.4g}"
    return low if low == high else f"{low} to {high}"


def _days(runs: Sequence[Run]) -> str:
    days = sorted({time.strftime("%Y-%m-%d", time.gmtime(run.when)) for run in runs})
    return days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
