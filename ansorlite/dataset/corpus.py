"""A corpus on disk: a folder with one ``.npz`` file an entry, of arrays and two texts;
nothing in it is ever unpickled or executed.

``meta`` is JSON: the computation, the target's facts, the device, the origin, and what the columns of each view are called.
``traces`` are all programs as text. Of part ``k`` there are ``latencies_k`` (n,) float64, and for each view, as ``tokens_k``, an
array ``(n, items, numbers)`` float32.
"""

from __future__ import annotations

import hashlib
import json
import lzma
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ansorlite.cost_model.views import View
from ansorlite.dataset.arrays import UnreadableError, stored
from ansorlite.dataset.entry import Entry, Part
from ansorlite.errors import AnsorliteError
from ansorlite.features.gpu import GPU_NAMES
from ansorlite.features.loop_tree import TREE, Kind
from ansorlite.features.names import NAMES
from ansorlite.features.tokens import TOKEN
from ansorlite.target import Target
from ansorlite.task import Task
from ansorlite.te.serialize import dump, load
from ansorlite.writing import replacing, writing

FORMAT: Final = 1
#: What the numbers of each view's items are called. Knobs are what each sketch has.
_COLUMNS: Final[Mapping[View, tuple[str, ...]]] = {View.TOKENS: TOKEN, View.LOOPS: TREE, View.KNOBS: ()}
#: Traces of more bytes are not read.
_LARGEST_TEXT: Final = 256 << 20


class CorpusError(AnsorliteError, ValueError):
    """A corpus that cannot be read: not there, damaged, of another format, or something else."""


def write_corpus(entries: Iterable[Entry], folder: Path) -> list[Path]:
    """Put a file for each entry into ``folder``, which is made; another of the same task and device is replaced.

    Raises:
        ArgumentError: the folder cannot be written.
    """
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for entry in entries:
        path = folder / f"{hashlib.sha256(repr((entry.task.key, entry.device)).encode()).hexdigest()[:16]}.npz"
        with replacing(path) as part, part.open("wb") as file:
            np.savez_compressed(file, allow_pickle=False, **_arrays(entry))
        paths.append(path)
    return paths


def read_corpus(folder: Path) -> list[Entry]:
    """The entries in ``folder``, in the order of their files' names.

    Raises:
        CorpusError: there is none, or one cannot be used.
    """
    paths = sorted(folder.glob("*.npz")) if folder.is_dir() else []
    if not paths:
        raise CorpusError(f"there is no corpus in {folder}; make one with: python -m ansorlite.dataset tuning.db -o {folder}")
    return [read_entry(path) for path in paths]


def read_entry(path: Path) -> Entry:
    """The entry in the file at ``path``.

    Raises:
        CorpusError: it cannot be used.
    """
    try:
        arrays = stored(path)
        return _entry(arrays)
    except (UnreadableError, ValueError, KeyError, TypeError, AnsorliteError, RecursionError, AttributeError) as error:
        why = f"it has no {error}" if isinstance(error, KeyError) else " ".join(str(error).split())
        raise CorpusError(f"{path} of the corpus cannot be used: {why}; make the corpus again") from error


def _arrays(entry: Entry) -> dict[str, NDArray[Any]]:
    meta = {
        "format": FORMAT,
        "task": entry.task.key,
        "dag": dump(entry.task.dag),
        "target": asdict(entry.task.target),
        "device": entry.device,
        "origin": entry.origin,
        "parts": len(entry.parts),
        "columns": {view.name.lower(): names for view, names in _columns(entry.task.target).items()},
    }
    traces = "\0".join(trace for part in entry.parts for trace in part.traces)
    arrays = {"meta": np.array(json.dumps(meta)), "traces": np.frombuffer(lzma.compress(traces.encode()), np.uint8)}
    for number, part in enumerate(entry.parts):
        arrays[f"latencies_{number}"] = part.latencies
        arrays |= {f"{view.name.lower()}_{number}": part.views[view] for view in View}
    return arrays


def _entry(arrays: Mapping[str, NDArray[Any]]) -> Entry:
    """
    Raises:
        ValueError: with what is wrong.
    """
    meta = json.loads(str(arrays["meta"]))
    if meta["format"] != FORMAT:
        raise ValueError(f"it is of format {meta['format']!r}, and this version reads {FORMAT}")
    task = Task(load(meta["dag"]), Target.of(meta["target"]))
    columns = _columns(task.target)
    for view, names in columns.items():
        if tuple(meta["columns"][view.name.lower()]) != names:
            raise ValueError(f"its {view.name.lower()} are those of another version")
    if task.key != meta["task"]:
        raise ValueError("its computation is another one than it says")
    traces = _traces(arrays["traces"])
    parts, begin = [], 0
    for number in range(int(meta["parts"])):
        part = _part(arrays, number, traces[begin:], columns)
        begin += len(part.traces)
        parts.append(part)
    if not parts or begin != len(traces):
        raise ValueError(f"it has {len(traces)} traces for {begin} programs")
    return Entry(task, str(meta["device"]), str(meta["origin"]), tuple(parts))


def _traces(array: NDArray[Any]) -> Sequence[str]:
    decompressor = lzma.LZMADecompressor()
    try:
        text = decompressor.decompress(np.asarray(array, np.uint8).tobytes(), max_length=_LARGEST_TEXT)
    except (lzma.LZMAError, EOFError):
        raise ValueError("its traces are damaged") from None
    if not decompressor.eof:
        raise ValueError("its traces are damaged")
    return text.decode().split("\0")


def _columns(target: Target) -> Mapping[View, tuple[str, ...]]:
    """The names of each view's columns; ``()``: they have none."""
    return {View.FEATURES: NAMES if target.gpu is None else GPU_NAMES, **_COLUMNS}


def _part(
    arrays: Mapping[str, NDArray[Any]], number: int, traces: Sequence[str], columns: Mapping[View, tuple[str, ...]]
) -> Part:
    latencies = arrays[f"latencies_{number}"]
    n = len(latencies) if latencies.ndim == 1 else 0
    if latencies.dtype != np.float64 or not n or not (latencies > 0).all():
        raise ValueError(f"its latencies_{number} are no positive float64")
    views = {}
    for view in View:
        name = f"{view.name.lower()}_{number}"
        array = arrays[name]
        if array.dtype != np.float32 or array.ndim != 3 or len(array) != n or not np.isfinite(array).all():
            raise ValueError(f"its {name} is {array.dtype}{list(array.shape)}, not finite float32 of {n} programs")
        if columns[view] and array.shape[2] != len(columns[view]):
            raise ValueError(f"its {name} has {array.shape[2]} columns, not {len(columns[view])}")
        views[view] = array
    _check_tree(views[View.LOOPS], number)
    if len(traces) < n:
        raise ValueError("it has fewer traces than programs")
    return Part(tuple(traces[:n]), latencies, views)


def _check_tree(loops: NDArray[np.float32], number: int) -> None:
    """A model walks from node to node: each must be in a node before it."""
    shape = loops[:, :, : 1 + len(Kind)]
    parents = shape[0, :, 0]
    if (shape != shape[:1]).any() or (parents != np.floor(parents)).any() or (parents < -1).any():
        raise ValueError(f"its loops_{number} are no trees of one shape")
    if (parents >= np.arange(len(parents))).any():
        raise ValueError(f"its loops_{number} have a node before the one around it")
