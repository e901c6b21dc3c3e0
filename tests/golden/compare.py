"""Texts kept beside the tests: compared as they are, or written anew."""

from __future__ import annotations

from difflib import unified_diff
from pathlib import Path

HERE = Path(__file__).parent


def compare(name: str, text: str, update: bool) -> None:
    """Assert that ``text`` is what the file ``name`` says, or make it say so.

    Raises:
        AssertionError: with the differences, and how to accept them.
    """
    path = HERE / name
    if update:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text + "\n")
        return
    kept = path.read_text() if path.exists() else ""
    if kept != text + "\n":
        lines = unified_diff(kept.splitlines(), text.splitlines(), f"{name} as kept", f"{name} as it is now", lineterm="")
        diff = "\n".join(lines)
        raise AssertionError(f"{diff}\n\nIf the new text is right: pytest tests/golden --update-golden")
