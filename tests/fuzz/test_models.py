"""Thousands of spoilt models: each becomes a model or one clear error, in little time and memory.

``pytest tests/fuzz --models 100000`` tries more of them.
"""

from __future__ import annotations

import pytest

from tests.fuzz.processes import outcomes


@pytest.mark.parametrize("part", range(4))
def test_each_spoilt_model_is_a_model_or_one_clear_error(part: int, request: pytest.FixtureRequest) -> None:
    count = request.config.getoption("--models") // 4
    found = list(outcomes("tests.fuzz.worker", part * count, count, seconds=1))
    wrong = [entry for entry in found if entry["outcome"] not in ("model", "refused")]
    assert not wrong, "\n".join(f"mutated({e['seed']}) ({e['made']}): {e['what']}" for e in wrong[:20])
    kinds = [entry["outcome"] for entry in found]
    assert kinds.count("model") > len(kinds) / 10
    assert kinds.count("refused") > len(kinds) / 3
