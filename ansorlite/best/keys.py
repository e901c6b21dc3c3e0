"""By which things of a task are kept."""

from __future__ import annotations

from typing import TypeAlias

from ansorlite.cache import disk as caches
from ansorlite.sketch.candidate import Candidate
from ansorlite.task import Task

#: A task's key and names: a trace is of a task under its own names, while the key is that of all equal tasks.
Identity: TypeAlias = tuple[str, tuple[tuple[str, ...], ...]]


def identity(task: Task) -> Identity:
    """What equal tasks of the same names have in common."""
    return task.key, task.dag.names


def default_key(task: Task) -> str:
    """Of its default program in the cache."""
    return caches.key("default", *identity(task), task.target)


def turns_key(task: Task) -> str:
    """Of what was measured of it, but could not be written to a database."""
    return caches.key("turns", *identity(task), task.target)


def object_key(task: Task, candidate: Candidate) -> str:
    """Of a program's object code."""
    return caches.key("object", *identity(task), task.target, candidate)
