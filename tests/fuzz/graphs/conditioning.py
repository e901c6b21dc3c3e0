"""How far a right result may be from the oracle's: found by running the oracle on inputs that are a little off.

Two right programs round differently, and what follows may be sensitive to it: a sum that cancels, a floor at an integer. So each
value of a graph is computed several times, with noise of a few units in the last place on what inexact operators read and give.
Where these runs are far apart, so may right results be.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np

from tests.fuzz.graphs.operators.table import CANCELLING, EXACT, PLACED, SINGLE
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
_MARGIN: Final = 6.0


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
    for n in range(1, NOISY + 1):
        own = {name: worlds[n] for name, worlds in inputs.items()}
        if quiet and all(own[name] is inputs[name][0] for name in own):
            found.append(nominal)
            continue
        if not quiet:
            own = {name: array if name in parameters else _noisy(array, rng) for name, array in own.items()}
        results = run(own)
        if [array.shape for array in results] != [array.shape for array in nominal]:
            raise SilentError("its shape depends on rounding")
        around = (
            max((_size(array) for array in own.values()), default=0.0) if operator in PLACED else float(operator in CANCELLING)
        )
        found.append(results if quiet else [_noisy(array, rng, around, operator in SINGLE) for array in results])
    return list(zip(*found, strict=True))


def _noisy(array: Array, rng: np.random.Generator, around: float = 0.0, single: bool = False) -> Array:
    """``array`` with noise, relative to its elements and to ``around``; if ``single``, no smaller than that of float32."""
    if not is_float(array.dtype.name) or not array.size:
        return array
    level = max(_NOISE[array.dtype.name], _NOISE["float32"] if single else 0.0)
    with np.errstate(all="ignore"):
        exact = array.astype(np.float64)
        noise = rng.uniform(-1, 1, array.shape) * level * (np.abs(exact) + around)
        return np.asarray(np.where(exact == 0, exact if not around else noise, exact + noise).astype(array.dtype))


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
