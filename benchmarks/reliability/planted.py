"""Files that somebody else put, or could have put, into the cache are not used, and one warning says so.

What is planted is sound machine code with a valid checksum that computes something else: used, it would show.
"""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

import ansorlite as al
from ansorlite.cache.disk import CACHE_VARIABLE, DiskCache
from ansorlite.programs.packing import unpack
from benchmarks.reliability.results import Attempt, Findings
from benchmarks.reliability.workload import scale

PLANTED: Final = "planted"
#: A user that is not the one who runs this.
_OTHER: Final = 65534


def _link(path: Path) -> None:
    elsewhere = path.parent.parent / "elsewhere"
    path.rename(elsewhere)
    os.chown(elsewhere, _OTHER, -1)
    path.symlink_to(elsewhere)


#: Links are never followed: one is as no file, and nothing needs to be said.
LINK: Final = "a link to another user's file"

#: Done to the planted file, which lies in the user's own folder.
WAYS: Final[Mapping[str, Callable[[Path], None]]] = {
    "a file that its group may write": lambda path: path.chmod(0o620),
    "a file that anybody may write": lambda path: path.chmod(0o602),
    "another user's file": lambda path: os.chown(path, _OTHER, -1),
    "a folder that its group may write": lambda path: path.parent.chmod(0o770),
    "a folder that anybody may write": lambda path: path.parent.chmod(0o707),
    "another user's folder": lambda path: os.chown(path.parent, _OTHER, -1),
    LINK: _link,
}


def attempt_with(way: str | None = None) -> Attempt:
    """An attempt in this way; by default its number says in which."""
    return partial(_attempt, way=way)


def _attempt(number: int, _: Path, way: str | None) -> Findings:
    name = way or list(WAYS)[number % len(WAYS)]
    folder = Path(os.environ[CACHE_VARIABLE])
    os.umask(0o077)
    path = _plant(folder)
    if not (control := _probe())["used"]:
        return Findings({}, (f"{name}: the planted file would not show if it were used: {control}",))
    try:
        WAYS[name](path)
    except PermissionError as error:
        return Findings({}, (f"{name}: cannot be tried ({error}); run this as root",))
    found = _probe()
    failures = [f"{name}: it was used"] if found["used"] else []
    told = found["told"]
    if len(told) > 1 or (not told and name != LINK):
        failures.append(f"{name}: {len(told)} warnings instead of one: {told}")
    return Findings({PLANTED: 1}, tuple(failures))


def _plant(folder: Path) -> Path:
    """A cache in which the machine code of one kernel is that of another one."""
    keys = []
    for factor in _FACTORS:
        before = set(folder.iterdir()) if folder.exists() else set()
        al.compile(scale(factor))
        keys.append(next(path.name for path in folder.iterdir() if path not in before and _is_machine_code(path)))
    other = DiskCache(folder).get(keys[1])
    assert other is not None
    DiskCache(folder).put(keys[0], other)
    return folder / keys[0]


#: Of the kernel that is asked for, and of the one that is planted.
_FACTORS: Final = (2.0, 3.0)


def _is_machine_code(path: Path) -> bool:
    data = DiskCache(path.parent).get(path.name)
    try:
        return data is not None and bool(unpack(data).code)
    except (KeyError, TypeError, ValueError):
        return False


def _probe() -> dict[str, Any]:
    """What a process of its own finds: whether it used what was planted, and what it was told."""
    words = [sys.executable, "-m", "benchmarks.reliability.planted"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return {"used": False, "told": [done.stderr]}
    found: dict[str, Any] = json.loads(done.stdout)
    return found


class _Said(logging.Handler):
    """Keeps warnings."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


def main() -> None:
    """The process of :func:`_probe`."""
    said = _Said()
    logging.getLogger("ansorlite").addHandler(said)
    a = np.arange(64, dtype=np.float32)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        values = [al.compile(scale(_FACTORS[0]))(a) for _ in range(2)]
    used = not all(np.array_equal(value, _FACTORS[0] * a) for value in values)
    print(json.dumps({"used": used, "told": [*said.lines, *(str(warning.message) for warning in caught)]}))


if __name__ == "__main__":
    main()
