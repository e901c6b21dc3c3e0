"""How far a right result may be from the oracle's: found by running the oracle on inputs that are a little off.

Two right programs round differently, and what follows may be sensitive to it: a sum that cancels, a floor at an integer. So each
value of a graph is computed several times, with noise of a few units in the last place on what inexact operators read and give:
as much of it as there can be, each time also with the other sign, so that what is near a limit is seen on both sides of it. Two
elements that differ in one coordinate, as those that a maximum chooses from, once move apart. The last time it is a random part,
and what is smaller than its noise is 0.
Where these runs are far apart, so may right results be.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np

from tests.fuzz.graphs.operators.table import CANCELLING, EXACT, NORMALIZING, PLACED, SCALED, SINGLE, STAGED
from tests.fuzz.graphs.oracle import Evaluate, SilentError
from tests.fuzz.graphs.values import Array, is_float

#: One value, as it is and with noise.
Worlds: TypeAlias = tuple[Array, ...]

#: Bits of coordinates by which neighbours are told apart.
_BITS: Final = 4

#: How many runs have noise.
NOISY: Final = 2 * (1 + _BITS) + 1

#: Noise, and the tolerance besides what noise says: relative to an element.
_NOISE: Final = {"float64": 2.0**-50, "float32": 2.0**-21, "float16": 2.0**-10, "bfloat16": 2.0**-7}

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
    exact = {name: worlds[0] for name, worlds in inputs.items()}
    nominal = run(exact)
    quiet = operator in EXACT or not any(is_float(array.dtype.name) for array in (*nominal, *exact.values()))
    found = [nominal]
    least = _NOISE["float32"] if operator in SINGLE else 0.0
    noisy = [] if quiet else [name for name in inputs if name not in parameters]
    read = {name: _patterns(exact[name], rng) for name in noisy}
    given = [] if quiet else [_patterns(array, rng) for array in nominal]
    for n in range(NOISY):
        own = {name: worlds[n + 1] for name, worlds in inputs.items()}
        if quiet and all(own[name] is exact[name] for name in own):
            found.append(nominal)
            continue
        own |= {name: _noisy(own[name], read[name][n], least=least) for name in noisy}
        results = run(own)
        if [array.shape for array in results] != [array.shape for array in nominal]:
            raise SilentError("its shape depends on rounding")
        if not quiet:
            # In two runs a result's own noise adds to what its inputs' noise makes, and never cancels it.
            signs = [_along(a, b, whole[n]) if n < 2 else whole[n] for a, b, whole in zip(results, nominal, given, strict=True)]
            around = [_around(operator, list(own.values()), _level(array, least)) for array in results]
            results = [
                _noisy(array, s, noise, least, to_zero=n == NOISY - 1)
                for array, s, noise in zip(results, signs, around, strict=True)
            ]
        found.append(results)
    return list(zip(*found, strict=True))


def _around(operator: str, inputs: Sequence[Array], level: float) -> float | Signs:
    """What else than its own size a result's error is as large as; relative to that, it is ``level``."""
    # Narrow floats are mostly computed in float32 and rounded once, so that what cancels is as precise as that.
    fine = level if operator in STAGED else min(level, _NOISE["float32"])
    if operator in PLACED:
        # Each dimension's result is rounded; so are places up to the extent, to float32, whatever the data is.
        return max(map(_size, inputs), default=0.0) * (level + _NOISE["float32"] * max(inputs[0].shape, default=1) / 2)
    if operator in SCALED and is_float(inputs[0].dtype.name):
        size = np.abs(inputs[0].astype(np.float64))
        return np.where(np.isfinite(size), size * fine, 0.0)
    if operator in NORMALIZING:
        return fine * max([1.0, *map(_size, inputs[1:])])
    return fine if operator in CANCELLING else 0.0


def _patterns(array: Array, rng: np.random.Generator) -> list[Signs]:
    """What the noise of an array is multiplied by, run by run."""
    whole: list[Signs] = [rng.integers(0, 2, array.shape) * 2.0 - 1.0]
    for bit in range(_BITS):
        odd = np.zeros(array.shape, np.int64)
        for coordinate in np.ogrid[tuple(map(slice, array.shape))] if array.ndim else ():
            odd ^= (coordinate >> bit) & 1
        whole.append((odd * 2.0 - 1.0) * rng.choice((-1.0, 1.0)))
    return [turn * signs for signs in whole for turn in (1.0, -1.0)] + [rng.uniform(-1, 1, array.shape)]


def _along(array: Array, nominal: Array, signs: Signs) -> Signs:
    """``signs``, but where the array is another one than the nominal one, the direction that it went to."""
    if not is_float(array.dtype.name):
        return signs
    with np.errstate(all="ignore"):
        apart = np.sign(array.astype(np.float64) - nominal.astype(np.float64))
    return np.where(np.abs(apart) == 1, apart, signs)


def _level(array: Array, least: float) -> float:
    """The noise of an array's elements, relative to themselves."""
    return max(_NOISE.get(array.dtype.name, 0.0), least)


def _noisy(array: Array, signs: Signs, around: float | Signs = 0.0, least: float = 0.0, to_zero: bool = False) -> Array:
    """``array`` with noise: as large as ``around``, and as :func:`_level` of its elements.

    Args:
        to_zero: whether elements that are smaller than this become 0, by which none can be divided.
    """
    if not is_float(array.dtype.name) or not array.size:
        return array
    with np.errstate(all="ignore"):
        exact = array.astype(np.float64)
        bound = _level(array, least) * np.abs(exact) + around
        noise = np.where(np.abs(exact) <= bound, -exact, signs * bound) if to_zero else signs * bound
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
