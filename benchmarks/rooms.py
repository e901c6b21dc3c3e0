"""How large the rooms of the house are: the lines and files of each, in the order of docs/map.md, and its longest file.

    python -m benchmarks.rooms [--against REVISION]

Against a revision: beside it, and which files of it are gone, renamed ones with what they became.
"""

from __future__ import annotations

import argparse
import io
import re
import subprocess
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE, MAP = "ansorlite", "docs/map.md"

#: What a reader walks through who follows one candidate.
WALK = (
    *("te/", "analysis/", "schedule/", "features/", "evolution/", "cost_model/", "search/"),
    *("loops/", "codegen/", "runtime/", "measure/", "tuner/"),
)


@dataclass(frozen=True)
class House:
    """Files and rooms at one time.

    Attributes:
        lines: file, from the package on → its number of lines.
        rooms: in the order of the map.
    """

    lines: Mapping[str, int]
    rooms: tuple[str, ...]

    @staticmethod
    def of(files: Mapping[str, str]) -> House:
        """Of path → text, from the root of the repository on."""
        lines = {path.removeprefix(f"{PACKAGE}/"): text.count("\n") for path, text in files.items() if path.endswith(".py")}
        table = [line.split("|")[1] for line in files[MAP].splitlines() if line.startswith("| `")]
        return House(lines, tuple(room for row in table for room in re.findall(r"`([^`]+)`", row)))

    def sizes(self) -> dict[str, dict[str, int]]:
        """Room → its files; what is in no room of the map comes last."""
        found: dict[str, dict[str, int]] = {room: {} for room in (*self.rooms, "elsewhere")}
        for file, count in self.lines.items():
            homes = [room for room in self.rooms if file == room or (room.endswith("/") and file.startswith(room))]
            found[max(homes, key=len, default="elsewhere")][file] = count
        return found


def here() -> House:
    """The files as they lie here."""
    return House.of(
        {file.relative_to(ROOT).as_posix(): file.read_text() for file in (*(ROOT / PACKAGE).rglob("*.py"), ROOT / MAP)}
    )


def at(revision: str) -> House:
    """The files of a revision.

    Raises:
        subprocess.CalledProcessError: git does not know it.
    """
    archive = subprocess.run(["git", "archive", revision, PACKAGE, MAP], cwd=ROOT, capture_output=True, check=True).stdout
    files = {}
    with tarfile.open(fileobj=io.BytesIO(archive)) as packed:
        for member in packed:
            content = packed.extractfile(member) if member.name.endswith((".py", ".md")) else None
            if content is not None:
                files[member.name] = content.read().decode()
    return House.of(files)


def gone(revision: str) -> list[str]:
    """A line for each file of ``revision`` that is gone."""
    command = ["git", "diff", "--name-status", "--find-renames", "--diff-filter=DR", revision, "--", PACKAGE]
    lines = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True).stdout.splitlines()
    return [" -> ".join(path.removeprefix(f"{PACKAGE}/") for path in line.split("\t")[1:]) for line in lines]


def table(now: House, before: House | None = None) -> list[str]:
    """A line for each room, one for what a reader walks through, and one for all."""
    sizes = now.sizes()
    old = before.sizes() if before is not None else {}
    rooms = [*now.rooms, *(room for room in old if room not in sizes), "elsewhere"]
    rows = [(room, sizes.get(room, {}), old.get(room, {})) for room in rooms]
    walk: tuple[dict[str, int], dict[str, int]] = ({}, {})
    whole: tuple[dict[str, int], dict[str, int]] = ({}, {})
    for room, these, those in rows:
        for both in (walk, whole) if room in WALK else (whole,):
            both[0].update(these)
            both[1].update(those)
    rows = [row for row in rows if row[1] or row[2]] + [("one candidate's way", *walk), ("all", *whole)]
    return [_line(room, these, those if before is not None else None) for room, these, those in rows]


def _line(room: str, now: Mapping[str, int], before: Mapping[str, int] | None) -> str:
    longest = max(now, key=lambda file: now[file], default="")
    line = f"{room:20} {sum(now.values()):6} lines {len(now):4} files"
    if before is not None:
        line += f"   was {sum(before.values()):6} lines {len(before):4} files"
    return f"{line}   longest {longest} {now[longest]}" if longest else line


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", metavar="REVISION", help="of git")
    against = parser.parse_args().against
    print(*table(here(), None if against is None else at(against)), sep="\n")
    if against is not None:
        print("\ngone:", *(gone(against) or ["nothing"]), sep="\n    ")


if __name__ == "__main__":
    main()
