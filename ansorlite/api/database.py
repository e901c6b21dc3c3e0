"""What a verb may be given as its database."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, nullcontext
from typing import TypeAlias

from ansorlite.records.database import Database

#: A path, an open database, or none.
Given: TypeAlias = str | os.PathLike[str] | Database | None


def opened(database: Given, create: bool = True) -> AbstractContextManager[Database]:
    """``database``, opened and closed again, if it is not open already; none is one in memory.

    Args:
        create: as for :class:`Database`: whether it is to be written.

    Raises:
        RecordsError: it cannot be used.
    """
    if isinstance(database, Database):
        return nullcontext(database)
    return Database(":memory:") if database is None else Database(database, create)
