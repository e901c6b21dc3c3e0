"""Thousands of spoilt models: each becomes a model or one clear error, in little time and memory.

``pytest tests/fuzz --models 100000`` tries more of them.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

#: Seconds of the wall clock after which a worker that prints nothing hangs where no signal reaches it.
SILENCE = 120

ROOT = Path(__file__).parents[2]


def outcomes(first: int, count: int) -> list[dict[str, Any]]:
    """What became of ``count`` models. A worker that dies or hangs leaves its last model behind, and another one goes on."""
    found: list[dict[str, Any]] = []
    while len(found) < count:
        words = [sys.executable, "-m", "tests.fuzz.worker", str(first + len(found)), str(count - len(found))]
        done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=SILENCE + count, check=False)
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        found += [{**made, **ended} for made, ended in zip(lines[::2], lines[1::2], strict=False)]
        if len(lines) % 2:
            found.append({**lines[-1], "outcome": "crash", "what": f"exit code {done.returncode}: {done.stderr[-500:]}"})
        elif done.returncode:
            raise AssertionError(done.stderr)
    return found


@pytest.mark.parametrize("part", range(4))
def test_each_spoilt_model_is_a_model_or_one_clear_error(part: int, request: pytest.FixtureRequest) -> None:
    count = request.config.getoption("--models") // 4
    found = outcomes(part * count, count)
    wrong = [entry for entry in found if entry["outcome"] not in ("model", "refused")]
    assert not wrong, "\n".join(f"mutated({e['seed']}) ({e['made']}): {e['what']}" for e in wrong[:20])
    kinds = [entry["outcome"] for entry in found]
    assert kinds.count("model") > len(kinds) / 10
    assert kinds.count("refused") > len(kinds) / 3
