"""Loops about caches, pages and memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ansorlite.alignment import CACHE_LINE, PAGE
from ansorlite.calibration.loop import HEAD, Loop

Body = Callable[[Loop], int]

#: An odd number: its multiples modulo a power of two are in no order that a prefetcher follows, and each comes once.
_SCATTER: Final = 0x9E3779B1


def _scattered(loop: Loop, places: int) -> str:
    """A number below ``places``, a power of two, other ones in the turns to come."""
    product = loop.b.op(f"mul i64 %turn, {_SCATTER}")
    return loop.b.op(f"and i64 {product}, {places - 1}")


def runs(nbytes: int, lines: int) -> Body:
    """Runs of so many lines, anywhere in ``nbytes``; a turn is a run."""

    def body(loop: Loop) -> int:
        words = f"<{loop.lanes} x i32>"
        place = loop.b.op(f"add i64 {_run(loop, nbytes, lines)}, {HEAD}")
        for line, chain in enumerate(loop.chains(words, lines)):
            here = loop.b.op(f"add i64 {place}, {CACHE_LINE * line}")
            loop.depend(chain, loop.load(words, here), words)
        return 1

    return body


def pages(count: int) -> Body:
    """One line of each of so many pages; a turn is a page. Lines of neighbouring pages are in other sets.

    Each load waits for the one before it: of independent ones even a distant address is found in time.
    """

    def body(loop: Loop) -> int:
        # The upper half of a product with what is scattered over 32 bits is below the other factor, whatever that is.
        page = loop.b.op(f"lshr i64 {loop.b.op(f'mul i64 {_scattered(loop, 1 << 32)}, {count}')}, 32")
        line = loop.b.op(f"and i64 {page}, {PAGE // CACHE_LINE - 1}")
        inside = loop.b.op(f"mul i64 {line}, {CACHE_LINE}")
        first = loop.b.op(f"mul i64 {page}, {PAGE}")
        place = loop.b.op(f"add i64 {loop.b.op(f'add i64 {first}, {inside}')}, {HEAD}")
        before = loop.carried("i64")
        # Elements are 0, as is the last bit of the first value.
        waiting = loop.b.op(f"add i64 {place}, {loop.b.op(f'and i64 {before}, 1')}")
        loop.then(before, loop.load("i64", waiting))
        return 1

    return body


def streamed(nbytes: int, products: int) -> Body:
    """Vectors one after another from ``nbytes``, each multiplied into so many accumulators."""

    def body(loop: Loop) -> int:
        width, vectors = loop.target.vector_bytes, _groups(loop, products)
        first = loop.b.op(f"and i64 {loop.b.op(f'mul i64 %turn, {vectors * width}')}, {_floor(nbytes) - 1}")
        return _multiplied(loop, first, vectors, products)

    return body


def scattered(nbytes: int, lines: int, products: int) -> Body:
    """As :func:`streamed`, from runs of so many lines anywhere in ``nbytes``."""

    def body(loop: Loop) -> int:
        vectors = max(CACHE_LINE * lines // loop.target.vector_bytes, 1)
        return _multiplied(loop, _run(loop, nbytes, lines), vectors, products)

    return body


def beside(nbytes: int, streams: int, lines: int, products: int) -> Body:
    """As :func:`streamed`, from so many runs side by side, a power of two, in turns so many lines of each."""

    def body(loop: Loop) -> int:
        piece = CACHE_LINE * lines
        long = _floor(nbytes // streams)
        number = loop.b.op(f"and i64 %turn, {streams - 1}")
        # Runs a power of two apart would displace one another.
        first = loop.b.op(f"mul i64 {number}, {long + piece}")
        inside = loop.b.op(f"mul i64 {loop.b.op(f'udiv i64 %turn, {streams}')}, {piece}")
        place = loop.b.op(f"add i64 {first}, {loop.b.op(f'and i64 {inside}, {long - 1}')}")
        return _multiplied(loop, place, max(piece // loop.target.vector_bytes, 1), products)

    return body


def _multiplied(loop: Loop, first: str, vectors: int, products: int) -> int:
    """So many vectors from the byte ``first`` on, each multiplied into so many accumulators, the next one into others."""
    place, one = loop.b.op(f"add i64 {first}, {HEAD}"), loop.constant(loop.vector)
    chains = loop.chains(loop.vector, products * min(_groups(loop, products), vectors))
    sums = list(chains)
    for number in range(vectors):
        value = loop.load(loop.vector, loop.b.op(f"add i64 {place}, {loop.target.vector_bytes * number}"))
        for each in range(products * number, products * (number + 1)):
            sums[each % len(sums)] = loop.fma(one, value, sums[each % len(sums)])
    for chain, total in zip(chains, sums, strict=True):
        loop.then(chain, total)
    return vectors


def _groups(loop: Loop, products: int) -> int:
    """How many groups of so many accumulators find registers."""
    return max((loop.target.vector_registers - 4) // products, 1)


def _run(loop: Loop, nbytes: int, lines: int) -> str:
    """Where in ``nbytes`` a run of so many lines begins, somewhere else each turn."""
    return loop.b.op(f"mul i64 {_scattered(loop, _floor(nbytes // (CACHE_LINE * lines)))}, {CACHE_LINE * lines}")


def _floor(n: int) -> int:
    """The largest power of two that is not above ``n``."""
    return 1 << (n.bit_length() - 1)
