"""Train the experience that the package ships, and say what it is worth: ``python -m benchmarks.experience a.db b.db [--write]``.

The tasks of the databases are dealt into folds; the programs of each are ranked by the draft, and by the draft with what was
learnt from the other folds. The databases to learn from are those of ``benchmarks.kernels`` and of tuned models.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

import click
import numpy as np
from rich.console import Console
from rich.table import Table

from ansorlite.cost_model import Group, Prior, peak_score, rank_correlation
from ansorlite.cost_model.draft import Draft
from ansorlite.cost_model.experience import FILE, Experienced, learn, to_json
from ansorlite.features import extract
from ansorlite.records.database import Database
from ansorlite.sketch.derivation import derive
from ansorlite.target import Target, host
from ansorlite.task import Task
from ansorlite.te.serialize import load

_FOLDS: Final = 6
#: With fewer programs than this, how a task's are ranked says nothing.
_FEWEST: Final = 8
_PLACES: Final = (1, 4, 16)


def recorded(path: Path, target: Target) -> Iterable[Group]:
    """What a database holds of ``target``, as far as today's sketches have it; one group a sketch."""
    with Database(path, create=False) as database:
        for entry in database.tasks():
            records = database.records(entry.key, target.key)
            if not records:
                continue
            dag = load(entry.dag)
            for sketch in derive(Task([*dag.inputs, *dag.outputs], target)):
                of_it = [record.measurement for record in records if record.measurement.candidate.sketch == sketch.signature]
                if of_it:
                    rows = np.array([measurement.candidate.row for measurement in of_it])
                    latencies = [np.inf if measurement.latency is None else measurement.latency for measurement in of_it]
                    yield Group(extract(sketch, rows), np.array(latencies), entry.key)


def ranking(groups: Sequence[Group], prior: Prior) -> list[tuple[float, ...]]:
    """For each task: the rank correlation, and the share of the best speed that the first of the ranking reach."""
    found = []
    for task in dict.fromkeys(group.task for group in groups):
        of_it = [group for group in groups if group.task == task]
        scores = np.concatenate([prior(group.features) for group in of_it])
        latencies = np.concatenate([group.latencies for group in of_it])
        if np.isfinite(latencies).sum() >= _FEWEST:
            found.append((rank_correlation(scores, latencies), *(peak_score(scores, latencies, k) for k in _PLACES)))
    return found


def cross_validated(groups: Sequence[Group], draft: Prior) -> list[tuple[float, ...]]:
    """:func:`ranking` of every task by what was learnt without its fold."""
    tasks = list(dict.fromkeys(group.task for group in groups))
    fold = dict(zip(np.random.default_rng(0).permutation(np.array(tasks)), np.arange(len(tasks)) % _FOLDS, strict=True))
    found = []
    for number in range(_FOLDS):
        forest = learn([group for group in groups if fold[group.task] != number], draft)
        found += ranking([group for group in groups if fold[group.task] == number], Experienced(draft, forest))
    return found


def _means(found: Sequence[tuple[float, ...]]) -> list[float]:
    table = np.array(found)
    return [float(np.nanmean(table[:, 0])), *np.exp(np.log(table[:, 1:]).mean(axis=0)).tolist()]


@click.command()
@click.argument("databases", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--write", is_flag=True, help="Train on all of it, and put the result where the package ships it.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def main(databases: tuple[Path, ...], write: bool, as_json: bool) -> None:
    """Learn from recorded measurements what the draft gets wrong."""
    target = host()
    draft = Draft(target)
    groups = [group for path in databases for group in recorded(path, target)]
    tasks = {group.task for group in groups}
    if len(tasks) < _FOLDS:
        raise click.ClickException(f"the databases hold {len(tasks)} tasks of {target.key}; at least {_FOLDS} are needed")
    by_draft, by_both = _means(ranking(groups, draft)), _means(cross_validated(groups, draft))
    if write:
        path = Path(__file__).parents[1] / "ansorlite" / "cost_model" / FILE
        path.write_text(to_json(learn(groups, draft)))
    columns = ["rank correlation", *(f"best of {k}" for k in _PLACES)]
    if as_json:
        rows = {"draft": dict(zip(columns, by_draft, strict=True)), "experienced": dict(zip(columns, by_both, strict=True))}
        click.echo(json.dumps({"tasks": len(tasks), "programs": sum(len(group.latencies) for group in groups), **rows}))
        return
    table = Table(title=f"{sum(len(group.latencies) for group in groups)} programs of {len(tasks)} tasks, each task held out")
    for title in ("", *columns):
        table.add_column(title, justify="right")
    table.add_row("draft", *(f"{value:.2f}" for value in by_draft))
    table.add_row("with experience", *(f"{value:.2f}" for value in by_both))
    Console().print(table)


if __name__ == "__main__":
    main()
