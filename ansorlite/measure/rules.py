"""Derivation rules of a user's own, by name: workers are separate processes, so a rule cannot be handed to them as it is."""

from __future__ import annotations

import importlib
from pathlib import Path

from ansorlite.errors import ArgumentError
from ansorlite.python_file import module_of
from ansorlite.sketch.state import Rule


def rules_from(place: str) -> tuple[Rule, ...]:
    """The rules that ``place`` names: ``"file.py:NAME"`` or ``"package.module:NAME"``, a sequence of rules.

    A file is run to get at its rules, in every worker too: what it does besides belongs under
    ``if __name__ == "__main__":``.

    Raises:
        ArgumentError: there is no such file, module or name, or it is not a sequence of rules.
    """
    module_name, _, name = place.rpartition(":")
    if not module_name:
        raise ArgumentError(f"{place!r} does not name rules; write file.py:NAME or package.module:NAME")
    try:
        module = module_of(Path(module_name)) if module_name.endswith(".py") else importlib.import_module(module_name)
    except ImportError as error:
        raise ArgumentError(f"the rules {place!r} cannot be loaded: {error}") from error
    rules = getattr(module, name, None)
    if not isinstance(rules, list | tuple) or not all(isinstance(rule, Rule) for rule in rules):
        raise ArgumentError(f"{name} in {module_name} is not a sequence of derivation rules; name a tuple of them")
    return tuple(rules)
