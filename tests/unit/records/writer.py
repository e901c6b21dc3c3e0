"""A process that adds records as fast as it can: ``python -m tests.unit.records.writer DATABASE SEED COUNT``.

Prints the seed and number of each record after it has been added.
"""

from __future__ import annotations

import sys

from ansorlite.records import Database
from tests.unit.records.samples import measurement, task


def main() -> None:
    path, seed, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    with Database(path) as database:
        for number in range(count):
            database.add(task(), measurement(seed, number))
            print(seed, number, flush=True)


if __name__ == "__main__":
    main()
