"""Stages and loops by name: how the primitives of a schedule speak of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NewType

#: The name of a tensor or a copy: one that is there, or one that a primitive makes.
Name = NewType("Name", str)


@dataclass(frozen=True)
class StageRef:
    """A stage."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class LoopRef:
    """A loop of a stage."""

    stage: str
    name: str

    def __str__(self) -> str:
        return f"{self.stage}.{self.name}"
