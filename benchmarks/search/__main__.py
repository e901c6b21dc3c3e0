"""``python -m benchmarks.search``: record tables, import those of others, judge strategies on them, and write the page.

    python -m benchmarks.search record --kind grid --seconds 600
    python -m benchmarks.search grow --folder CLOUDS --seconds 3600
    python -m benchmarks.search import KERNEL/GPU.json.gz
    python -m benchmarks.search run --preset default --preset random
    python -m benchmarks.search confirm
    python -m benchmarks.search models --programs 32 --epochs 10
    python -m benchmarks.search seconds --programs 32 --epochs 10
    python -m benchmarks.search families
    python -m benchmarks.search schedulers
    python -m benchmarks.search explorers
    python -m benchmarks.search values
    python -m benchmarks.search transfer
    python -m benchmarks.search page

``record``, ``grow``, ``run`` and ``models`` go on where they were stopped.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import click

from ansorlite.errors import AnsorliteError
from ansorlite.target import host
from ansorlite.tuner.measurers import MEASURERS
from ansorlite.tuner.presets import PRESETS
from benchmarks.search import foreign, growing, learning, page, record, table
from benchmarks.search import models as judging
from benchmarks.search.cases import CLOUDS, GRIDS, matching, task_of
from benchmarks.search.confirming import Confirmation
from benchmarks.search.describing import described
from benchmarks.search.judge import Bench
from benchmarks.search.kept import kept
from benchmarks.search.recording import Recording
from benchmarks.search.results import Judged, Results, digest
from benchmarks.search.table import Kind
from benchmarks.search.variants import VARIANTS

_ROOT: Final = Path(__file__).parents[2]
TABLES: Final = Path(__file__).parent / "tables"
RESULTS: Final = Path(__file__).parent / "results.jsonl"
PAGE: Final = _ROOT / "docs" / "search_quality.md"

_folder = click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=TABLES,
    help="Of the tables.  [default: the repository's]",
)

_results = click.option(
    "--results", type=click.Path(dir_okay=False, path_type=Path), default=RESULTS, help="Of runs.  [default: the repository's]"
)


class _Group(click.Group):
    """A user's mistake is one sentence."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except AnsorliteError as error:
            raise click.ClickException(str(error)) from error


@click.group(cls=_Group)
def main() -> None:
    """Strategies judged on recorded tables."""


@main.command("record")
@click.option("--kind", type=click.Choice([Kind.GRID.value, Kind.CLOUD.value]), default=Kind.GRID.value, show_default=True)
@click.option(
    "--case", "texts", multiple=True, metavar="TEXT", help="Only cases with this in their name; may be given several times."
)
@click.option("--programs", type=click.IntRange(min=2), help="Of one table, at most.  [default: 4096 of a grid, 2048 of a cloud]")
@click.option("--seconds", type=click.FloatRange(min=0), default=math.inf, help="Begin nothing else after so many.")
@click.option(
    "--searched", type=click.IntRange(min=1), default=record.SEARCHED, show_default=True, help="Trials that find a grid's values."
)
@click.option("--threads", type=click.IntRange(min=1), default=1, show_default=True)
@click.option("--builders", type=click.IntRange(min=1), default=2, show_default=True, help="Programs compiled at once.")
@click.option("--measurer", type=click.Choice(list(MEASURERS)), default="local", show_default=True)
@click.option(
    "--readings", type=click.Path(file_okay=False, path_type=Path), help="Of what was measured.  [default: with the tables]"
)
@_folder
def _record(
    kind: str,
    texts: tuple[str, ...],
    programs: int | None,
    seconds: float,
    searched: int,
    threads: int,
    builders: int,
    measurer: str,
    readings: Path | None,
    folder: Path,
) -> None:
    """Measure grids or clouds of tasks. A recording that is stopped goes on; a cloud grows."""
    what = Kind(kind)
    until = time.monotonic() + seconds
    cases = matching(GRIDS if what is Kind.GRID else CLOUDS, texts)
    if not cases:
        raise click.UsageError(f"no case of a {kind} has {' or '.join(map(repr, texts))} in its name")
    for name, (suite, case) in cases.items():
        path = record.path_of(folder, what, name)
        if what is Kind.GRID and path.exists():
            continue
        if time.monotonic() >= until:
            click.echo("the time is up; the same command goes on", err=True)
            return
        task = task_of(suite, case, host(threads))
        recording = Recording((readings or folder / "readings") / what.value / f"{name}.jsonl")
        begin = time.monotonic()
        if what is Kind.CLOUD and path.exists() and not recording.readings:
            recording.restore(table.read(path))
        with record.Recorder(task, recording, MEASURERS[measurer], record.settings(builders), until) as recorder:
            if what is Kind.GRID:
                made = record.record_grid(task, f"{suite} {case}", recorder, programs or 4096, searched=searched)
            else:
                made = record.record_cloud(task, f"{suite} {case}", recorder, programs or 2048)
        if made is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            table.write(made, path)
        size = "not whole yet" if made is None else f"{len(made)} rows"
        click.echo(f"{name}: {size}, {len(recording.readings)} readings ({time.monotonic() - begin:.0f} s)", err=True)


