"""What is sent to a board to begin with: the source of the few modules of ansorlite that run there."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from typing import Final

#: In the order of their imports. They need Python and numpy, and each other.
MODULES: Final = (
    "ansorlite.alignment",
    "ansorlite.measure.settings",
    "ansorlite.runtime.timing",
    "ansorlite.runtime.pages",
    "ansorlite.measure.turns",
    "ansorlite.measure.timing",
    "ansorlite.measure.filling",
    "ansorlite.measure.board.evidence",
    "ansorlite.measure.board.agent",
)

#: The same of what a board is asked once: what it is.
FACTS: Final = ("ansorlite.processor", "ansorlite.measure.board.facts")

_MAKE: Final = """
import sys, types

def make(name, source):
    parts = name.split(".")
    for end in range(1, len(parts)):
        package = ".".join(parts[:end])
        if package not in sys.modules:
            sys.modules[package] = types.ModuleType(package)
            sys.modules[package].__path__ = []
        if end > 1:
            setattr(sys.modules[".".join(parts[:end - 1])], parts[end - 1], sys.modules[package])
    module = sys.modules[name] = types.ModuleType(name)
    exec(compile(source, name, "exec"), vars(module))
    setattr(sys.modules[name.rpartition(".")[0]], parts[-1], module)

for name, source in channel.receive():
    make(name, source)
"""

#: What the board executes first: makes modules of what comes, and hands the channel over.
BOOTSTRAP: Final = f'{_MAKE}sys.modules["ansorlite.measure.board.agent"].serve(channel)\n'

#: The same to be told what the board is.
SAY_FACTS: Final = f'{_MAKE}channel.send(sys.modules["ansorlite.measure.board.facts"].facts())\n'


def sources(modules: Sequence[str] = MODULES) -> list[tuple[str, str]]:
    """Modules and their sources."""
    return [(name, _source(name)) for name in modules]


def _source(name: str) -> str:
    package, _, module = name.rpartition(".")
    return files(package).joinpath(f"{module}.py").read_text(encoding="utf-8")
