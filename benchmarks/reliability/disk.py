"""Disks that are full: tuning, compiling and exporting go on or end in one sentence, and leave nothing half-written."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np

import ansorlite as al
from ansorlite.cache.disk import CACHE_VARIABLE
from ansorlite.records.database import Database
from benchmarks.reliability.results import Attempt, Findings
from benchmarks.reliability.workload import KERNELS, MATMUL, Model, one_sentence

FULL: Final = "full disks"
#: KiB that a disk has at least and at most: what is written comes to somewhere between.
_SIZES: Final = (8, 600)
#: Seconds that a command may take.
_PATIENCE: Final = 600.0
#: Becomes the command after its first argument, in which no file may be longer than that many bytes; 0 for no limit. Not between
#: fork and exec of the calling process, where what other libraries have of threads there (gRPC's) may disturb the new one.
_LIMITED: Final = """
import os, resource, sys
limit = int(sys.argv[1])
if limit:
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
os.execv(sys.argv[2], sys.argv[2:])
"""


def attempt_with(disks: int = 6) -> Attempt:
    """An attempt with so many disks, each of another size."""
    return partial(_attempt, disks=disks)


def _attempt(number: int, folder: Path, disks: int) -> Findings:
    rng = np.random.default_rng(number)
    (folder / "kernels.py").write_text(KERNELS)
    model = Model.write(folder / "model.onnx", rng)
    failures: list[str] = []
    mounted = 0
    for disk in range(disks):
        size = int(np.exp(rng.uniform(*np.log(_SIZES))))
        with _small(folder / "disk", size) as (place, real):
            mounted += real
            limit = 0 if real else size << 10
            for what, problems in _uses(folder, place, model, limit).items():
                failures += [f"attempt {number}, disk {disk} of {size} KiB, {what}: {problem}" for problem in problems]
    return Findings({FULL: disks}, tuple(failures), {"mounted": float(mounted)})


def _uses(folder: Path, place: Path, model: Model, limit: int) -> Mapping[str, list[str]]:
    """What is wrong after each use of the disk."""
    return {
        "tuning": _tuning(folder, place, limit),
        "the cache": _cache(folder, place / "cache", model, limit),
        "exporting": _exporting(folder, place / "model.so", model, limit),
    }


def _tuning(folder: Path, place: Path, limit: int) -> list[str]:
    path = place / "t.db"
    problems = _command(folder, ["tune", *MATMUL, "--trials", "6", "--database", str(path)], limit)
    # There is no room to read it here: SQLite needs files beside it.
    for left in place.glob("t.db*"):
        shutil.move(left, folder / left.name)
    if (folder / path.name).exists():
        with closing(sqlite3.connect(folder / path.name)) as connection:
            (state,) = connection.execute("PRAGMA integrity_check").fetchone()
        if state != "ok":
            problems.append(f"the database is damaged: {state}")
        with Database(folder / path.name) as database:
            database.records()
    for left in folder.glob("t.db*"):
        left.unlink()
    return problems


def _cache(folder: Path, cache: Path, model: Model, limit: int) -> list[str]:
    code = f"""
import numpy as np
import ansorlite as al
x = np.array({model.x.tolist()}, np.float32)
compiled = al.compile(al.from_onnx({str(model.path)!r}))
assert np.array_equal(compiled(x=x)["y"], np.array({model.y.tolist()}, np.float32))
"""
    done = _run([sys.executable, "-c", code], folder, {CACHE_VARIABLE: str(cache)}, limit)
    problems = [f"it failed: {done.stderr[-2000:]}"] if done.returncode != 0 else []
    if len(done.stderr.splitlines()) > 1 and not problems:
        problems.append(f"more than one warning: {done.stderr[-2000:]}")
    if cache.exists():
        problems += [f"{left.name} is left in the cache" for left in cache.glob(".*")]
        for path in cache.iterdir():
            path.unlink()
    return problems


def _exporting(folder: Path, library: Path, model: Model, limit: int) -> list[str]:
    problems = _command(folder, ["export", str(model.path), "-o", str(library), "--weights", "beside"], limit)
    whole = library.exists() and library.with_suffix(".h").exists()
    if whole and not problems and model.wrong(al.load(library)):
        problems.append("what was exported computes something else")
    problems += [f"{left.name} is left beside the library" for left in library.parent.glob(".*")]
    for left in library.parent.glob("model.*"):
        left.unlink()
    return problems


def _command(folder: Path, words: list[str], limit: int) -> list[str]:
    """What is wrong with how the command ended: it must succeed, or end with one sentence."""
    done = _run([sys.executable, "-m", "ansorlite", *words], folder, {}, limit)
    if done.returncode == 0:
        return []
    sentences = [line for line in done.stderr.splitlines() if line.startswith("Error: ")]
    if done.returncode == 2 and len(sentences) == 1 and one_sentence(sentences[0]) and "Traceback" not in done.stderr:
        return []
    return [f"it ended with {done.returncode}: {done.stderr[-2000:]}"]


def _run(words: list[str], folder: Path, environment: Mapping[str, str], limit: int) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", _LIMITED, str(limit), *words],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=_PATIENCE,
        check=False,
    )


@contextmanager
def _small(place: Path, kibibytes: int) -> Iterator[tuple[Path, bool]]:
    """A folder on a disk of its own of this size, and whether there is one: only root may mount. Else files must be limited."""
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={kibibytes}k", "tmpfs", str(place)]
    real = subprocess.run(mount, capture_output=True, check=False).returncode == 0
    try:
        yield place, real
    finally:
        if real:
            subprocess.run(["umount", "--lazy", str(place)], check=True)
        else:
            for left in place.rglob("*"):
                if left.is_file():
                    left.unlink()
            for left in place.iterdir():
                left.rmdir()
        place.rmdir()
