"""What pages point at exists; decisions are short records of one form, and all of them are in their index."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
RECORDS = sorted(set((ROOT / "docs" / "decisions").glob("*.md")) - {ROOT / "docs" / "decisions" / "README.md"})

LINK = re.compile(r"\]\((?!https?:|#|mailto:)([^)#\s]+)")
#: A path from the package on, or from the root, in the text.
FILE = re.compile(r"`((?:\w+/)+\w+\.py)`")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_what_a_page_points_at_exists(page: Path) -> None:
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    assert [link for link in LINK.findall(text) if not (page.parent / link).exists()] == []
    assert [file for file in FILE.findall(text) if not ((ROOT / file).exists() or (ROOT / "ansorlite" / file).exists())] == []


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.stem)
def test_a_decision_is_a_short_record(record: Path) -> None:
    lines = record.read_text().splitlines()
    assert lines[0].startswith("# ")
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", lines[2]), "the date stands below the title"
    assert "**Context.**" in record.read_text()
    assert "**Decision.**" in record.read_text()
    assert len(lines) <= 60


def test_all_decisions_are_in_their_index_by_their_titles() -> None:
    index = (ROOT / "docs" / "decisions" / "README.md").read_text()
    listed = re.findall(r"^\* \[(.*)\]\((.*)\)$", index, re.MULTILINE)
    titles = [(record.read_text().partition("\n")[0].removeprefix("# "), record.name) for record in RECORDS]
    assert sorted(listed) == sorted(titles), "each record has a line in docs/decisions/README.md"
