"""The lines of the rooms, counted."""

from __future__ import annotations

from benchmarks.rooms import House, here, table

PAGE = "| room | what |\n|---|---|\n| `te/`, `task.py` | x |\n| `frontends/onnx/` | x |\n"


def house(**files: int) -> House:
    sources = {f"ansorlite/{name.replace('__', '/')}.py": "x\n" * count for name, count in files.items()}
    return House.of({**sources, "docs/map.md": PAGE})


def test_each_file_is_counted_in_its_room() -> None:
    now = house(te__dag=3, te__index__linear=5, task=2, frontends__onnx__load=7, lost=1)
    sizes = {room: sum(files.values()) for room, files in now.sizes().items()}
    assert sizes == {"te/": 8, "task.py": 2, "frontends/onnx/": 7, "elsewhere": 1}


def test_rooms_that_are_gone_are_shown_beside_those_that_are_there() -> None:
    old = House.of({"ansorlite/sketch/a.py": "x\n", "ansorlite/te/dag.py": "x\nx\n", "docs/map.md": "| `sketch/`, `te/` | x |\n"})
    lines = [" ".join(line.split()) for line in table(house(te__dag=3), old)]
    assert lines == [
        "te/ 3 lines 1 files was 2 lines 1 files longest te/dag.py 3",
        "sketch/ 0 lines 0 files was 1 lines 1 files",
        "one candidate's way 3 lines 1 files was 2 lines 1 files longest te/dag.py 3",
        "all 3 lines 1 files was 3 lines 2 files longest te/dag.py 3",
    ]


def test_all_lines_of_this_house_are_in_its_rooms() -> None:
    assert set(here().sizes()["elsewhere"]) == {"__init__.py", "frontends/__init__.py"}
