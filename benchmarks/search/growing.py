"""Clouds that grow unattended: the data set that a prior would be learnt from (80,000 programs of 40 tasks), in parts.

The smallest cloud grows by a step, then the smallest again, so that what there is whenever the time is up is of all tasks alike.
A step is measured, written into the cloud, and its readings removed but for the first, of the reference: what is kept on disk is
the clouds themselves.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import click

from ansorlite.target import host
from ansorlite.tuner.measurers import MEASURERS
from benchmarks.search import record, table
from benchmarks.search.cases import CLOUDS, matching, task_of
from benchmarks.search.recording import Recording
from benchmarks.search.table import Kind

_MEGA: Final = 1 << 20


@dataclass
class Growth:
    """Clouds in a folder, and what growing them took.

    Attributes:
        sizes: programs of each cloud.
        spent: those that gained less than a step though there was time: their spaces have no more.
        grown, seconds: programs measured, and how long that took.
    """

    folder: Path
    sizes: dict[str, int]
    spent: set[str] = field(default_factory=set)
    grown: int = 0
    seconds: float = 0.0

    @staticmethod
    def of(folder: Path, names: Mapping[str, tuple[str, str]]) -> Growth:
        """What there is of the clouds of these names."""
        there = table.tables_in(folder, Kind.CLOUD)
        return Growth(folder, {name: len(table.read(there[name])) if name in there else 0 for name in names})

    @property
    def programs(self) -> int:
        return sum(self.sizes.values())

    @property
    def bytes(self) -> int:
        """Of the folder, all files."""
        return sum(path.stat().st_size for path in self.folder.rglob("*") if path.is_file())

    def smallest(self) -> str | None:
        """The cloud that is to grow next; ``None`` where all are spent."""
        open_ = [name for name in self.sizes if name not in self.spent]
        return min(open_, key=lambda name: self.sizes[name], default=None)

    def forecast(self, programs: int) -> str:
        """What there is, and how long the rest takes at this pace."""
        size = self.bytes / _MEGA
        said = f"{self.programs:,} programs of {sum(map(bool, self.sizes.values()))} tasks, {size:.1f} MiB"
        left = programs - self.programs
        if left <= 0 or not self.grown or not self.programs:
            return said
        pace = self.seconds / self.grown
        return (
            f"{said}; {pace:.2f} s a program: {left * pace / 3600:.1f} hours for the {left:,} that are missing, "
            f"{size * programs / self.programs:.0f} MiB in all"
        )


def grow(
    growth: Growth,
    names: Mapping[str, tuple[str, str]],
    programs: int,
    step: int,
    most: float,
    until: float,
    threads: int,
    builders: int,
    measurer: str,
    tell: Callable[[str], None],
) -> str:
    """Grow clouds, and say why it ended.

    Args:
        programs: of all clouds together; no step is begun once there are so many.
        step: programs that a cloud grows by.
        most: bytes of the folder; no step is begun that is expected to go beyond.
        until: the time, as ``time.monotonic`` tells it, after which no batch is begun.
    """
    while growth.programs < programs:
        name = growth.smallest()
        if name is None:
            return "all spaces are at their end"
        if time.monotonic() >= until:
            return "the time is up; the same command goes on"
        each = growth.bytes / growth.programs if growth.programs else 0.0
        if growth.bytes + step * each >= most:
            return f"the folder is at its bound of {most / _MEGA:.0f} MiB; give it more"
        begin, before = time.monotonic(), growth.sizes[name]
        growth.sizes[name] = _grown(growth.folder, name, names[name], before + step, until, threads, builders, measurer)
        gained = growth.sizes[name] - before
        growth.grown, growth.seconds = growth.grown + gained, growth.seconds + time.monotonic() - begin
        if gained < step and time.monotonic() < until:
            growth.spent.add(name)
        tell(f"{name}: {growth.sizes[name]} programs; {growth.forecast(programs)}")
    return "there are as many as were asked for"


def _grown(
    folder: Path, name: str, case: tuple[str, str], count: int, until: float, threads: int, builders: int, measurer: str
) -> int:
    """Let one cloud have ``count`` programs; how many it has."""
    path = record.path_of(folder, Kind.CLOUD, name)
    readings = folder / "readings" / f"{name}.jsonl"
    recording = Recording(readings)
    if path.exists():
        cloud = table.read(path)
        # What a run that was killed had measured is in its readings, after all of the cloud.
        if len(recording.of_pass(0)) < len(cloud):
            if recording.readings:
                recording.keep_reference()
            recording.restore(cloud)
    with record.Recorder(task_of(*case, host(threads)), recording, MEASURERS[measurer], record.settings(builders), until) as own:
        made = record.record_cloud(task_of(*case, host(threads)), " ".join(case), own, count)
    if made is None:
        return 0
    path.parent.mkdir(parents=True, exist_ok=True)
    table.write(made, path)
    recording.keep_reference()
    return len(made)


@click.command("grow")
@click.option("--case", "texts", multiple=True, metavar="TEXT", help="Only cases with this in their name.  [default: all]")
@click.option("--programs", type=click.IntRange(min=1), default=80_000, show_default=True, help="Of all clouds together.")
@click.option("--step", type=click.IntRange(min=1), default=64, show_default=True, help="Programs that one cloud grows by.")
@click.option("--megabytes", type=click.FloatRange(min=0), default=64.0, show_default=True, help="Of the folder, at most.")
@click.option("--seconds", type=click.FloatRange(min=0), default=float("inf"), help="Begin nothing else after so many.")
@click.option("--threads", type=click.IntRange(min=1), default=1, show_default=True)
@click.option("--builders", type=click.IntRange(min=1), default=2, show_default=True, help="Programs compiled at once.")
@click.option("--measurer", type=click.Choice(list(MEASURERS)), default="local", show_default=True)
@click.option("--begin", type=click.Path(file_okay=False, exists=True, path_type=Path), help="Clouds that are copied first.")
@click.option("--folder", required=True, type=click.Path(file_okay=False, path_type=Path), help="Where the clouds grow.")
def command(
    texts: tuple[str, ...],
    programs: int,
    step: int,
    megabytes: float,
    seconds: float,
    threads: int,
    builders: int,
    measurer: str,
    begin: Path | None,
    folder: Path,
) -> None:
    """Grow clouds of all cases alike, until there are enough programs for a data set. A run that is stopped or killed goes on."""
    until = time.monotonic() + seconds
    names = matching(CLOUDS, texts)
    if not names:
        raise click.UsageError(f"no case of a cloud has {' or '.join(map(repr, texts))} in its name")
    for name, path in table.tables_in(begin, Kind.CLOUD).items() if begin else ():
        to = record.path_of(folder, Kind.CLOUD, name)
        if name in names and not to.exists():
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, to)
    growth = Growth.of(folder, names)

    def tell(line: str) -> None:
        click.echo(line, err=True)

    ended = grow(growth, names, programs, step, megabytes * _MEGA, until, threads, builders, measurer, tell)
    click.echo(f"{ended}: {growth.forecast(programs)}")
