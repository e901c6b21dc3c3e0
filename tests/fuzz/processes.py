"""Workers that may die: each prints a line of JSON before, and another one after, whatever it tries."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

#: Seconds of the wall clock after which a worker that prints nothing hangs where no signal reaches it.
SILENCE: Final = 120

ROOT: Final = Path(__file__).parents[2]


def outcomes(module: str, first: int, count: int, *more: str, seconds: float) -> Iterator[dict[str, Any]]:
    """What became of things number ``first`` and on.

    A worker that dies or hangs leaves its last thing behind, a crash, and another one goes on.

    Args:
        more: words for the worker, after the first number and how many.
        seconds: that each thing may take, on average.
    """
    end = first + count
    while first < end:
        words = [sys.executable, "-m", module, str(first), str(end - first), *more]
        try:
            done = subprocess.run(
                words, cwd=ROOT, capture_output=True, text=True, timeout=SILENCE + seconds * (end - first), check=False
            )
            output, how = done.stdout, f"exit code {done.returncode}: {done.stderr[-500:]}"
        except subprocess.TimeoutExpired as error:
            output, how = (error.stdout or b"").decode(), "it hangs"
        lines = [json.loads(line) for line in output.splitlines()]
        for made, ended in zip(lines[::2], lines[1::2], strict=False):
            yield {**made, **ended}
        first += len(lines) // 2
        if len(lines) % 2:
            yield {**lines[-1], "outcome": "crash", "what": how}
            first += 1
        elif first < end:
            raise AssertionError(how)
