"""Loops about caches, pages and memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ansorlite.alignment import CACHE_LINE
from ansorlite.calibration.loop import HEAD, Loop

Body = Callable[[Loop], int]

#: An odd number: its multiples modulo a power of two are in no order that a prefetcher follows, and each comes once.
_SCATTER: Final = 0x9E3779B1
PAGE: Final = 4096


def _scattered(loop: Loop, places: int) -> str:
    """A number below ``places``, a power of two, other ones in the turns to come."""
    product = loop.b.op(f"mul i64 %turn, {_SCATTER}")
    return loop.b.op(f"and i64 {product}, {places - 1}")


def runs(nbytes: int, lines: int) -> Body:
    """Runs of so many lines, anywhere in ``nbytes``; a turn is a run."""

    def body(loop: Loop) -> int:
        words = f"<{loop.lanes} x i32>"
        first = loop.b.op(f"mul i64 {_scattered(loop, _floor(nbytes // (CACHE_LINE * lines)))}, {CACHE_LINE * lines}")
        place = loop.b.op(f"add i64 {first}, {HEAD}")
        for line, chain in enumerate(loop.chains(words, lines)):
            here = loop.b.op(f"add i64 {place}, {CACHE_LINE * line}")
            loop.depend(chain, loop.load(words, here), words)
        return 1

    return body


def pages(count: int) -> Body:
    """One line of each of so many pages, a power of two; a turn is a page. Lines of neighbouring pages are in other sets."""

    def body(loop: Loop) -> int:
        page = _scattered(loop, count)
        line = loop.b.op(f"and i64 {page}, {PAGE // CACHE_LINE - 1}")
        inside = loop.b.op(f"mul i64 {line}, {CACHE_LINE}")
        first = loop.b.op(f"mul i64 {page}, {PAGE}")
        place = loop.b.op(f"add i64 {loop.b.op(f'add i64 {first}, {inside}')}, {HEAD}")
        chain = loop.carried("i32")
        loop.depend(chain, loop.load("i32", place), "i32")
        return 1

    return body


def _floor(n: int) -> int:
    """The largest power of two that is not above ``n``."""
    return 1 << (n.bit_length() - 1)
