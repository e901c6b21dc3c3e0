"""The map of the house is of this house: its rooms are those of the code, in the order that imports obey, and its names exist."""

from __future__ import annotations

import ast
import re
import tomllib
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "ansorlite"
PAGE = (ROOT / "docs" / "map.md").read_text()

#: The rooms of each row of the table, as they are written there.
ROWS = [re.findall(r"`([^`]+)`", line.split("|")[1]) for line in PAGE.splitlines() if line.startswith("| `")]
ROOMS = [room for row in ROWS for room in row]

#: A heading in the code block of contracts, and what stands below it: what is called, what has a type, and the words for types.
HEADING = re.compile(r"^# ([\w/.]+(?:, [\w/.]+)*)")
CALLED = re.compile(r"\b([A-Za-z_]\w*)\(")
ATTRIBUTES = re.compile(r"(?:^|;|class \w+(?:\(\w+\))?:)\s*(\w+(?:, \w+)*): ")
TYPES = re.compile(r"\b[A-Z]\w*[a-z]\w*\b")
BLOCK = PAGE.partition("```text\n")[2].partition("```")[0]

#: Types of others.
OTHERS = {"None", "True", "False", "Callable", "Iterator", "Mapping", "Protocol", "Sequence", "GraphModule", "ModelProto"}


def module(room: str) -> str:
    return room.rstrip("/").removesuffix(".py").replace("/", ".")


def test_every_room_of_the_map_exists() -> None:
    assert [room for room in ROOMS if not (PACKAGE / room).exists()] == []
    assert [room for room in ROOMS if (PACKAGE / room).is_dir() != room.endswith("/")] == []


def test_every_room_is_on_the_map_once() -> None:
    folders = {f"{path.parent.relative_to(PACKAGE).as_posix()}/" for path in PACKAGE.rglob("__init__.py")} - {"./"}
    top = {folder for folder in folders if folder.count("/") == 1} - {"frontends/"}
    frontends = {folder for folder in folders if re.fullmatch(r"frontends/\w+/", folder)}
    files = {path.name for path in PACKAGE.glob("*.py")} - {"__init__.py"}
    assert sorted(ROOMS) == sorted(top | frontends | files)


def test_imports_are_held_to_the_order_of_the_map() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (layers,) = (contract["layers"] for contract in contracts if contract["type"] == "layers")
    held = [{name.strip() for name in layer.split(":")} for layer in reversed(layers)]
    assert held == [set(map(module, row)) for row in ROWS]


def contracts() -> dict[str, str]:
    """The headings, each with what stands below it, without comments."""
    found: dict[str, str] = {}
    heading = ""
    for line in BLOCK.splitlines():
        if matched := HEADING.match(line):
            heading = matched[1]
            found[heading] = ""
        else:
            found[heading] += re.sub(r"(^|\s)# .*", "", line) + "\n"
    return found


def files(heading: str) -> list[Path]:
    paths = [PACKAGE / name for name in heading.split(", ")]
    assert [path for path in paths if not path.exists()] == []
    return [file for path in paths for file in (sorted(path.rglob("*.py")) if path.is_dir() else [path])]


@cache
def defined(file: Path) -> frozenset[str]:
    """The names of classes, functions, methods, attributes and values that ``file`` defines."""
    names = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                names |= {target.id} if isinstance(target, ast.Name) else set()
                names |= {target.attr} if isinstance(target, ast.Attribute) else set()
    return frozenset(names)


@pytest.mark.parametrize("heading", contracts())
def test_the_names_of_the_contracts_exist(heading: str) -> None:
    text = contracts()[heading]
    here = frozenset().union(*map(defined, files(heading)))
    anywhere = frozenset().union(*map(defined, PACKAGE.rglob("*.py")))
    attributes = {name for found in ATTRIBUTES.findall(text) for name in found.split(", ")}
    types = set(TYPES.findall(text)) - OTHERS
    called = set(CALLED.findall(text)) - types - OTHERS
    assert called | attributes
    assert sorted((called | attributes) - here) == []
    assert sorted(types - anywhere) == []


def test_the_names_are_found_in_the_text() -> None:
    text = "class Task(Protocol): dag: ComputeDAG; a, b: int\n    run(x) -> Best"
    assert CALLED.findall(text) == ["Task", "run"]
    assert ATTRIBUTES.findall(text) == ["dag", "a, b"]
    assert TYPES.findall(text) == ["Task", "Protocol", "ComputeDAG", "Best"]
