"""Damaged files: compiled programs in the cache, and databases. No wrong value, and no error but one sentence."""

from __future__ import annotations

import os
import shutil
import traceback
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np

import ansorlite as al
from ansorlite.cache.disk import CACHE_VARIABLE
from ansorlite.errors import AnsorliteError
from benchmarks.reliability.results import Attempt, Findings
from benchmarks.reliability.workload import Model, one_sentence, scale

FILES: Final = "cache files"
DATABASES: Final = "databases"

#: From the bytes of a file, and those of another one like it, to damaged ones.
Damage: TypeAlias = Callable[[bytes, bytes, np.random.Generator], bytes]


def _flip(data: bytes, count: int, rng: np.random.Generator) -> bytes:
    changed = bytearray(data)
    for place in rng.integers(0, len(data), count):
        changed[place] ^= int(rng.integers(1, 256))
    return bytes(changed)


def _overwrite(data: bytes, fill: Callable[[int], bytes], rng: np.random.Generator) -> bytes:
    begin = int(rng.integers(0, len(data)))
    length = min(int(rng.integers(1, 5000)), len(data) - begin)
    return data[:begin] + fill(length) + data[begin + length :]


DAMAGES: Final[Mapping[str, Damage]] = {
    "empty": lambda _data, _other, _rng: b"",
    "truncated": lambda data, _, rng: data[: int(rng.integers(0, len(data)))],
    "one byte": lambda data, _, rng: _flip(data, 1, rng),
    "some bytes": lambda data, _, rng: _flip(data, int(rng.integers(2, 200)), rng),
    "zeros": lambda data, _, rng: _overwrite(data, bytes, rng),
    "noise": lambda data, _, rng: _overwrite(data, rng.bytes, rng),
    "all noise": lambda data, _, rng: rng.bytes(len(data)),
    "longer": lambda data, _, rng: data + rng.bytes(int(rng.integers(1, 5000))),
    "doubled": lambda data, _other, _rng: data + data,
    "another's end": lambda data, other, _: data[: len(data) // 2] + other[len(other) // 2 :],
}


def attempt_with(files: int = 100, databases: int = 100) -> Attempt:
    """An attempt that damages so many of each, one after another."""
    return partial(_attempt, files=files, databases=databases)


def _attempt(number: int, folder: Path, files: int, databases: int) -> Findings:
    rng = np.random.default_rng(number)
    counts: Counter[str] = Counter()
    failures = [*_files(number, folder, files, rng, counts), *_databases(number, folder, databases, rng, counts)]
    return Findings(counts, tuple(failures))


def _files(number: int, folder: Path, count: int, rng: np.random.Generator, counts: Counter[str]) -> list[str]:
    cache = Path(os.environ[CACHE_VARIABLE])
    model = Model.write(folder / "model.onnx", rng)

    def wrong() -> bool:
        return _scales_wrongly(None) or model.wrong(al.compile(al.from_onnx(model.path)))

    failures = ["wrong before anything was damaged"] if wrong() else []
    for path in cache.iterdir():
        os.utime(path, (0, 0))
    wrong()
    # What is read marks itself as used.
    whole = {path: path.read_bytes() for path in sorted(cache.iterdir()) if path.stat().st_mtime > 0}
    paths, damages = list(whole), list(DAMAGES)
    if len(paths) < 3:
        failures.append(f"only {len(paths)} files of the cache are read at all")
    for _ in range(count if paths else 0):
        kind, path, other = rng.choice(damages), *(paths[place] for place in rng.integers(0, len(paths), 2))
        # A new file: what is mapped of the old one stays.
        new = path.with_name(".new")
        new.write_bytes(DAMAGES[kind](whole[path], whole[other], rng))
        new.chmod(0o600)
        new.replace(path)
        try:
            problem = "a wrong value" if wrong() else ""
        except Exception:
            problem = traceback.format_exc()
        if problem:
            failures.append(f"attempt {number}: {kind} in {paths.index(path)}: {problem}")
        counts[FILES] += 1
        for place, data in whole.items():
            place.write_bytes(data)
    return failures


def _databases(number: int, folder: Path, count: int, rng: np.random.Generator, counts: Counter[str]) -> list[str]:
    tuned = folder / "tuned.db"
    al.tune(scale(2.0), trials=3, database=tuned)
    whole = tuned.read_bytes()
    failures = []
    for kind in rng.choice(list(DAMAGES), count):
        path = folder / "damaged.db"
        path.write_bytes(DAMAGES[kind](whole, whole[::-1], rng))
        try:
            problem = "a wrong value" if _scales_wrongly(path) else ""
        except AnsorliteError as error:
            problem = "" if one_sentence(str(error)) else f"no sentence: {error!r}"
        except Exception:
            problem = traceback.format_exc()
        if problem:
            kept = folder.parent.parent / f"ansorlite-damaged-{number}-{counts[DATABASES]}.db"
            shutil.copy(path, kept)
            failures.append(f"attempt {number}: {kind} in a database, kept as {kept}: {problem}")
        counts[DATABASES] += 1
        for left in folder.glob("damaged.db*"):
            left.unlink()
    return failures


def _scales_wrongly(database: Path | None) -> bool:
    a = np.arange(64, dtype=np.float32)
    return not np.array_equal(al.compile(scale(2.0), database)(a), 2 * a)
