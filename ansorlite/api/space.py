"""What ``space=`` takes, resolved."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TypeAlias

from ansorlite.errors import ArgumentError
from ansorlite.python_file import module_of
from ansorlite.sketch import spaces

#: A function that schedules, several of them, an object that makes sketches, rules, or where one of these is.
Space: TypeAlias = spaces.Given | str


def space_of(given: Space | None) -> spaces.SpaceBuilder | None:
    """What makes the sketches of tasks; ``None`` for the derivation rules of their targets.

    Args:
        given: what the user gave; of a text ``"file.py:NAME"`` or ``"package.module:NAME"`` what is there. A file is run to get
            at it: what it does besides belongs under ``if __name__ == "__main__":``.

    Raises:
        ArgumentError: there is no such file, module or name, or it is no space.
    """
    if given is None:
        return None
    return spaces.builder_of(_named(given) if isinstance(given, str) else given)


def _named(place: str) -> spaces.Given:
    module_name, _, name = place.rpartition(":")
    if not module_name:
        raise ArgumentError(f"{place!r} does not name a space; write file.py:NAME or package.module:NAME")
    try:
        module = module_of(Path(module_name)) if module_name.endswith(".py") else importlib.import_module(module_name)
    except ImportError as error:
        raise ArgumentError(f"the space {place!r} cannot be loaded: {error}") from error
    if not hasattr(module, name):
        raise ArgumentError(f"there is no {name} in {module_name}; name a function that schedules, or a sequence of them")
    found: spaces.Given = getattr(module, name)
    return found
