"""Do a recorded measurement again, and say what happens: ``python -m ansorlite.measure.replay DATABASE ID``.

The candidate is built and run in supervised workers, as it was in tuning: a crash or a hang is reported, not suffered.
``--here`` does it in this very process instead, for a debugger or a profiler.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import replace
from pathlib import Path

import click

from ansorlite import platforms
from ansorlite.errors import AnsorliteError
from ansorlite.loops import printer
from ansorlite.measure import native
from ansorlite.measure.bench import Bench
from ansorlite.measure.measurer import Measurer
from ansorlite.measure.protocol import Prepare, Run
from ansorlite.measure.settings import MeasureSettings
from ansorlite.measure.verdict import run_verdict
from ansorlite.records.database import Database
from ansorlite.records.jsonlines import measurement_json
from ansorlite.records.measurement import Measurement, Outcome, Record, Seconds
from ansorlite.sketch.program import lower
from ansorlite.target import recorded
from ansorlite.task import Task
from ansorlite.te.serialize import load
from ansorlite.temporary import TemporaryFolder
from ansorlite.version import __version__
from ansorlite.visible import visible


def recorded_task(database: Database, record: Record, threads: int | None = None) -> Task:
    """The task of ``record``, for the record's own target where this machine can be that.

    Args:
        threads: that its programs run on; by default all.

    Raises:
        RecordsError: the database has no such task, or what it has is not a computation.
        TargetError: the record is of a device that is not here.
    """
    target = recorded(record.target)
    return Task(load(database.task(record.task).dag), target if threads is None else replace(target, threads=threads))


def replay(task: Task, record: Record, settings: MeasureSettings | None = None) -> Measurement:
    """Measure the candidate of ``record`` again, in supervised workers."""
    with Measurer(task.target, replace(settings or MeasureSettings(), builders=1)) as measurer:
        (measurement,) = measurer.measure(task, [record.measurement.candidate])
    return measurement


def replay_here(task: Task, record: Record) -> Measurement:
    """Measure the candidate of ``record`` again in this process. Whatever is wrong with it happens here."""
    settings = MeasureSettings()
    bench = Bench(native, settings, lambda _phase: None)
    with TemporaryFolder() as folder:
        reference, artifact = folder / "reference", folder / "program"
        built = native.build(task, record.measurement.candidate)
        artifact.write_bytes(built.code)
        bench.prepare(task, Prepare(task.key, str(reference)))
        answer = bench.run(task, Run(task.key, str(artifact), str(reference), best=None, rival=None))
    verdict = run_verdict(answer)
    return replace(
        record.measurement,
        outcome=verdict.outcome,
        key=built.key,
        latency=answer.latency,
        checked=verdict.outcome is Outcome.OK,
        error=verdict.error,
        seconds=Seconds(0.0, answer.seconds, answer.check_seconds),
        version=__version__,
        when=time.time(),
    )


@click.command()
@click.argument("database", type=click.Path(dir_okay=False, path_type=Path))
@click.argument("record_id", metavar="ID", type=int)
@click.option("--loops", is_flag=True, help="Print the loops that the program runs.")
@click.option("--here", is_flag=True, help="Run the program in this process, unsupervised: for a debugger.")
@click.option("--threads", type=click.IntRange(min=1), help="Of the target; by default all cores.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout, and nothing else there.")
def main(database: Path, record_id: int, loops: bool, here: bool, threads: int | None, as_json: bool) -> None:
    """Do the measurement with number ID in DATABASE again, and say what happens."""
    try:
        with Database(database, create=False) as records:
            record = records.record(record_id)
            task = recorded_task(records, record, threads)
        now = replay_here(task, record) if here else replay(task, record)
        program = printer.module_text(platforms.finished(lower(task, now.candidate), task.target)) if loops else ""
    except AnsorliteError as error:
        click.echo(visible(f"Error: {error}"), err=True)
        sys.exit(2)
    if as_json:
        again = replace(record, target=task.target.key, measurement=now)
        click.echo(json.dumps({"recorded": measurement_json(record), "now": measurement_json(again)}))
        return
    elsewhere = f"recorded on another machine: {record.target} (this is {task.target.key})"
    others = f"its key is not of these loops: version {record.measurement.version or 'unknown'} may have measured other ones"
    said = [
        elsewhere if task.target.key != record.target else "",
        others if _changed(record.measurement, now) else "",
        f"task:      {record.task}",
        now.candidate.trace,
        program,
        f"recorded:  {_line(record.measurement)}",
        f"now:       {_line(now)}",
        now.error,
    ]
    click.echo(visible("\n".join(filter(None, said))))


def _changed(recorded: Measurement, now: Measurement) -> bool:
    """Whether the program has other loops than the one that was measured: lowering has changed, or a pass over loops."""
    return bool(recorded.key and now.key) and recorded.key != now.key


def _line(measurement: Measurement) -> str:
    latency = "" if measurement.latency is None else f", {measurement.latency:.3e} s"
    reason = measurement.error.partition("\n")[0]
    return f"{measurement.outcome.value}{latency}{reason and f': {reason}'}"


if __name__ == "__main__":
    main()
