"""``ansorlite tasks``"""

from __future__ import annotations

import click
from rich.table import Table

from ansorlite.cli import options
from ansorlite.cli.source import load
from ansorlite.graph.hybrid import HostStep, HybridModel
from ansorlite.report.screen import screen
from ansorlite.task import Task
from ansorlite.tuner.result import label
from ansorlite.tuner.workload import parts_of, tasks_of


@click.command("tasks", cls=options.IntListCommand)
@options.source
@options.target
@options.as_json
def command(
    source: str,
    given: options.Given,
    target: str,
    as_json: bool,
) -> None:
    """List the tasks that SOURCE consists of: what is tuned, and how often a run uses it.

    \b
    ansorlite tasks resnet50.onnx
    """
    workload = load(source, given, target)
    fallbacks: tuple[HostStep, ...] = workload.fallbacks if isinstance(workload, HybridModel) else ()
    # A model may run in Python altogether.
    has_tasks = isinstance(workload, Task) or bool(workload.tasks)
    tasks = [(task, sum(uses)) for task, uses in tasks_of(parts_of(workload))] if has_tasks else []
    if as_json:
        entries = [{"name": label(t), "task": t.key, "weight": weight, "flops": t.dag.flops} for t, weight in tasks]
        hosted = [{"operator": step.operator, "node": step.title, "reason": step.reason} for step in fallbacks]
        options.print_json({"tasks": entries, "fallbacks": hosted})
        return
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("#", justify="right")
    table.add_column("task", no_wrap=True, overflow="ellipsis")
    table.add_column("uses", justify="right")
    table.add_column("Mflop", justify="right")
    for number, (task, weight) in enumerate(tasks, 1):
        table.add_row(str(number), label(task), str(weight), f"{task.dag.flops / 1e6:.2f}")
    printed = screen()
    printed.print(table)
    called = [step for step in fallbacks if step.bodies]
    rest = [step for step in fallbacks if not step.bodies]
    for steps, what in (
        (called, "called from Python, what they run compiled"),
        (rest, "run in Python, as they are no tensor expressions here"),
    ):
        if steps:
            printed.print(f"\n{what} ({len(steps)}):")
        for step in steps:
            printed.print(f"  {step.title}: {step.reason}")
