"""Which target a board is. What it says of itself is checked, and no word of it is handed to LLVM."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

from ansorlite.errors import TargetError, TuningError
from ansorlite.measure.board.bundle import FACTS, SAY_FACTS, sources
from ansorlite.measure.board.connection import execnet_spec, said_by
from ansorlite.processor import lacking
from ansorlite.target import LEVELS, Target
from ansorlite.visible import visible

#: Numbers beyond these are no facts.
_MOST_CORES: Final = 1 << 12
_MOST_BYTES: Final = 1 << 40
_LONGEST: Final = 200


@dataclass(frozen=True)
class Probed:
    """A board, as it describes itself.

    Attributes:
        level: name of the target that its programs are compiled for.
        target: that, with the board's cores and caches.
        name: of its processor.
        python, numpy: versions there; ``numpy`` is empty if it is not installed.
    """

    level: str
    target: Target
    name: str
    python: str
    numpy: str


def probe(address: str) -> Probed:
    """Ask a board.

    Args:
        address: ``ssh://user@host`` or ``popen://python3``.

    Raises:
        TargetError: the address is none, or no programs are made for such a machine.
        TuningError: the board cannot be reached, or does not say what it should.
    """
    try:
        said = said_by(execnet_spec(address), SAY_FACTS, sources(FACTS))
    except OSError as error:
        raise TuningError(f"the board {address} cannot be reached: {error}") from error
    try:
        return _probed(said)
    except TargetError:
        raise
    except (TypeError, ValueError, KeyError) as error:
        raise TuningError(f"the board {address} does not describe itself as it should: {str(error)[:_LONGEST]}") from error


def _probed(said: Any) -> Probed:
    """
    Raises:
        TypeError, ValueError, KeyError: it says something else.
        TargetError: no programs are made for it.
    """
    if not isinstance(said, dict):
        raise TypeError("it sends no facts")
    architecture, sets = _word(said["architecture"]), said["sets"]
    if not isinstance(sets, list | tuple) or not all(isinstance(each, str) for each in sets):
        raise TypeError("its instruction sets are no words")
    length = _number(said["sve_bytes"], 0, 256)
    caches = [_number(each, 0, _MOST_BYTES) for each in said["caches"]]
    level = _level(architecture, frozenset(sets), length)
    found = LEVELS[level]
    l1, l2, l3 = (nbytes or usual for nbytes, usual in zip(caches, (found.l1, found.l2, found.l3), strict=True))
    target = replace(found, threads=_number(said["cores"], 1, _MOST_CORES), l1=l1, l2=l2, l3=l3)
    return Probed(level, target, _word(said["name"]), _word(said["python"]), _word(said["numpy"]))


def _level(architecture: str, sets: frozenset[str], sve_bytes: int) -> str:
    """The name of the target with most instruction sets, all of which are there."""
    known = {name: target for name, target in LEVELS.items() if target.architecture == architecture}
    fitting = {
        name: target
        for name, target in known.items()
        if not lacking([feature[1:] for feature in target.features.split(",")], sets) and target.sve_bytes in (None, sve_bytes)
    }
    if not fitting:
        most = f"; it lacks what the least of {', '.join(known)} needs" if known else ""
        raise TargetError(f"no programs are made for such a board ({architecture}){most}")
    return max(fitting, key=lambda name: len(fitting[name].features.split(",")))


def _word(value: object) -> str:
    if not isinstance(value, str) or len(value) > _LONGEST:
        raise TypeError(f"{str(value)[:80]!r} is no word")
    return visible(value)


def _number(value: object, least: int, most: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise ValueError(f"{str(value)[:80]!r} is no number from {least} to {most}")
    return value
