"""The verb :func:`compile`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias, overload

from ansorlite import graph as graphs
from ansorlite.api.checks import check_integer
from ansorlite.api.database import GivenToRead, given_to_read, opened_to_read
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

_MakePrograms: TypeAlias = Callable[[Sequence[Database]], Programs]


@overload
def compile(workload: Task, database: GivenToRead = None, *, space: Space | None = None) -> Kernel: ...
@overload
def compile(workload: Model, database: GivenToRead = None, *, space: Space | None = None) -> Executable: ...
@overload
def compile(workload: Module, database: GivenToRead = None, *, space: Space | None = None) -> Module: ...
@overload
def compile(workload: HybridModel, database: GivenToRead = None, *, space: Space | None = None) -> HybridExecutable: ...
@overload
def compile(
    workload: OpenModel, database: GivenToRead = None, *, space: Space | None = None, keep: int | None = None
) -> OpenExecutable: ...
@overload
def compile(
    workload: AnyModel | OpenModel, database: GivenToRead = None, *, space: Space | None = None
) -> Executable | HybridExecutable | OpenExecutable: ...
def compile(
    workload: Task | AnyModel | OpenModel | Module,
    database: GivenToRead = None,
    *,
    space: Space | None = None,
    keep: int | None = None,
) -> Kernel | Executable | HybridExecutable | OpenExecutable | Module:
    """Make a callable of the best programs known. Programs of an open model are made when it is called; of a module, those tasks
    are compiled that are not yet.

    Args:
        database: of measurements, or a pack (``ansorlite pack``), or several of both in a list; without one, or where they know
            no program of a task, a good default is taken, at once. What is measured by the way is written to the first.
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
    databases = given_to_read(database)

    def programs(records: Sequence[Database]) -> Programs:
        return Programs(records, own)

    if isinstance(workload, Task):
        with opened_programs(databases, programs) as known:
            return known.kernel(workload)
    if isinstance(workload, Module):
        with opened_programs(databases, programs) as known:
            known.prepare([task for task, _ in workload.tasks])
            return workload.compiled(known.kernel)
    if not isinstance(workload, Model) and isinstance(workload, graphs.OpenModel):
        # Opened anew for each program: other threads may make them, when the caller has closed it.
        places = [one.path if isinstance(one, Database) and one.path.exists() else one for one in databases]
        keeping = {} if keep is None else {"keep": keep}
        return graphs.OpenExecutable(workload, lambda model, shared: _compiled_model(model, places, programs, shared), **keeping)
    return _compiled_model(workload, databases, programs)


def _compiled_model(
    model: AnyModel,
    databases: Sequence[str | os.PathLike[str] | Database],
    programs: _MakePrograms,
    shared: SharedWeights | None = None,
) -> Executable | HybridExecutable:
    with opened_programs(databases, programs) as known:
        known.prepare([task for task, _ in model.tasks])
        if isinstance(model, Model):
            return compile_model(model, known.kernel, shared)
        return graphs.compile_any(model, known.kernel, shared)


@contextmanager
def opened_programs(databases: Sequence[str | os.PathLike[str] | Database], programs: _MakePrograms) -> Iterator[Programs]:
    with opened_to_read(databases) as records, programs(records) as known:
        yield known
        known.warn()
