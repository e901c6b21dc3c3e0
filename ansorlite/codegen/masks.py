"""Which loads and stores of a target are masked by one instruction."""

from __future__ import annotations

from collections.abc import Collection

from ansorlite.once import once_for_each
from ansorlite.target import Target
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
