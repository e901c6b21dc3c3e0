"""What docs/adding_a_rule.md says of tuning with a rule of one's own."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import ansorlite as al
from ansorlite.api.space import space_of
from ansorlite.records.database import Database
from ansorlite.sketch.rules import CPU_RULES
from ansorlite.spaces.builders import Derived, sketches_of
from ansorlite.spaces.derivation import derive
from tests.docs.test_code_blocks import BLOCK, ROOT
from tests.workloads import matmul


def test_a_file_of_rules_may_have_dataclasses(tmp_path: Path) -> None:
    file = tmp_path / "rules_with_records.py"
    file.write_text(
        "from __future__ import annotations\nfrom dataclasses import dataclass\nfrom ansorlite.sketch.rules import CPU_RULES\n"
        "@dataclass\nclass Limit:\n    steps: int\nHERE = CPU_RULES\n"
    )
    assert space_of(f"{file}:HERE") == Derived(CPU_RULES)


def test_programs_of_a_rule_are_measured_and_compiled(tmp_path: Path) -> None:
    rule = BLOCK.search((ROOT / "docs/adding_a_rule.md").read_text())
    assert rule is not None
    file = tmp_path / "my_rules.py"
    file.write_text(f"{rule[1]}\n\nHERE = (FLAT_TILING,)\n")
    place = f"{file}:HERE"
    task = al.Task(matmul(16, 32, 8))
    space = space_of(place)
    assert space is not None
    (sketch, *_) = sketches_of(task, space)
    assert sketch.signature not in {known.signature for known in derive(task)}
    result = al.tune(task, trials=4, database=tmp_path / "t.db", strategy="random", space=place)
    assert result.best_latency < 1
    with Database(tmp_path / "t.db") as database:
        measured = [record.measurement for record in database.records()]
    assert any(sketch.row_of(m.candidate) is not None for m in measured if m.checked)
    a, b = np.random.default_rng(0).random((16, 8), dtype=np.float32), np.random.default_rng(1).random((8, 32), dtype=np.float32)
    for given in (place, None):  # a record needs no rules
        kernel = al.compile(task, tmp_path / "t.db", space=given)
        np.testing.assert_allclose(kernel(a, b), a @ b, rtol=1e-5)
    file.unlink()
    np.testing.assert_allclose(al.compile(task, tmp_path / "t.db")(a, b), a @ b, rtol=1e-5)
