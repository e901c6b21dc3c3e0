"""float16 and back, with and without the instructions: every number there is, and what lies around halfway."""

from __future__ import annotations

from typing import Final

import numpy as np
import pytest

from ansorlite.codegen import assembly
from ansorlite.codegen.half import converts
from ansorlite.loops.nodes import Function, LoopKind
from ansorlite.platforms import build
from ansorlite.target import LEVELS, host
from ansorlite.te.expr import cast
from tests.running import run
from tests.unit.loops.build import argument, load, loop, store

#: Every float16: all bits that there are.
EVERY: Final = np.arange(1 << 16, dtype=np.uint16).view(np.float16)


def conversion(source: str, result: str, n: int, lanes: int) -> Function:
    x, z = argument("X", n, dtype=source), argument("Z", n, dtype=result)
    body = loop("i", n, lambda i: store(z, (i,), cast(load(x, i), result)), LoopKind.VECTORIZED, lanes)
    return Function(f"convert_{lanes}", (x, z), 1, body)


def converted(x: np.ndarray, result: str, lanes: int) -> np.ndarray:
    out = np.zeros(x.shape, result)
    run(conversion(x.dtype.name, result, x.size, lanes), host(1), x, out)
    return out


def assert_same(found: np.ndarray, expected: np.ndarray) -> None:
    """To the sign of zeros; NaN is NaN."""
    np.testing.assert_array_equal(found, expected)
    numbers = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(found[numbers]), np.signbit(expected[numbers]))


@pytest.mark.parametrize("lanes", [1, 16])
def test_every_float16_is_widened(lanes: int) -> None:
    assert_same(converted(EVERY, "float32", lanes), EVERY.astype(np.float32))


@pytest.mark.parametrize("lanes", [1, 16])
def test_to_the_nearest_half_to_even(lanes: int) -> None:
    """Each float16, halfway to the next, and the float32 on both sides of each; numbers of every size; every kind of NaN."""
    finite = np.sort(EVERY[np.isfinite(EVERY)].astype(np.float32))
    halfway = finite[:-1] + (finite[1:] - finite[:-1]) / 2
    largest = np.array([65504, 65519.996, 65520, 65536, 1e30, np.inf, 2.0**-149, 2.0**-126], np.float32)
    some = np.concatenate([finite, halfway, largest, -largest])
    around = [np.nextafter(some, np.float32(way), dtype=np.float32) for way in (-np.inf, np.inf)]
    bits = np.random.default_rng(0).integers(0, 1 << 32, 50_000, dtype=np.uint32).view(np.float32)
    nans = np.array([0x7F800001, 0x7FC00000, 0xFF800001, 0xFFFFFFFF, 0x7FFFFFFF], np.uint32).view(np.float32)
    x = np.concatenate([some, *around, bits, nans])
    with np.errstate(all="ignore"):
        assert_same(converted(x, "float16", lanes), x.astype(np.float16))


@pytest.mark.parametrize("lanes", [1, 16])
def test_float64_is_rounded_once(lanes: int) -> None:
    finite = np.sort(EVERY[np.isfinite(EVERY)].astype(np.float64))
    halfway = finite[:-1] + (finite[1:] - finite[:-1]) / 2
    x = np.concatenate([halfway, halfway * (1 - 2.0**-40), halfway * (1 + 2.0**-40)])
    with np.errstate(all="ignore"):
        assert_same(converted(x, "float16", lanes), x.astype(np.float16))


@pytest.mark.parametrize("name", LEVELS)
def test_no_target_calls_a_function_for_it(name: str) -> None:
    target = LEVELS[name]
    for source, result in (("float16", "float32"), ("float32", "float16"), ("float64", "float16"), ("int32", "float16")):
        text = assembly(build(conversion(source, result, 64, 8), target), target)
        assert "__" not in text
        if converts(target):
            assert "cvtph2ps" in text or "cvtps2ph" in text or "fcvt" in text