@main.command("import")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@_folder
def _import(files: tuple[Path, ...], folder: Path) -> None:
    """Take tables of benchmark_hub (.json, .json.gz, or cut to arrays, .npz) into the tables' own format."""
    for file in files:
        made = foreign.imported(file)
        path = record.path_of(folder, Kind.FOREIGN, file.name.split(".")[0])
        path.parent.mkdir(parents=True, exist_ok=True)
        table.write(made, path)
        click.echo(f"{path.stem}: {len(made)} rows, {int(made.ran.sum())} of them ran")


@main.command("describe")
@_folder
def _describe(folder: Path) -> None:
    """Make the features of our tables anew, as today's code has them, from the traces of their programs."""
    for kind in (Kind.GRID, Kind.CLOUD):
        for name, path in _paths(folder, (kind,), ()).items():
            table.write(described(table.read(path)), path)
            click.echo(f"{kind.value}: {name}")


@main.command("run")
@click.option(
    "--preset", "names", multiple=True, type=click.Choice(list(PRESETS)), help="May be given several times.  [default: all]"
)
@click.option(
    "--variant",
    "variants",
    multiple=True,
    type=click.Choice(list(VARIANTS)),
    help="Of the default; may be given several times.  [default: none]",
)
@click.option(
    "--table", "texts", multiple=True, metavar="TEXT", help="Only tables with this in their name; may be given several times."
)
@click.option("--seeds", type=click.IntRange(min=1), default=30, show_default=True)
@click.option("--trials", type=click.IntRange(min=1), default=64, show_default=True)
@click.option("--seconds", type=click.FloatRange(min=0), default=math.inf, help="Begin no other run after so many.")
@_results
@_folder
def _run(
    names: tuple[str, ...],
    variants: tuple[str, ...],
    texts: tuple[str, ...],
    seeds: int,
    trials: int,
    seconds: float,
    results: Path,
    folder: Path,
) -> None:
    """Let presets, or variants of the default, search tables. What is known and unchanged is not run again."""
    until = time.monotonic() + seconds
    found = _paths(folder, (Kind.GRID, Kind.FOREIGN), texts)
    runs = Results(results)
    chosen = (*(names or (() if variants else tuple(PRESETS))), *variants)
    digests = _digests(chosen, found)
    known = {(digests[key], run.seed) for key, made in runs.current(digests, trials).items() for run in made}
    before = len(known)
    benches: dict[str, Bench] = {}
    # Seed by seed, so that what there is when the time is up is of all of them.
    for seed, (name, path), preset in itertools.product(range(seeds), found.items(), chosen):
        what = digests[preset, name]
        if (what, seed) in known:
            continue
        if time.monotonic() >= until:
            click.echo("the time is up; the same command goes on", err=True)
            break
        if name not in benches:
            benches[name] = Bench.of(table.read(path, features=True))
        runs.add(_made(preset, name, benches[name], seed, trials, what))
        known.add((what, seed))
    click.echo(f"{len(known) - before} runs, {before} were known", err=True)
    _drop_superseded(runs, _digests((*PRESETS, *VARIANTS), _paths(folder, (Kind.GRID, Kind.FOREIGN), ())))


