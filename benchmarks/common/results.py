"""A file of JSON lines that every run adds rows to, so that a run that is stopped goes on from there."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, replace
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

from ansorlite.runtime.peaks import Peaks
from benchmarks.common.machine import Machine

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Row = TypeVar("Row", bound="DataclassInstance")
#: By name of a row's class: the row of what JSON made of its fields.
Readers: TypeAlias = Mapping[str, Callable[[dict[str, Any]], Row]]


class ResultsFile(Generic[Row]):
    """The rows of a file; of a file that is not there, none yet. Rows are dataclasses, machines among them.

    Args:
        path: ``None`` keeps them in memory only.
        readers: of the rows that are not machines.

    Raises:
        ValueError: the file's rows are not of this version.
    """

    def __init__(self, path: Path | None, readers: Readers[Row]) -> None:
        self._path = path
        try:
            self.rows: list[Row | Machine] = list(_read(path, readers)) if path is not None and path.exists() else []
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{path} does not hold rows of this version of the benchmark; move it away") from error

    def add(self, row: Row | Machine) -> None:
        """Keep a row; it is in the file when this returns."""
        self.rows.append(row)
        if self._path is not None:
            with self._path.open("a") as file:
                file.write(json.dumps({"kind": type(row).__name__, **asdict(row)}) + "\n")

    def machine(self, threads: int) -> Machine:
        """The latest run's on so many threads, which has added its row; with the best peaks of all runs there."""
        rows = [row for row in self.rows if isinstance(row, Machine) and row.threads == threads]
        last = rows[-1]
        alike = [row for row in rows if (row.cpu, row.target) == (last.cpu, last.target)]
        one, all_ = (reduce(Peaks.best, peaks) for peaks in ([row.one for row in alike], [row.all for row in alike]))
        return replace(last, one=one, all=all_)


def _read(path: Path, readers: Readers[Row]) -> Iterator[Row | Machine]:
    for line in path.read_text().splitlines():
        fields = json.loads(line)
        kind = fields.pop("kind")
        yield Machine.of(fields) if kind == Machine.__name__ else readers[kind](fields)
