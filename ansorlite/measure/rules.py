"""Derivation rules of a user's own, by name: workers are separate processes, so a rule cannot be handed to them as it is."""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path
from types import ModuleType

from ansorlite.errors import TuningError
from ansorlite.sketch.state import Rule


def rules_from(place: str) -> tuple[Rule, ...]:
    """The rules that ``place`` names: ``"file.py:NAME"`` or ``"package.module:NAME"``, a sequence of rules.

    A file is run to get at its rules, in every worker too: what it does besides belongs under
    ``if __name__ == "__main__":``.

    Raises:
        TuningError: there is no such file, module or name, or it is not a sequence of rules.
    """
    module_name, _, name = place.rpartition(":")
    if not module_name:
        raise TuningError(f"{place!r} does not name rules; write file.py:NAME or package.module:NAME")
    if module_name.endswith(".py") and not Path(module_name).is_file():
        raise TuningError(f"there is no file {module_name}, which the rules {place!r} should be in; give the path of one")
    try:
        module = _from_file(Path(module_name)) if module_name.endswith(".py") else importlib.import_module(module_name)
    except (ImportError, OSError) as error:
        raise TuningError(f"the rules {place!r} cannot be loaded: {error}") from error
    rules = getattr(module, name, None)
    if not isinstance(rules, list | tuple) or not all(isinstance(rule, Rule) for rule in rules):
        raise TuningError(f"{name} in {module_name} is not a sequence of derivation rules; name a tuple of them")
    return tuple(rules)


def _from_file(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
