"""The tuning database: tasks, and what became of every candidate that was measured."""

from ansorlite.records.database import Database, TaskEntry
from ansorlite.records.jsonlines import export_lines, import_lines, measurement_json
from ansorlite.records.measurement import Measurement, Outcome, Record, Seconds

__all__ = [
    "Database",
    "Measurement",
    "Outcome",
    "Record",
    "Seconds",
    "TaskEntry",
    "export_lines",
    "import_lines",
    "measurement_json",
]
