"""Databases of tuning records as entries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from ansorlite import visible
from ansorlite.dataset.entry import Entry, parts_of
from ansorlite.errors import AnsorliteError
from ansorlite.records import Database, Measurement
from ansorlite.sketch.candidate import Candidate
from ansorlite.spaces.derivation import derive
from ansorlite.target import Target
from ansorlite.task import Task
from ansorlite.te.serialize import load

_log = visible.logger(__name__)


def entries_of(database: Database, targets: Sequence[Target], origin: str = "") -> Iterator[Entry]:
    """What the database knows of each task, on each of ``targets`` and each machine that measured there.

    Records of other targets, tasks that cannot be read, and tasks of which no program ran are passed over, which the log tells.
    """
    by_key = {target.key: target for target in targets}
    for known in database.tasks():
        try:
            dag = load(known.dag)
        except AnsorliteError as error:
            _log.warning("the task %s is passed over: %s", known.key, error)
            continue
        for key in database.targets(known.key):
            if key not in by_key:
                _log.warning("the records of %s on %r are passed over; name that target to have them", known.key, key)
                continue
            task = Task(dag, by_key[key])
            machines: dict[str, list[Measurement]] = {}
            for record in database.records_of(task):
                machines.setdefault(record.measurement.machine, []).append(record.measurement)
            for machine, measured in machines.items():
                entry = _entry(task, f"{key} {machine}".strip(), origin, _latencies(measured))
                if entry is not None:
                    yield entry


def _latencies(measured: Sequence[Measurement]) -> Mapping[str, tuple[Candidate, float]]:
    """Each program once, with its least seconds; infinite if it failed every time."""
    found: dict[str, tuple[Candidate, float]] = {}
    for each in measured:
        if each.outcome.timed and each.latency is None:
            continue
        key = each.key or each.candidate.trace
        candidate, best = found.get(key, (each.candidate, np.inf))
        found[key] = candidate, min(best, np.inf if each.latency is None else each.latency)
    return found


def _entry(task: Task, device: str, origin: str, programs: Mapping[str, tuple[Candidate, float]]) -> Entry | None:
    latencies = np.array([seconds for _, seconds in programs.values()], np.float64)
    if not np.isfinite(latencies).any():
        _log.warning("the task %s is passed over: none of its programs ran on %s", task.key, device)
        return None
    parts = parts_of(task, derive(task), [candidate for candidate, _ in programs.values()], latencies)
    lost = len(latencies) - sum(len(part.traces) for part in parts)
    if lost:
        _log.warning("%d records of %s make no program of it today, and are left out", lost, task.key)
    return Entry(task, device, origin, parts) if parts else None
