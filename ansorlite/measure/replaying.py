"""The command that shows a program which does not compile: one that does its measurement again."""

from __future__ import annotations

import shlex
import time
from pathlib import Path

from ansorlite.records.database import Database
from ansorlite.records.measurement import Measurement, Outcome, Record
from ansorlite.sketch.candidate import Candidate
from ansorlite.target import resolve
from ansorlite.task import Task
from ansorlite.temporary import make_folder
from ansorlite.version import __version__


def command(task: Task, candidate: Candidate, error: str, known: Record | None) -> str:
    """The command, for a shell. For a program that no database has, one is made.

    Args:
        error: why it does not compile.
        known: its record, if there is one.
    """
    if known is None or not Path(known.database).exists():
        path = str(make_folder("ansorlite-program-") / "program.db")
        measurement = Measurement(candidate, Outcome.COMPILE_ERROR, error=error, version=__version__, when=time.time())
        with Database(path) as database:
            known = Record(database.add(task, measurement), task.key, task.target.key, measurement, path)
    words = list(known.command)
    if task.target.threads != resolve("llvm").threads:
        words += ["--threads", str(task.target.threads)]
    return shlex.join(words)
