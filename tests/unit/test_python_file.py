"""What users define in files and modules of their own, by name."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from typing import Any

import pytest

from ansorlite.errors import ArgumentError
from ansorlite.python_file import module_of, named


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def wrong(place: str) -> str:
    with pytest.raises(ArgumentError) as caught:
        named("a strategy", place)
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_a_name_of_a_file_and_of_a_module(tmp_path: Path) -> None:
    file = written(tmp_path / "mine.py", "HERE = 5\n")
    assert named("a number", f"{file}:HERE") == 5
    assert named("a number", "math:tau") > 6  # type: ignore[operator]


def test_a_file_is_run_once_until_it_changes(tmp_path: Path) -> None:
    file = written(tmp_path / "mine.py", "class Model: pass\n")
    first: Any = module_of(file)
    assert module_of(tmp_path / ".." / tmp_path.name / "mine.py") is first
    written(file, "class Model: pass\nMORE = 1\n")
    assert module_of(file).MORE == 1
    written(file, "def f(:\n")
    for _ in range(2):
        assert wrong(f"{file}:f").startswith(f"{file}:1 is no Python")


def test_files_of_one_stem_are_two_modules(tmp_path: Path) -> None:
    text = "from dataclasses import dataclass\n@dataclass(frozen=True)\nclass Model:\n    size: int\n"
    models = []
    for folder in ("a", "b", "json"):
        (tmp_path / folder).mkdir()
        models.append(named("a model", f"{written(tmp_path / folder / 'json.py', text)}:Model"))
    assert len(set(models)) == 3
    for model in models:
        assert pickle.loads(pickle.dumps(model(3))) == model(3)  # type: ignore[operator]
    assert not hasattr(sys.modules["json"], "Model")


def test_what_it_prints_goes_to_stderr(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    module_of(written(tmp_path / "loud.py", "print('here I am')\n"))
    assert capsys.readouterr() == ("", "here I am\n")


@pytest.mark.parametrize("place", ["mine.py", ":NAME", "mine.py:", ":", ""])
def test_a_place_needs_a_source_and_a_name(place: str) -> None:
    assert wrong(place) == f"{place!r} does not name a strategy; write file.py:NAME or package.module:NAME"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("x = 1\nimport os\n_hidden = 2\ndef f(): pass\n", "has no 'NAME'; it has: x, f"),
        ("", "has no 'NAME'; it has: none"),
        ("def f(\n", "mine.py:1 is no Python: '(' was never closed; correct it"),
        ("\x00", "is no Python: source code string cannot contain null bytes; correct it"),
        ("from math import nothing\n", "mine.py cannot be imported (cannot import name 'nothing' from 'math'"),
        ("\n\nimport json\njson.loads('{')\n", "mine.py:4 raises JSONDecodeError when it is imported (Expecting property name"),
        ("def f():\n    return {}['a']\nf()\n", "mine.py:2 raises KeyError when it is imported ('a'); correct it"),
        ("import sys\nsys.exit('bye')\n", "mine.py:2 raises SystemExit when it is imported (bye); correct it"),
    ],
)
def test_a_file_that_does_not_run(text: str, told: str, tmp_path: Path) -> None:
    file = written(tmp_path / "mine.py", text)
    before = set(sys.modules)
    assert told in wrong(f"{file}:NAME")
    if "has no" not in told:
        assert not {name for name in set(sys.modules) - before if name.startswith("mine")}


def test_a_file_or_module_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "folder.py").mkdir()
    assert wrong("nowhere.py:NAME") == "there is no file nowhere.py"
    assert wrong(f"{tmp_path}/folder.py:NAME") == f"there is no file {tmp_path}/folder.py"
    assert wrong("no_such_package.module:NAME").startswith("no_such_package.module cannot be imported (No module named")


def test_ctrl_c_while_it_is_imported_is_no_mistake(tmp_path: Path) -> None:
    file = written(tmp_path / "mine.py", "raise KeyboardInterrupt\n")
    with pytest.raises(KeyboardInterrupt):
        named("a strategy", f"{file}:NAME")
