"""Prints what a process of its own derives: the signatures of the sketches of a task read from stdin, and its default."""

from __future__ import annotations

import json
import sys

from ansorlite.search.default import default_candidate
from ansorlite.spaces.derivation import derive
from ansorlite.task import Task
from ansorlite.te.serialize import load
from tests.targets import WIDE


def main() -> None:
    task = Task(load(json.load(sys.stdin)), WIDE)
    sketches = derive(task)
    default = default_candidate(task, sketches)
    json.dump({"signatures": [s.signature for s in sketches], "default": default.trace}, sys.stdout)


if __name__ == "__main__":
    main()
