"""Compiled kernels: loading, calling and timing them."""

from typing import TYPE_CHECKING, Final

from ansorlite import lazy

if TYPE_CHECKING:
    from ansorlite.runtime.peaks import measure_peaks

__all__ = ["measure_peaks"]

#: What only a profile needs.
_HOMES: Final = {"measure_peaks": "ansorlite.runtime.peaks"}

__getattr__, __dir__ = lazy.attributes(__name__, _HOMES)
