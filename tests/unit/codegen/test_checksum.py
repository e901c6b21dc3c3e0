"""The checksum is XXH64: published values, a slow reading of its definition, and what it must tell apart."""

from __future__ import annotations

import numpy as np
import pytest

from ansorlite.codegen.checksum import checksum

MASK = (1 << 64) - 1
P1, P2, P3, P4, P5 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5


def turned(x: int, by: int) -> int:
    return (x << by | x >> (64 - by)) & MASK


def one(total: int, lane: int) -> int:
    return turned((total + lane * P2) & MASK, 31) * P1 & MASK


def meaning(data: bytes) -> int:
    """XXH64 with seed 0, as its specification says."""
    place, total = 0, P5
    if len(data) >= 32:
        sums = [(P1 + P2) & MASK, P2, 0, -P1 & MASK]
        while place + 32 <= len(data):
            lanes = [int.from_bytes(data[place + 8 * n : place + 8 * n + 8], "little") for n in range(4)]
            sums = [one(s, lane) for s, lane in zip(sums, lanes, strict=True)]
            place += 32
        total = sum(turned(s, by) for s, by in zip(sums, (1, 7, 12, 18), strict=True)) & MASK
        for s in sums:
            total = ((total ^ one(0, s)) * P1 + P4) & MASK
    total = (total + len(data)) & MASK
    for size, mix, by, times, plus in (
        (8, lambda w: one(0, w), 27, P1, P4),
        (4, lambda w: w * P1 & MASK, 23, P2, P3),
        (1, lambda w: w * P5 & MASK, 11, P1, 0),
    ):
        while place + size <= len(data):
            word = int.from_bytes(data[place : place + size], "little")
            total = (turned(total ^ mix(word), by) * times + plus) & MASK
            place += size
    total = (total ^ total >> 33) * P2 & MASK
    total = (total ^ total >> 29) * P3 & MASK
    return total ^ total >> 32


def of(data: bytes) -> int:
    return checksum(np.frombuffer(data, np.uint8))


@pytest.mark.parametrize(
    ("data", "expected"), [(b"", 0xEF46DB3751D8E999), (b"a", 0xD24EC4F1A98C6E5B), (b"abc", 0x44BC2CF5AD770999)]
)
def test_published_values(data: bytes, expected: int) -> None:
    assert of(data) == meaning(data) == expected


def test_every_length_and_place() -> None:
    noise = np.random.default_rng(0).bytes(300)
    for begin in (0, 1, 5):
        for end in range(begin, 140):
            assert of(noise[begin:end]) == meaning(noise[begin:end])


def test_every_bit_counts() -> None:
    data = np.random.default_rng(1).integers(0, 256, 100, np.uint8)
    found = {checksum(data)}
    for bit in range(800):
        data[bit // 8] ^= 1 << bit % 8
        found.add(checksum(data))
        data[bit // 8] ^= 1 << bit % 8
    assert len(found) == 801
