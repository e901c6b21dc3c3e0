"""Packages whose public names are imported when they are first used (PEP 562).

Nobody who loads a model waits for what only tuning needs. A module that may do without some of a package imports the package,
and takes names from it where it needs them: ``from ansorlite import spaces``, then ``spaces.derive(task)``. No module imports the
package that it is in: every other one of it would be behind that. What it may do without of its own package it names alone, by
:func:`module`.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Mapping
from typing import Any

from ansorlite.errors import ExtraError


def module(name: str) -> Any:
    """The module ``name``, imported when something of it is used; for type checkers it is imported under ``TYPE_CHECKING``."""
    return _Later(name)


def need(what: str, package: str, extra: str) -> None:
    """See to it that what ``what`` is made with is installed.

    Raises:
        ExtraError: it is not.
    """
    if importlib.util.find_spec(package) is None:
        raise ExtraError(f"{what} needs {package}, which is not installed; pip install 'ansorlite[{extra}]'")


class _Later:
    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(importlib.import_module(self._name), attribute)


def attributes(package: str, homes: Mapping[str, str], extra: str = "") -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The ``__getattr__`` and ``__dir__`` of ``package``; for type checkers it imports the same names under ``TYPE_CHECKING``.

    Args:
        homes: public name → the module that has it.
        extra: of ansorlite, which installs what these modules import; a name that is used without it is an
            :class:`~ansorlite.errors.ExtraError`.
    """

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        try:
            home = importlib.import_module(homes[name])
        except ModuleNotFoundError as error:
            if not extra or (error.name or "").partition(".")[0] == __name__.partition(".")[0]:
                raise
            raise ExtraError(
                f"{error.name} is not installed, and {name} needs it; install it with: pip install 'ansorlite[{extra}]'"
            ) from error
        value = getattr(home, name)
        setattr(sys.modules[package], name, value)  # not asked again
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *homes})

    return get, names
