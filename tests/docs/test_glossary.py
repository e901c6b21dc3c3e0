"""The glossary's classes exist, and its words for classes have one meaning."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "ansorlite"
PAGE = (ROOT / "docs" / "glossary.md").read_text()
TERMS, _, UNFINISHED = PAGE.partition("## Still two meanings")

#: What has its name from the glossary, and the file that it is in.
NAMED = re.findall(r"`(\w+)` in `([\w/]+\.py)`", TERMS)
#: Files, and attributes of classes that are named elsewhere.
FILES = re.findall(r"`((?:\w+/)+(?:\w+\.py)?)`", PAGE)
ATTRIBUTES = re.findall(r"`([A-Z]\w+)\.(\w+)`", TERMS)


def names(body: list[ast.stmt]) -> Iterator[str]:
    for node in body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            yield node.name
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (target.id for target in targets if isinstance(target, ast.Name))


@cache
def tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text())


@pytest.mark.parametrize(("name", "file"), NAMED)
def test_what_the_glossary_names_is_there(name: str, file: str) -> None:
    assert name in names(tree(PACKAGE / file).body)


def test_its_files_and_attributes_exist() -> None:
    assert [file for file in FILES if not (PACKAGE / file).exists()] == []
    classes = [node for file in PACKAGE.rglob("*.py") for node in tree(file).body if isinstance(node, ast.ClassDef)]
    for owner, attribute in ATTRIBUTES:
        assert any(attribute in names(node.body) for node in classes if node.name == owner), f"{owner}.{attribute}"


def test_a_class_of_the_glossary_has_its_name_alone() -> None:
    classes = Counter(node.name for file in PACKAGE.rglob("*.py") for node in tree(file).body if isinstance(node, ast.ClassDef))
    unfinished = set(re.findall(r"^\| `(\w+)`", UNFINISHED, re.MULTILINE))
    assert {name for name, _ in NAMED if classes[name] > 1} <= unfinished
