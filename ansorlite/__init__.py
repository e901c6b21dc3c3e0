"""A template-free auto-scheduler for tensor programs.

    import ansorlite as al
    from ansorlite import te

Describe a computation with :mod:`ansorlite.te`, or load a model with :func:`from_onnx`; :func:`tune` it, :func:`compile` it,
call it.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from ansorlite.api import compile, from_onnx, tune
    from ansorlite.errors import AnsorliteError
    from ansorlite.export.load import LoadedModel, load
    from ansorlite.graph.executable import Executable
    from ansorlite.graph.model import Model
    from ansorlite.records.database import Database
    from ansorlite.runtime.kernel import Kernel
    from ansorlite.target import Target
    from ansorlite.task import Task
    from ansorlite.task_scheduler.objectives.goal import Goal
    from ansorlite.tuner.result import TuneResult

__version__ = "0.1.0"

#: Public name -> the module that has it. A module is imported when its name is first used: nobody who only compiles a
#: kernel waits for the libraries of the ONNX front end and of the cost model.
_HOMES: Final[Mapping[str, str]] = {
    "AnsorliteError": "ansorlite.errors",
    "Database": "ansorlite.records.database",
    "Executable": "ansorlite.graph.executable",
    "Goal": "ansorlite.task_scheduler.objectives.goal",
    "Kernel": "ansorlite.runtime.kernel",
    "LoadedModel": "ansorlite.export.load",
    "Model": "ansorlite.graph.model",
    "Target": "ansorlite.target",
    "Task": "ansorlite.task",
    "TuneResult": "ansorlite.tuner.result",
    "compile": "ansorlite.api",
    "from_onnx": "ansorlite.api",
    "load": "ansorlite.export.load",
    "tune": "ansorlite.api",
}

__all__ = [
    "AnsorliteError",
    "Database",
    "Executable",
    "Goal",
    "Kernel",
    "LoadedModel",
    "Model",
    "Target",
    "Task",
    "TuneResult",
    "compile",
    "from_onnx",
    "load",
    "tune",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted((*globals(), *_HOMES))
