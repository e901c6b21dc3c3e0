"""What a verb may be given as its database."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import TypeAlias

from ansorlite import visible
from ansorlite.errors import RecordsError
from ansorlite.records.database import Database
from ansorlite.records.packs import Pack, is_pack

_log = visible.logger(__name__)

#: A path, or an open database.
_One: TypeAlias = str | os.PathLike[str] | Database

#: One to write to, or none.
Given: TypeAlias = _One | None

#: What is only read: databases and packs, one or several, or none.
GivenToRead: TypeAlias = Given | Sequence[_One]


def opened(database: Given) -> AbstractContextManager[Database]:
    """``database``, opened to be written, and closed again, if it is not open already; none is one in memory.

    Raises:
        RecordsError: it cannot be used.
    """
    if isinstance(database, Database):
        return nullcontext(database)
    if database is not None and isinstance(database, str | os.PathLike) and is_pack(database):
        raise RecordsError(
            f"{os.fspath(database)} is a pack, which is only read; make its programs the first that are tried with "
            f"`ansorlite records tuning.db --import {os.fspath(database)}`, and tune with that database"
        )
    return Database(":memory:") if database is None else Database(database)


def given_to_read(databases: GivenToRead) -> tuple[_One, ...]:
    """Those of ``databases`` that are there; of a path at which there is nothing, a warning is logged.

    Raises:
        RecordsError: of several, one is neither a path nor a database.
    """
    if databases is not None and not isinstance(databases, str | os.PathLike | Database | Iterable):
        raise RecordsError(f"a database is given by the path of its file, not by {databases!r}")
    several = (databases,) if databases is None or isinstance(databases, str | os.PathLike | Database) else tuple(databases)
    found: list[_One] = []
    for one in several:
        if isinstance(one, str | os.PathLike) and not Path(one).exists():
            _log.warning("there is no tuning database at %s: compiling default programs", os.fspath(one))
        elif one is not None:
            found.append(one)
    return tuple(found)


@contextmanager
def opened_to_read(databases: Sequence[_One]) -> Iterator[tuple[Database, ...]]:
    """Databases and packs, opened and closed again, if they are not open already.

    Raises:
        RecordsError: one cannot be used.
    """
    with ExitStack() as stack:
        yield tuple(stack.enter_context(_to_read(one)) for one in databases)


def _to_read(one: _One) -> AbstractContextManager[Database]:
    if isinstance(one, Database):
        return nullcontext(one)
    return Pack(one) if isinstance(one, str | os.PathLike) and is_pack(one) else Database(one, create=False)
