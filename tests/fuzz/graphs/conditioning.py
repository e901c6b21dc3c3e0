"""How far a right result may be from the oracle's: found by running the oracle on inputs that are a little off.

Two right programs round differently, and what follows may be sensitive to it: a sum that cancels, a floor at an integer. So each
value of a graph is computed several times, with noise of a few units in the last place on what inexact operators read and give:
as much of it as there can be, then the same with the other sign, so that what is near a limit is seen on both sides of it, and a
random part of it.
Where these runs are far apart, so may right results be.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np

from tests.fuzz.graphs.operators.table import CANCELLING, EXACT, PLACED, SCALED, SINGLE
from tests.fuzz.graphs.oracle import Evaluate, SilentError
from tests.fuzz.graphs.values import Array, is_float

#: One value, as it is and with noise.
Worlds: TypeAlias = tuple[Array, ...]

#: How many runs have noise.
NOISY: Final = 3

#: Noise, and the tolerance besides what noise says: relative to an element.
_NOISE: Final = {"float64": 2.0**-50, "float32": 2.0**-21, "float16": 2.0**-9, "bfloat16": 2.0**-6}

#: Elements smaller than this may be 0.
_TINY: Final = {"float64": 1e-300, "float32": 1e-36, "float16": 2e-6, "bfloat16": 1e-36}

#: How many times the distance between the runs a result may be off.
_MARGIN: Final = 5.0

#: What the noise of each element is multiplied by.
Signs: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]


def evaluate(
    run: Evaluate, operator: str, inputs: Mapping[str, Worlds], parameters: Collection[str], rng: np.random.Generator
) -> list[Worlds]:
    """The node's results in each world.

    Raises:
        SilentError: a run failed, or results have other shapes where there is noise.
    """
    nominal = run({name: worlds[0] for name, worlds in inputs.items()})
    quiet = operator in EXACT or not any(
        is_float(array.dtype.name) for array in (*nominal, *(worlds[0] for worlds in inputs.values()))
    )
    found = [nominal]
    first = {name: _signs(worlds[0], rng) for name, worlds in inputs.items()}, [_signs(array, rng) for array in nominal]
    for n in range(1, NOISY + 1):
        own = {name: worlds[n] for name, worlds in inputs.items()}
        if quiet and all(own[name] is inputs[name][0] for name in own):
            found.append(nominal)
            continue
        if not quiet:
            read, given = first
            if n > 2:
                read, given = {name: _part(signs, rng) for name, signs in read.items()}, [_part(signs, rng) for signs in given]
            turn = -1.0 if n == 2 else 1.0
            own = {name: array if name in parameters else _noisy(array, turn * read[name]) for name, array in own.items()}
        results = run(own)
        if [array.shape for array in results] != [array.shape for array in nominal]:
            raise SilentError("its shape depends on rounding")
        around = _around(operator, list(own.values()))
        if not quiet:
            results = [
                _noisy(array, turn * signs, around, operator in SINGLE) for array, signs in zip(results, given, strict=True)
            ]
        found.append(results)
    return list(zip(*found, strict=True))


def _around(operator: str, inputs: Sequence[Array]) -> float | Signs:
    """What else than its own size a result's error is relative to."""
    if operator in PLACED:
        return max(map(_size, inputs), default=0.0)
    if operator in SCALED and is_float(inputs[0].dtype.name):
        size = np.abs(inputs[0].astype(np.float64))
        return np.where(np.isfinite(size), size, 0.0)
    return float(operator in CANCELLING)


def _signs(array: Array, rng: np.random.Generator) -> Signs:
    return rng.integers(0, 2, array.shape) * 2.0 - 1.0


def _part(signs: Signs, rng: np.random.Generator) -> Signs:
    return rng.uniform(-1, 1, signs.shape)


def _noisy(array: Array, signs: Signs, around: float | Signs = 0.0, single: bool = False) -> Array:
    """``array`` with noise, relative to its elements and to ``around``; if ``single``, no smaller than that of float32."""
    if not is_float(array.dtype.name) or not array.size:
        return array
    level = max(_NOISE[array.dtype.name], _NOISE["float32"] if single else 0.0)
    with np.errstate(all="ignore"):
        exact = array.astype(np.float64)
        noise = signs * level * (np.abs(exact) + around)
        return np.asarray((exact + noise).astype(array.dtype))


def _size(array: Array) -> float:
    """Of the largest finite element."""
    if not is_float(array.dtype.name) or not array.size:
        return 0.0
    exact = np.abs(array.astype(np.float64))
    return float(np.max(np.where(np.isfinite(exact), exact, 0)))


@dataclass(frozen=True, eq=False)
class Expected:
    """
    Attributes:
        array: what the oracle gives.
        allowed: for each element, how far a result may be from it; infinite where anything may be right.
    """

    array: Array
    allowed: np.ndarray[Any, np.dtype[np.float64]]

    @staticmethod
    def of(worlds: Worlds) -> Expected:
        nominal, *others = worlds
        dtype = nominal.dtype.name
        with np.errstate(all="ignore"):
            if not is_float(dtype):
                same = np.logical_and.reduce([nominal == other for other in others])
                return Expected(nominal, np.where(same, 0.0, np.inf))
            exact = nominal.astype(np.float64)
            spread = np.zeros(exact.shape)
            for other in others:
                apart = np.abs(other.astype(np.float64) - exact)
                alike = (exact == other) | (np.isnan(exact) & np.isnan(other))
                spread = np.maximum(spread, np.where(alike, 0.0, np.where(np.isnan(apart), np.inf, apart)))
            allowed = _MARGIN * spread + 2 * _NOISE[dtype] * np.where(np.isfinite(exact), np.abs(exact), 0) + _TINY[dtype]
            # Beyond the largest number of a dtype, one program gives it and another one infinity.
            huge = np.abs(exact) > float(_largest(dtype)) * (1 - 4 * _NOISE[dtype])
            return Expected(nominal, np.where(huge & np.isfinite(exact), np.inf, allowed))

    def wrong(self, found: Array) -> str:
        """What is wrong with a result; nothing if it is right."""
        if found.dtype != self.array.dtype:
            return f"dtype {found.dtype}, not {self.array.dtype}"
        if found.shape != self.array.shape:
            return f"shape {found.shape}, not {self.array.shape}"
        with np.errstate(all="ignore"):
            if not is_float(found.dtype.name):
                bad = (found != self.array) & (self.allowed == 0)
            else:
                ours, theirs = found.astype(np.float64), self.array.astype(np.float64)
                alike = (ours == theirs) | (np.isnan(ours) & np.isnan(theirs))
                bad = ~(alike | (np.abs(ours - theirs) <= self.allowed) | np.isinf(self.allowed))
        if not bad.any():
            return ""
        place = tuple(int(i) for i in np.argwhere(bad)[0])
        of = f"{int(bad.sum())} of {bad.size} elements are wrong"
        return f"{of}, first at {place}: {found[place]!r}, not {self.array[place]!r} (may be {self.allowed[place]:.2g} off)"


def _largest(dtype: str) -> float:
    return {"float64": 1.797e308, "float32": 3.4e38, "float16": 65504.0, "bfloat16": 3.38e38}[dtype]
