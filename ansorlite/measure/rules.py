"""Derivation rules of a user's own, by name: workers are separate processes, so a rule cannot be handed to them as it is."""

from __future__ import annotations

from ansorlite.errors import ArgumentError
from ansorlite.python_file import named
from ansorlite.sketch.state import Rule


def rules_from(place: str) -> tuple[Rule, ...]:
    """The rules that ``place`` names: ``"file.py:NAME"`` or ``"package.module:NAME"``, a sequence of rules.

    A file is run to get at its rules, in every worker too: what it does besides belongs under
    ``if __name__ == "__main__":``.

    Raises:
        ArgumentError: there is no such file, module or name, running it raises, or it is not a sequence of rules.
    """
    rules = named("rules", place)
    if not isinstance(rules, list | tuple) or not all(isinstance(rule, Rule) for rule in rules):
        raise ArgumentError(f"{place} is not a sequence of derivation rules; name a tuple of them")
    return tuple(rules)
