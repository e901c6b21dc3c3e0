"""A template-free auto-scheduler for tensor programs.

    import ansorlite as al
    from ansorlite import te

Describe a computation with :mod:`ansorlite.te`, or load a model with :func:`from_onnx`; :func:`tune` it, :func:`compile` it,
call it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from ansorlite import lazy
from ansorlite.version import __version__

if TYPE_CHECKING:
    from ansorlite.api.compile import compile
    from ansorlite.api.from_onnx import from_onnx
    from ansorlite.api.replay import replay
    from ansorlite.api.tune import tune
    from ansorlite.errors import AnsorliteError
    from ansorlite.export.load import LoadedModel, load
    from ansorlite.graph.executable import Executable
    from ansorlite.graph.model import Model
    from ansorlite.module.external import External, register
    from ansorlite.module.module import Module
    from ansorlite.records.database import Database
    from ansorlite.runtime.kernel import Kernel
    from ansorlite.schedule.schedule import Schedule
    from ansorlite.target import Target
    from ansorlite.task import Task
    from ansorlite.task_scheduler.objectives.goal import Goal
    from ansorlite.tuner.result import TuneResult

#: Public name -> the module that has it. A module is imported when its name is first used: nobody who only compiles a
#: kernel waits for the libraries of the ONNX front end and of the cost model.
_HOMES: Final[Mapping[str, str]] = {
    "AnsorliteError": "ansorlite.errors",
    "Database": "ansorlite.records.database",
    "Executable": "ansorlite.graph.executable",
    "External": "ansorlite.module.external",
    "Goal": "ansorlite.task_scheduler.objectives.goal",
    "Kernel": "ansorlite.runtime.kernel",
    "LoadedModel": "ansorlite.export.load",
    "Model": "ansorlite.graph.model",
    "Module": "ansorlite.module.module",
    "Schedule": "ansorlite.schedule.schedule",
    "Target": "ansorlite.target",
    "Task": "ansorlite.task",
    "TuneResult": "ansorlite.tuner.result",
    "compile": "ansorlite.api.compile",
    "from_onnx": "ansorlite.api.from_onnx",
    "load": "ansorlite.export.load",
    "register": "ansorlite.module.external",
    "replay": "ansorlite.api.replay",
    "tune": "ansorlite.api.tune",
}

__all__ = [
    "AnsorliteError",
    "Database",
    "Executable",
    "External",
    "Goal",
    "Kernel",
    "LoadedModel",
    "Model",
    "Module",
    "Schedule",
    "Target",
    "Task",
    "TuneResult",
    "__version__",
    "compile",
    "from_onnx",
    "load",
    "register",
    "replay",
    "tune",
]


__getattr__, __dir__ = lazy.attributes(__name__, _HOMES)
