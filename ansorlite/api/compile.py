"""The verb :func:`compile`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, overload

from ansorlite import graph as graphs
from ansorlite import visible
from ansorlite.api.checks import check_integer
from ansorlite.api.database import Given, opened
from ansorlite.api.space import Space, space_of
from ansorlite.best import Programs
from ansorlite.errors import ArgumentError
from ansorlite.graph.executable import Executable, compile_model
from ansorlite.graph.model import Model
from ansorlite.module.module import Module
from ansorlite.records.database import Database
from ansorlite.runtime.kernel import Kernel
from ansorlite.task import Task

if TYPE_CHECKING:
    from ansorlite.graph.hybrid import AnyModel, HybridExecutable, HybridModel
    from ansorlite.graph.open_executable import OpenExecutable
    from ansorlite.graph.open_model import OpenModel
    from ansorlite.graph.shared import SharedWeights

_MakePrograms: TypeAlias = Callable[[Database | None], Programs]

_log = visible.logger(__name__)


@overload
def compile(workload: Task, database: Given = None, *, space: Space | None = None) -> Kernel: ...
@overload
def compile(workload: Model, database: Given = None, *, space: Space | None = None) -> Executable: ...
@overload
def compile(workload: Module, database: Given = None, *, space: Space | None = None) -> Module: ...
@overload
def compile(workload: HybridModel, database: Given = None, *, space: Space | None = None) -> HybridExecutable: ...
@overload
def compile(
    workload: OpenModel, database: Given = None, *, space: Space | None = None, keep: int | None = None
) -> OpenExecutable: ...
@overload
def compile(
    workload: AnyModel | OpenModel, database: Given = None, *, space: Space | None = None
) -> Executable | HybridExecutable | OpenExecutable: ...
def compile(
    workload: Task | AnyModel | OpenModel | Module,
    database: Given = None,
    *,
    space: Space | None = None,
    keep: int | None = None,
) -> Kernel | Executable | HybridExecutable | OpenExecutable | Module:
    """Make a callable of the best programs known. Programs of an open model are made when it is called; of a module, those tasks
    are compiled that are not yet.

    Args:
        database: of measurements; without one, or where it knows no program of a task, a good default is taken, at once.
        space: as for :func:`tune`: only programs of it are taken, by default those of the whole database.
        keep: of an open model, how many programs to keep; by default 16. What is the same of their weights is kept once.

    Raises:
        ArgumentError: what is neither a task nor a model; ``keep`` is less than 1, or the model is not open; there is no such
            space.
        RecordsError: the database cannot be used.
    """
    # Those first that need no more imports.
    if not isinstance(workload, Task | Model | Module) and not isinstance(workload, graphs.HybridModel | graphs.OpenModel):
        raise ArgumentError(
            f"a {type(workload).__name__} is neither a task nor a model, which are compiled one by one; "
            "make one with al.Task([...]) or al.from_onnx(...)"
        )
    if keep is not None:
        check_integer("keep", keep, least=1)
        if not isinstance(workload, graphs.OpenModel):
            raise ArgumentError(f"keep is {keep}, but this has no open dimensions, so there is one program only; leave it out")
    own = space_of(space)
    if isinstance(database, str | os.PathLike) and not Path(database).exists():
        _log.warning("there is no tuning database at %s: compiling default programs", os.fspath(database))
        database = None

    def programs(records: Database | None) -> Programs:
        return Programs(records, own)

    if isinstance(workload, Task):
        with _opened(database, programs) as known:
            return known.kernel(workload)
    if isinstance(workload, Module):
        with _opened(database, programs) as known:
            known.prepare([task for task, _ in workload.tasks])
            return workload.compiled(known.kernel)
    if not isinstance(workload, Model) and isinstance(workload, graphs.OpenModel):
        # Opened anew for each program: other threads may make them, when the caller has closed it.
        place = database.path if isinstance(database, Database) and database.path.exists() else database
        keeping = {} if keep is None else {"keep": keep}
        return graphs.OpenExecutable(workload, lambda model, shared: _compiled_model(model, place, programs, shared), **keeping)
    return _compiled_model(workload, database, programs)


def _compiled_model(
    model: AnyModel, database: Given, programs: _MakePrograms, shared: SharedWeights | None = None
) -> Executable | HybridExecutable:
    with _opened(database, programs) as known:
        known.prepare([task for task, _ in model.tasks])
        if isinstance(model, Model):
            return compile_model(model, known.kernel, shared)
        return graphs.compile_any(model, known.kernel, shared)


@contextmanager
def _opened(database: Given, programs: _MakePrograms) -> Iterator[Programs]:
    with nullcontext() if database is None else opened(database, create=False) as records, programs(records) as known:
        yield known
        known.warn()
