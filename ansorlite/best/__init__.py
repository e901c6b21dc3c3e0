"""The best program known of a task: from a database, else a default. What was compiled before is taken from a cache."""

from ansorlite.best.choice import Programs

__all__ = ["Programs"]