@main.command("confirm")
@click.option("--trials", type=click.IntRange(min=1), default=64, show_default=True)
@click.option("--sample", type=click.IntRange(min=1), default=1, show_default=True, help="Runs made again, of each table.")
@click.option("--anew", is_flag=True, help="Where one is not as it was, make all of the preset again.")
@click.option("--seconds", type=click.FloatRange(min=0), default=math.inf, help="Begin no other run after so many.")
@_results
@_folder
def _confirm(trials: int, sample: int, anew: bool, seconds: float, results: Path, folder: Path) -> None:
    """Where code has changed, but not what it does: make a few runs of each preset on each table again. Where all of a preset
    are as they were, the others of it count, too; else they are to be run anew."""
    found = _paths(folder, (Kind.GRID, Kind.FOREIGN), ())
    runs = Results(results)
    names = (*PRESETS, *VARIANTS)
    digests = _digests(names, found)
    benches: dict[str, Bench] = {}

    def make(row: Judged) -> Judged:
        if row.table not in benches:
            benches[row.table] = Bench.of(table.read(found[row.table], features=True))
        return _made(row.preset, row.table, benches[row.table], row.seed, trials, digests[row.preset, row.table])

    confirmation = Confirmation(runs, digests, trials, make, time.monotonic() + seconds)
    for each in confirmation.each(names, tuple(found), sample, anew):
        if each is None or each.left:
            click.echo("the time is up; the same command goes on", err=True)
            return
        if each.renewed:
            verdict = f"as before: {each.renewed} runs count"
        elif anew:
            verdict = f"not as before: {each.anew} more made anew"
        else:
            verdict = "not as before: run it anew, or confirm with --anew"
        click.echo(f"{each.preset}: {each.compared} runs made again, {verdict}")
    _drop_superseded(runs, digests)


def _drop_superseded(runs: Results, digests: Mapping[tuple[str, str], str]) -> None:
    """Forget what was made again since, and say so."""
    if dropped := runs.drop_superseded(set(digests.values())):
        click.echo(f"{dropped} runs of other code, made again since, are dropped", err=True)


def _made(preset: str, name: str, bench: Bench, seed: int, trials: int, what: str) -> Judged:
    """The run of a preset, or a variant, over a table of that name."""
    variant = VARIANTS.get(preset)
    course = bench.run(PRESETS[preset], trials, seed) if variant is None else variant.run(bench, trials, seed)
    return Judged.of(preset, name, seed, trials, what, course)


@main.command("page")
@click.option("--trials", type=click.IntRange(min=32), default=64, show_default=True)
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), default=PAGE, help="[default: docs/search_quality.md]")
@_results
@_folder
def _page(trials: int, output: Path, results: Path, folder: Path) -> None:
    """Write the page from the results."""
    found = _paths(folder, (Kind.GRID, Kind.FOREIGN), ())
    digests = _digests((*PRESETS, *VARIANTS), found)
    known = Results(results)
    runs = {count: known.current(digests, count) for count in {trials, *known.trials}}
    tables = {name: table.read(path) for name, path in found.items()}
    clouds = {name: table.read(path) for name, path in _paths(folder, (Kind.CLOUD,), ()).items()}
    replayed = kept(learning.REPLAYED)
    models = judging.tables(judging.kept(learning.MODELS))
    output.write_text(page.page(tables, runs, trials, clouds, [*replayed.items(), *models]))


def _digests(names: Sequence[str], tables: Mapping[str, Path]) -> dict[tuple[str, str], str]:
    """Of presets and variants, by name, on tables."""
    return {
        (each, name): VARIANTS[each].digest(path) if each in VARIANTS else digest(PRESETS[each], path)
        for each in names
        for name, path in tables.items()
    }


def _paths(folder: Path, kinds: tuple[Kind, ...], texts: tuple[str, ...]) -> dict[str, Path]:
    """The tables of these kinds by name; a grid and a cloud of one task have the same name."""
    every = {name: path for kind in kinds for name, path in table.tables_in(folder, kind).items()}
    found = {name: path for name, path in every.items() if not texts or any(text in name for text in texts)}
    if not found and texts:
        raise click.UsageError(
            f"no table has {' or '.join(map(repr, texts))} in its name; they are: {', '.join(every) or 'none'}"
        )
    return found


_LEARNING: Final = (
    learning.corpus,
    learning.models,
    learning.prior,
    learning.seconds,
    learning.families,
    learning.schedulers,
    learning.explorers,
    learning.values,
    learning.transfer,
)
for _command in (growing.command, *_LEARNING):
    main.add_command(_command)


if __name__ == "__main__":
    main()
