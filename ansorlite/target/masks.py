"""Which loads and stores of a target are masked by one instruction, and what is stored where that is slow."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from ansorlite.once import once_for_each
from ansorlite.target.facts import Target
from ansorlite.te import dtypes


def masks_natively(target: Target, stored: Collection[str]) -> bool:
    """Whether masked loads and stores of these dtypes are instructions (LLVM writes branches otherwise)."""
    return masks(least_masked(target), stored)


def masks(least: int | None, stored: Collection[str]) -> bool:
    """The same, given what :func:`least_masked` says of the target."""
    return least is not None and all(dtypes.size(dtype) >= least for dtype in stored)


@once_for_each
def least_masked(target: Target) -> int | None:
    """Bytes of the smallest elements of which loads and stores are masked; ``None``: none are."""
    features = target.features.split(",")
    if "+avx512bw" in features or target.sve_bytes is not None:
        return 1
    return 4 if "+avx2" in features else None


@once_for_each
def stores_in_pieces(target: Target) -> bool:
    """Whether the lanes that are on, where they are known, are stored as powers of two side by side, without a mask.

    A masked store of AVX2 takes 12 cycles on Zen 3, AVX-512's one.
    """
    features = target.features.split(",")
    return "+avx2" in features and "+avx512vl" not in features


def powers_of_two(count: int) -> Iterator[tuple[int, int]]:
    """Where pieces of a power of two elements begin that are ``count`` together, the longest first, and how long they are."""
    begin = 0
    while begin < count:
        width = 1 << ((count - begin).bit_length() - 1)
        yield begin, width
        begin += width
