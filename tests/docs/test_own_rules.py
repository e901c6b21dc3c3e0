"""What docs/adding_a_rule.md says of tuning with a rule of one's own."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import ansorlite as al
from ansorlite.measure.rules import rules_from
from ansorlite.records.database import Database
from ansorlite.sketch.derivation import derive
from ansorlite.sketch.rules import CPU_RULES
from tests.docs.test_code_blocks import BLOCK, ROOT
from tests.workloads import matmul


def test_a_file_of_rules_may_have_dataclasses(tmp_path: Path) -> None:
    file = tmp_path / "rules_with_records.py"
    file.write_text(
        "from __future__ import annotations\nfrom dataclasses import dataclass\nfrom ansorlite.sketch.rules import CPU_RULES\n"
        "@dataclass\nclass Limit:\n    steps: int\nHERE = CPU_RULES\n"
    )
    assert rules_from(f"{file}:HERE") == CPU_RULES


def test_a_rule_reaches_the_workers_and_the_compiler(tmp_path: Path) -> None:
    rule = BLOCK.search((ROOT / "docs/adding_a_rule.md").read_text())
    assert rule is not None
    file = tmp_path / "my_rules.py"
    file.write_text(f"{rule[1]}\n\nRULES_HERE = (FLAT_TILING,)\n")
    place = f"{file}:RULES_HERE"
    task = al.Task(matmul(16, 32, 8))
    (sketch, *_) = derive(task, rules_from(place))
    assert sketch.signature not in {known.signature for known in derive(task)}
    result = al.tune(task, trials=4, database=tmp_path / "t.db", strategy="random", rules=place)
    assert result.best_latency < 1
    with Database(tmp_path / "t.db") as database:
        measured = [record.measurement for record in database.records()]
    assert sketch.signature in {m.candidate.sketch for m in measured if m.checked}
    a, b = np.random.default_rng(0).random((16, 8), dtype=np.float32), np.random.default_rng(1).random((8, 32), dtype=np.float32)
    np.testing.assert_allclose(al.compile(task, tmp_path / "t.db", rules=place)(a, b), a @ b, rtol=1e-5)
