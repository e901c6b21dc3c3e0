"""Commands of ``python -m benchmarks.search`` about what is learnt of tables: a data set, models, experience of other tasks."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Final

import click

from ansorlite.dataset import write_corpus
from ansorlite.dataset.models import models as known_models
from benchmarks.common.tables import show
from benchmarks.search import exploring, told
from benchmarks.search import families as siblings
from benchmarks.search import models as judging
from benchmarks.search import prior as experience
from benchmarks.search import sharing as handing
from benchmarks.search import transfer as transferred
from benchmarks.search import values as across
from benchmarks.search.families import Cloud
from benchmarks.search.kept import keep
from benchmarks.search.table import Kind, Table, read, tables_in

TABLES: Final = Path(__file__).parent / "tables"
MODELS: Final = Path(__file__).parent / "models.jsonl"
REPLAYED: Final = Path(__file__).parent / "replayed.json"

_folder = click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=TABLES,
    help="Of the tables.  [default: the repository's]",
)
_programs = click.option("--programs", type=click.IntRange(min=4), help="Of a task, at most.  [default: all]")
_epochs = click.option("--epochs", type=click.IntRange(min=1), help="Of neural models.  [default: their authors']")
_folds = click.option("--folds", type=click.IntRange(min=2), default=4, show_default=True, help="Of the tasks.")
_replayed = click.option(
    "--results", type=click.Path(dir_okay=False, path_type=Path), default=REPLAYED, help="[default: the repository's]"
)
_seed = click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)


@click.command()
@click.option(
    "-o", "--output", required=True, type=click.Path(file_okay=False, path_type=Path), help="The folder of the data set."
)
@_programs
@_folder
def corpus(output: Path, programs: int | None, folder: Path) -> None:
    """Make a data set of the clouds, as `python -m ansorlite.dataset` makes one of databases."""
    found = judging.entries(folder, judging.Settings(programs, None, 2, 0))
    write_corpus(found, output)
    click.echo(f"{output}: {sum(map(len, found))} programs of {len(found)} tasks", err=True)


@click.command()
@click.option("--model", "names", multiple=True, type=click.Choice(list(known_models())), help="[default: all]")
@_programs
@_epochs
@_folds
@_seed
@click.option("--seconds", type=click.FloatRange(min=0), default=math.inf, help="Begin no other model after so many.")
@click.option("--results", type=click.Path(dir_okay=False, path_type=Path), default=MODELS, help="[default: the repository's]")
@_folder
def models(
    names: tuple[str, ...],
    programs: int | None,
    epochs: int | None,
    folds: int,
    seed: int,
    seconds: float,
    results: Path,
    folder: Path,
) -> None:
    """Judge cost models on every split of the clouds; `page` shows it. What is known is not judged again."""
    settings = judging.Settings(programs, epochs, folds, seed)
    until = time.monotonic() + seconds
    clouds = judging.entries(folder, settings)
    for row in judging.rows(judging.kept(results), clouds, settings, names or tuple(known_models()), until):
        judging.add(results, row)
        click.echo(f"{row.split}, {row.model}: {row.seconds:.0f} s", err=True)
    for _, table in judging.tables(judging.kept(results)):
        show(table)


@click.command()
@_programs
@_epochs
@_folds
@_seed
@_folder
def prior(programs: int | None, epochs: int | None, folds: int, seed: int, folder: Path) -> None:
    """Whether what other tasks taught helps with a new one, before and after it is measured."""
    clouds = judging.entries(folder, judging.Settings(programs, epochs, folds, seed))
    show(experience.experiment(clouds, folds, seed, epochs))


@click.command()
@_programs
@_epochs
@_folds
@_seed
@_replayed
@_folder
def seconds(programs: int | None, epochs: int | None, folds: int, seed: int, results: Path, folder: Path) -> None:
    """How far off the seconds are that Tiramisu's network tells of tasks that it has not seen; `page` shows it."""
    clouds = judging.entries(folder, judging.Settings(programs, epochs, folds, seed))
    table = told.experiment(clouds, folds, seed, epochs)
    keep(results, "Seconds of tasks that were not seen", table)
    show(table)


@click.command()
@click.option("--models", type=click.IntRange(min=1), default=10, show_default=True, help="Drawn of the clouds.")
@_seed
@_replayed
@_folder
def families(models: int, seed: int, results: Path, folder: Path) -> None:
    """Whether a forest a family, and trials for siblings, save trials; `page` shows it."""
    table = siblings.experiment(list(_read(folder, Kind.CLOUD).values()), models, seed)
    keep(results, "FamilySeer's families, replayed", table)
    show(table)


@click.command()
@click.option("--models", type=click.IntRange(min=1), default=25, show_default=True, help="Drawn of the clouds.")
@_seed
@_replayed
@_folder
def schedulers(models: int, seed: int, results: Path, folder: Path) -> None:
    """Which scheduler lowers the latency of models soonest; `page` shows it."""
    table = handing.experiment([Cloud.of(cloud) for cloud in _read(folder, Kind.CLOUD).values()], models, seed)
    keep(results, "Schedulers, replayed", table)
    show(table)


@click.command()
@click.option("--epochs", type=click.IntRange(min=1), default=across.EPOCHS, show_default=True)
@_seed
@_replayed
@_folder
def values(epochs: int, seed: int, results: Path, folder: Path) -> None:
    """Whether values learnt from other grids pick a better program than the draft does; `page` shows it."""
    table = across.experiment(_read(folder, Kind.GRID), seed, epochs)
    keep(results, "Value learning, a task left out", table)
    show(table)


@click.command()
@click.option("--seeds", type=click.IntRange(min=1), default=5, show_default=True)
@_replayed
@_folder
def explorers(seeds: int, results: Path, folder: Path) -> None:
    """Which explorer finds what a model likes, at equal calls of it; `page` shows it."""
    table = exploring.experiment(_read(folder, Kind.GRID), seeds)
    keep(results, "Explorers, at equal calls of the model", table)
    show(table)


@click.command()
@click.option("--seeds", type=click.IntRange(min=1), default=10, show_default=True)
@_replayed
@_folder
def transfer(seeds: int, results: Path, folder: Path) -> None:
    """Whether AutoTVM's base model of other tasks saves trials; `page` shows it."""
    table = transferred.experiment(_read(folder, Kind.GRID), list(_read(folder, Kind.CLOUD).values()), seeds)
    keep(results, "AutoTVM's base model of other tasks", table)
    show(table)


def _read(folder: Path, kind: Kind) -> dict[str, Table]:
    return {name: read(path, features=True) for name, path in tables_in(folder, kind).items()}
