"""Weights that the programs of a model have in common: of equal bytes, constants as they are or prepared, there is one copy."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from threading import Lock
from weakref import WeakValueDictionary

from ansorlite.alignment import aligned
from ansorlite.codegen.entry import Address
from ansorlite.graph.layout import WEIGHTS, MemoryLayout
from ansorlite.runtime.device import Memory, MemorySpace


@dataclass(frozen=True, eq=False)
class _Piece:
    """Bytes in the block of the program that had them first."""

    block: Memory
    offset: int


@dataclass(frozen=True, eq=False)
class Weights:
    """The weights of a program.

    Attributes:
        own: memory of what it keeps itself.
        others: memory of other programs, in the order of their numbers in the layout.
        pieces: what it uses of all of them. A piece is known to other programs for as long as one holds it.
    """

    own: Memory
    others: tuple[Memory, ...] = ()
    pieces: tuple[_Piece, ...] = ()

    @property
    def addresses(self) -> tuple[int, ...]:
        """Of the blocks, the own one first."""
        return tuple(block.address for block in (self.own, *self.others))


class SharedWeights:
    """What the programs of a model have of weights. Any number of threads may store at once."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._known: WeakValueDictionary[bytes, _Piece] = WeakValueDictionary()

    def store(self, space: MemorySpace, layout: MemoryLayout, weights: Memory) -> tuple[MemoryLayout, Weights]:
        """Keep what is new of ``weights``; find the rest where it is.

        Args:
            space: the memory that the model runs in.
            layout: where everything is in ``weights``.

        Returns:
            Where everything is now, and the blocks.
        """
        space.copy_out(weights)
        content, digests = weights.array, {}
        for item, address in layout.weights.items():
            piece_of = content[address.offset : address.offset + layout.weight_bytes_of(item)]
            digests[item] = hashlib.blake2b(piece_of.data, digest_size=32).digest()
        with self._lock:
            known = {digest: piece for digest in digests.values() if (piece := self._known.get(digest)) is not None}
            fresh = {digest: item for item, digest in digests.items() if digest not in known}
            own = space.alloc(sum(aligned(layout.weight_bytes_of(item)) for item in fresh.values()))
            end = 0
            for digest, item in fresh.items():
                size, begin = layout.weight_bytes_of(item), layout.weights[item].offset
                own.array[end : end + size] = content[begin : begin + size]
                self._known[digest] = known[digest] = _Piece(own, end)
                end += aligned(size)
            space.copy_in(own)
        others = {id(piece.block): piece.block for piece in known.values() if piece.block is not own}
        numbers = {id(own): WEIGHTS} | {block: layout.blocks + number for number, block in enumerate(others)}
        places = {item: Address(numbers[id(known[digest].block)], known[digest].offset) for item, digest in digests.items()}
        return replace(layout, weights=places), Weights(own, tuple(others.values()), tuple(known.values()))
