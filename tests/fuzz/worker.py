"""Imports mutated models one after another, within limits of time and memory; prints a line of JSON for each.

``python -m tests.fuzz.worker FIRST COUNT``
"""

from __future__ import annotations

import json
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path
from typing import Any, Final

from ansorlite.errors import AnsorliteError
from ansorlite.frontends.onnx import load_any
from tests.fuzz.mutations import mutated

#: Bytes that a model of a few kilobytes may make the address space grow by.
MEMORY: Final = 2 << 30
#: Seconds of processor time after which a model counts as one that hangs.
SECONDS: Final = 10.0


class TooLongError(BaseException):
    """A model took longer than it may."""


def _too_long(_signal: int, _frame: Any) -> None:
    raise TooLongError


def limit() -> None:
    """Keep this process within its limits from now on."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
    signal.signal(signal.SIGVTALRM, _too_long)


def attempt(data: bytes, folder: Path) -> dict[str, str]:
    """What becomes of one model: ``outcome`` is ``"model"``, ``"refused"`` or ``"bug"``."""
    path = folder / "model.onnx"
    path.write_bytes(data)
    try:
        load_any(path)
    except AnsorliteError as error:
        sentence = str(error)
        if "\n" in sentence or not 10 < len(sentence) < 2000:
            return {"outcome": "bug", "what": f"no clear sentence: {sentence[:300]!r}"}
        return {"outcome": "refused", "what": f"{type(error).__name__}: {sentence}"}
    except BaseException as error:
        frames = traceback.extract_tb(error.__traceback__)
        ours = next((frame for frame in reversed(frames) if "/ansorlite/" in frame.filename), frames[-1])
        place = f"{Path(ours.filename).name}:{ours.lineno}"
        return {"outcome": "bug", "what": f"{type(error).__name__} at {place}: {str(error)[:300]}"}
    return {"outcome": "model", "what": ""}


def main(first: int, count: int) -> None:
    warnings.simplefilter("ignore")
    limit()
    with tempfile.TemporaryDirectory() as outer:
        folder = Path(outer) / "inner"
        folder.mkdir()
        (Path(outer) / "w.bin").write_bytes(bytes(64))
        (folder / "w.bin").write_bytes(bytes(64))
        (folder / "link.bin").symlink_to(Path(outer) / "w.bin")
        for seed in range(first, first + count):
            made, data = mutated(seed)
            print(json.dumps({"seed": seed, "made": made}), flush=True)
            begin = time.process_time()
            signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
            try:
                found = attempt(data, folder)
            finally:
                signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            print(json.dumps({**found, "seconds": round(time.process_time() - begin, 3)}), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
