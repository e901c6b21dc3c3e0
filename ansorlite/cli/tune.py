"""``ansorlite tune``"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ansorlite.api import makers
from ansorlite.api.tune import tune
from ansorlite.cli import goals, options, parts
from ansorlite.cli.main import INTERRUPTED
from ansorlite.cli.source import load
from ansorlite.report.models import models, objective_value, verdict
from ansorlite.report.screen import screen
from ansorlite.report.tables import outcome, summary
from ansorlite.tuner.presets import DEFAULT, PRESETS
from ansorlite.tuner.result import TaskResult, TuneResult


@click.command("tune", cls=options.IntListCommand)
@options.sources
@goals.options
@click.option("--trials", type=click.IntRange(min=1), help="Measurements in all, earlier ones too. [default: 64 for each task]")
@click.option("--time-limit", type=click.FloatRange(min=0, min_open=True), metavar="SECONDS", help="Stop after so many seconds.")
@options.database(required=True)
@options.target
@options.space
@click.option("--preset", type=click.Choice(list(PRESETS)), default=DEFAULT, show_default=True, help="Which system to tune as.")
@parts.option("--strategy", makers.STRATEGY, None, "How to search.")
@parts.option("--scheduler", makers.SCHEDULER, None, "Which task is next.")
@parts.option("--cost-model", makers.COST_MODEL, None, "What predicts.")
@parts.option("--measurer", makers.MEASURER, "local", "What times programs.")
@options.seed
@click.option("--progress/--no-progress", default=None, help="Show progress on stderr. [default: on a terminal only]")
@options.as_json
def command(
    sources: tuple[str, ...],
    given: options.Given,
    objective: str,
    bounds: tuple[str, ...],
    references: tuple[str, ...],
    weights: tuple[str, ...],
    stop_below: float,
    trials: int | None,
    time_limit: float | None,
    database: Path,
    target: str,
    space: str | None,
    preset: str,
    strategy: str | None,
    scheduler: str | None,
    cost_model: str | None,
    measurer: str,
    seed: int,
    progress: bool | None,
    as_json: bool,
) -> None:
    """Find fast programs for each SOURCE and keep them in a database.

    A SOURCE is an ONNX model, or a function of ints in a Python file that returns [inputs..., outputs...]. The same command
    again goes on where the last one stopped. Ctrl-C stops at once and keeps everything that was measured. Where several are
    given, a shape or size may be for one of them: --shape a.onnx:data=1,3,224,224.

    \b
    ansorlite tune resnet50.onnx --trials 2000 --database tuning.db
    ansorlite tune kernels.py:matmul --args 512 512 512 --trials 64
    ansorlite tune a.onnx b.onnx --objective bounds --bound a.onnx=5ms --stop-below 0.1%
    """
    wanted = goals.goals(sources, bounds, references, weights)
    workload = [load(source, given.of(source, sources), target) for source in sources]
    result = tune(
        workload,
        trials=trials,
        time_limit=time_limit,
        database=database,
        preset=preset,
        strategy=strategy,
        scheduler=scheduler,
        cost_model=cost_model,
        measurer=measurer,
        seed=seed,
        progress=progress,
        space=space,
        objective=objective,
        goals=wanted,
        stop_below=stop_below,
    )
    if as_json:
        entries = zip(sources, result.naive_model_latencies, result.model_latencies, strict=True)
        options.print_json(
            {
                **_json(result, database),
                "objective": {"name": objective, "value": objective_value(objective, wanted, result)},
                "models": [{"name": name, "naive_latency": naive, "best_latency": best} for name, naive, best in entries],
            }
        )
    else:
        printed = screen()
        printed.print(outcome(result))
        if len(sources) > 1:
            printed.print(models(sources, wanted, objective, result))
        printed.print(f"{summary(result)}\n{verdict(objective, wanted, result)}\nkept in {database}", soft_wrap=True)
    if result.interrupted:
        raise click.exceptions.Exit(INTERRUPTED)


def _json(result: TuneResult, database: Path) -> dict[str, Any]:
    return {
        "best_latency": result.best_latency,
        "naive_latency": result.naive_latency,
        "trials": result.trials,
        "restored": result.restored,
        "seconds": result.seconds,
        "phases": dict(result.phases),
        "interrupted": result.interrupted,
        "stopped": result.stopped.name.lower(),
        "expected_gain": result.expected_gain,
        "database": str(database),
        "tasks": [_task_json(task) for task in result.tasks],
    }


def _task_json(task: TaskResult) -> dict[str, Any]:
    best = task.best and task.best.trace
    return {
        "name": task.name,
        "task": task.task.key,
        "weight": task.weight,
        "naive_latency": task.naive,
        "best_latency": task.best_latency,
        "candidate": best,
        "trials": task.trials,
        "errors": task.errors,
    }
