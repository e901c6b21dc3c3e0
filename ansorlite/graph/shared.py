"""Weights that the programs of a model have in common: of equal bytes, constants as they are or prepared, there is one copy."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from threading import Lock
from weakref import WeakValueDictionary

from ansorlite.alignment import aligned
from ansorlite.codegen.entry import Address
from ansorlite.graph.graph import Array
from ansorlite.graph.layout import WEIGHTS, MemoryLayout
from ansorlite.runtime.arguments import address_of
from ansorlite.runtime.workspace import zeros


@dataclass(frozen=True, eq=False)
class _Piece:
    """Bytes in the block of the program that had them first."""

    block: Array
    offset: int


@dataclass(frozen=True, eq=False)
class Weights:
    """The weights of a program.

    Attributes:
        own: a block of what it keeps itself.
        others: blocks of other programs, in the order of their numbers in the layout.
        pieces: what it uses of all of them. A piece is known to other programs for as long as one holds it.
    """

    own: Array
    others: tuple[Array, ...] = ()
    pieces: tuple[_Piece, ...] = ()

    @property
    def addresses(self) -> tuple[int, ...]:
        """Of the blocks, the own one first."""
        return tuple(address_of(block) for block in (self.own, *self.others))


class SharedWeights:
    """What the programs of a model have of weights. Any number of threads may store at once."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._known: WeakValueDictionary[bytes, _Piece] = WeakValueDictionary()

    def store(self, layout: MemoryLayout, weights: Array) -> tuple[MemoryLayout, Weights]:
        """Keep what is new of ``weights``; find the rest where it is.

        Args:
            layout: where everything is in ``weights``.

        Returns:
            Where everything is now, and the blocks.
        """
        digests = {}
        for item, address in layout.weights.items():
            content = weights[address.offset : address.offset + layout.weight_bytes_of(item)]
            digests[item] = hashlib.blake2b(content.data, digest_size=32).digest()
        with self._lock:
            known = {digest: piece for digest in digests.values() if (piece := self._known.get(digest)) is not None}
            fresh = {digest: item for item, digest in digests.items() if digest not in known}
            own = zeros(sum(aligned(layout.weight_bytes_of(item)) for item in fresh.values()))
            end = 0
            for digest, item in fresh.items():
                size, begin = layout.weight_bytes_of(item), layout.weights[item].offset
                own[end : end + size] = weights[begin : begin + size]
                self._known[digest] = known[digest] = _Piece(own, end)
                end += aligned(size)
        others = {id(piece.block): piece.block for piece in known.values() if piece.block is not own}
        numbers = {id(own): WEIGHTS} | {block: layout.blocks + number for number, block in enumerate(others)}
        places = {item: Address(numbers[id(known[digest].block)], known[digest].offset) for item, digest in digests.items()}
        return replace(layout, weights=places), Weights(own, tuple(others.values()), tuple(known.values()))
