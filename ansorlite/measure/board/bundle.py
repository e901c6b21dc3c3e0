"""What is sent to a board to begin with: the source of the few modules of ansorlite that run there."""

from __future__ import annotations

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

#: What the board executes first: makes modules of what comes, and hands the channel over.
BOOTSTRAP: Final = """
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
sys.modules["ansorlite.measure.board.agent"].serve(channel)
"""


def bundle() -> list[tuple[str, str]]:
    """The modules and their sources."""
    return [(name, _source(name)) for name in MODULES]


def _source(name: str) -> str:
    package, _, module = name.rpartition(".")
    return files(package).joinpath(f"{module}.py").read_text(encoding="utf-8")
