"""A model into a shared library: for this machine, or for another one that the model's target names."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from ansorlite.api.compile import compile, opened_programs
from ansorlite.api.database import GivenToRead, given_to_read
from ansorlite.api.space import Space, space_of
from ansorlite.best import Programs
from ansorlite.errors import ArgumentError
from ansorlite.graph.hybrid import AnyModel
from ansorlite.graph.image import image_abroad
from ansorlite.graph.model import Model
from ansorlite.target import obstacle


def export(
    model: AnyModel,
    path: Path,
    database: GivenToRead = None,
    *,
    space: Space | None = None,
    name: str | None = None,
    weights: Literal["inside", "beside"] = "inside",
) -> None:
    """Write ``model`` with the best programs known as a shared library with a C header; see
    :meth:`ansorlite.graph.executable.Executable.export`.

    Where this machine cannot run code for the model's target, nothing is run or timed but what prepares weights, compiled for
    here: the programs are those that boards of the target found best, else the default ones.

    Args:
        database, space: as for :func:`ansorlite.compile`.

    Raises:
        ArgumentError: a model that does not run as native code alone; what else ``Executable.export`` refuses.
        TargetError: no code is made for the target; there is no linker for it, or it fails.
        RecordsError: the database cannot be used.
    """
    if obstacle(model.target) is None:
        return compile(model, database, space=space).export(path, name=name, weights=weights)
    if not isinstance(model, Model):
        raise ArgumentError(f"a part of this model runs in Python, so it cannot be exported for {model.target.key}")
    own = space_of(space)
    with opened_programs(given_to_read(database), lambda records: Programs(records, own)) as known:
        kernels = [known.abroad(task) for task, _ in model.tasks]
    image_abroad(model, kernels).write(path, name, weights)
    return None
