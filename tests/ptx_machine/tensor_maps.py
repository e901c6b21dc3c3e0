"""Tensor maps: made field by field from zeros, published, acquired by who uses them; copies of boxes, which land as bulk ones.

What a map's bytes mean is known to GPUs alone; here they have a meaning of their own, so that only instructions can make one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tests.ptx_machine import barriers
from tests.ptx_machine.errors import PtxError
from tests.ptx_machine.state import WARP, Mask, State
from tests.ptx_machine.text import Instruction

#: Bytes of a map, and what its address is a multiple of; that of what is copied to is one, too.
_MAP: Final = 128
#: Bytes that strides, and the innermost side of a box, are multiples of.
_UNIT: Final = 16
#: Sides of a map, and elements of a box along one, at most.
_SIDES: Final = 5
_MOST: Final = 256
#: By field: where it lies, bytes of one value, and how many there are.
_FIELDS: Final[Mapping[str, tuple[int, int, int]]] = {
    "global_address": (0, 8, 1),
    "global_stride": (8, 5, _SIDES - 1),
    "global_dim": (28, 4, _SIDES),
    "box_dim": (48, 2, _SIDES),
    "element_stride": (58, 1, _SIDES),
    "rank": (63, 1, 1),
    "elemtype": (64, 1, 1),
    "interleave_layout": (65, 1, 1),
    "swizzle_mode": (66, 1, 1),
    "fill_mode": (67, 1, 1),
}
#: Where it is said which values were set, and where nothing is.
_SET: Final = slice(68, 72)
_EMPTY: Final = slice(72, _MAP)
#: Bytes of an element, by the number of its type: u8, u16, u32, s32, u64, s64, f16, f32, f64, bf16.
_ITEMS: Final[Mapping[int, int]] = {0: 1, 1: 2, 2: 4, 3: 4, 4: 8, 5: 8, 6: 2, 7: 4, 9: 8, 10: 2}


def _bit(field: str, number: int) -> int:
    return sum(_FIELDS[name][2] for name in list(_FIELDS)[: list(_FIELDS).index(field)]) + number


def _tensormap(s: State, instruction: Instruction, mask: Mask) -> None:
    match instruction.operation[1:]:
        case ("replace", "tile", field, "shared::cta", "b1024", kind) if field in _FIELDS:
            _replace(s, instruction, field, kind, mask)
        case ("cp_fenceproxy", "global", "shared::cta", "tensormap::generic", "release", "gpu", "sync", "aligned"):
            _publish(s, instruction, mask)
        case _:
            raise PtxError(f"unknown instruction: {instruction.text}")


def _replace(s: State, instruction: Instruction, field: str, kind: str, mask: Mask) -> None:
    begin, nbytes, many = _FIELDS[field]
    address, *ordinal, value = instruction.operands
    number = int(ordinal[0]) if ordinal else 0
    if number >= many or bool(ordinal) != (many > 1) or kind != ("b64" if nbytes in (5, 8) else "b32"):
        raise PtxError(f"unknown instruction: {instruction.text}")
    memory, addresses, values = s.memories["shared"], s.address(address), s.value(value, kind)
    for thread in np.flatnonzero(mask).tolist():
        only = np.arange(s.n) == thread
        at = memory.place(addresses[only], s.block[only], _MAP, instruction.text, _MAP)
        memory.note_load(at, _MAP, s.identities(only), s.times(only), instruction.text)
        content = memory.load(at, _MAP).copy()
        if content[0, _EMPTY].any():
            raise PtxError(f"a tensor map that was not made from zeros: {instruction.text}")
        new = int(values[thread])
        if new >= 1 << 8 * nbytes:
            raise PtxError(f"no value of a field of a tensor map: {instruction.text}")
        where = slice(begin + nbytes * number, begin + nbytes * (number + 1))
        content[0, where] = np.frombuffer(new.to_bytes(nbytes, "little"), np.uint8)
        told = int.from_bytes(content[0, _SET].tobytes(), "little") | 1 << _bit(field, number)
        content[0, _SET] = np.frombuffer(told.to_bytes(4, "little"), np.uint8)
        memory.note_store(at, content, s.identities(only), s.times(only), instruction.text)
        memory.store(at, content, instruction.text)


def _acquired(s: State) -> dict[int, set[int]]:
    """By addresses of published maps: the threads that may use it."""
    result: dict[int, set[int]] = s.copies.setdefault("tensormap", {})
    return result


def _publish(s: State, instruction: Instruction, mask: Mask) -> None:
    """``tensormap.cp_fenceproxy... [to], [from], 128;`` of whole warps."""
    text = instruction.text
    if instruction.operands[2] != str(_MAP):
        raise PtxError(f"unknown instruction: {text}")
    to, source = s.address(instruction.operands[0]), s.address(instruction.operands[1])
    warps = s.in_warps(mask)
    if (warps.any(1) & ~((s.in_warp < 0) | warps).all(1)).any() or s.threads % WARP:
        raise PtxError(f"not all threads of a warp take part: {text}")
    for warp in np.flatnonzero(warps.any(1)).tolist():
        lanes = s.in_warp[warp]
        if len(set(to[lanes])) > 1 or len(set(source[lanes])) > 1:
            raise PtxError(f"threads of a warp publish different tensor maps: {text}")
        who, when, part = s.identities_of(lanes), s.now[s.block[lanes]], s.block[lanes]
        shared, outside = s.memories["shared"], s.memories["global"]
        for memory, addresses in ((shared, source), (outside, to)):
            memory.place(addresses[lanes[:1]], part[:1], _MAP, text, _MAP)
        step, word = np.arange(WARP) * (_MAP // WARP), _MAP // WARP
        at = shared.place(source[lanes] + step, part, word, text)
        shared.note_load(at, word, who, when, text)
        values = shared.load(at, word)
        put = outside.place(to[lanes] + step, part, word, text)
        outside.note_store(put, values, who, when, text)
        outside.store(put, values, text)
        _acquired(s)[int(to[lanes[0]])] = set()


def acquire(s: State, instruction: Instruction, mask: Mask) -> None:
    """``fence.proxy.tensormap::generic.acquire.gpu [map], 128;``"""
    text = instruction.text
    if instruction.operation[3:] != ("acquire", "gpu") or instruction.operands[1] != str(_MAP):
        raise PtxError(f"unknown instruction: {text}")
    addresses = s.address(instruction.operands[0])
    for thread in np.flatnonzero(mask).tolist():
        only = np.arange(s.n) == thread
        at = s.memories["global"].place(addresses[only], s.block[only], _MAP, text, _MAP)
        s.memories["global"].note_load(at, _MAP, s.identities(only), s.times(only), text)
        found = _acquired(s).get(int(addresses[thread]))
        if found is None:
            raise PtxError(f"no tensor map was published there: {text}")
        found.update(s.identities(only).tolist())


@dataclass(frozen=True)
class _Map:
    """What its bytes say.

    Attributes:
        sides: of the array; innermost first, as all.
        strides: bytes from one element to the next along each side.
    """

    address: int
    item: int
    sides: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]

    @staticmethod
    def of(content: NDArray[np.uint8], text: str) -> _Map:
        told = int.from_bytes(content[_SET].tobytes(), "little")

        def value(field: str, number: int = 0) -> int:
            begin, nbytes, _ = _FIELDS[field]
            if not told >> _bit(field, number) & 1:
                raise PtxError(f"{field} of a tensor map was not set: {text}")
            return int.from_bytes(content[begin + nbytes * number : begin + nbytes * (number + 1)].tobytes(), "little")

        # It is counted from 0.
        rank, kind = value("rank") + 1, value("elemtype")
        if rank > _SIDES or kind not in _ITEMS:
            raise PtxError(f"no tensor map: {text}")
        for field in ("interleave_layout", "swizzle_mode", "fill_mode"):
            if value(field):
                raise PtxError(f"a tensor map that is not plain, and filled with zeros, is not known here: {text}")
        item, sides = _ITEMS[kind], tuple(value("global_dim", side) for side in range(rank))
        strides = (item, *(value("global_stride", side) for side in range(rank - 1)))
        box = tuple(value("box_dim", side) for side in range(rank))
        if any(value("element_stride", side) != 1 for side in range(rank)):
            raise PtxError(f"a tensor map that skips elements is not known here: {text}")
        if not all(0 < count <= _MOST for count in box) or 0 in sides:
            raise PtxError(f"a box of {box} of {sides} elements: {text}")
        address = value("global_address")
        if any(number % _UNIT for number in (address, box[0] * item, *strides[1:])):
            raise PtxError(f"misaligned: an address, a stride or a row of a tensor map is no multiple of {_UNIT} bytes: {text}")
        return _Map(address, item, sides, strides, box)

    def read(self, begins: tuple[int, ...]) -> tuple[NDArray[np.int64], Mask]:
        """The addresses of all elements of the box that begins there, the innermost side fastest; and which are in the array."""
        places, there = np.zeros(1, np.int64) + self.address, np.ones(1, np.bool_)
        for begin, side, stride, count in zip(begins, self.sides, self.strides, self.box, strict=True):
            at = begin + np.arange(count, dtype=np.int64)
            places = (at[:, None] * stride + places).ravel()
            there = (((at >= 0) & (at < side))[:, None] & there).ravel()
        return places, there


def copy(s: State, instruction: Instruction, mask: Mask) -> None:
    """``cp.async.bulk.tensor.Nd.shared::cluster.global.mbarrier::complete_tx::bytes [to], [map, {begins}], [barrier];``"""
    text, words = instruction.text, instruction.operation
    if words[5:] != ("shared::cluster", "global", "mbarrier::complete_tx::bytes"):
        raise PtxError(f"unknown instruction: {text}")
    given, _, told = instruction.operands[1].strip("[]").partition(",")
    begins: list[NDArray[Any]] = [s.value(each, "s32") for each in told.strip("{}").split(",")]
    to, maps, barrier = s.address(instruction.operands[0]), s.address(given), s.address(instruction.operands[2])
    outside = s.memories["global"]
    for thread in np.flatnonzero(mask).tolist():
        only = np.arange(s.n) == thread
        who, when, part = s.identities(only), s.times(only), s.block[only]
        if int(who[0]) not in _acquired(s).get(int(maps[thread]), set()):
            raise PtxError(f"no fence.proxy.tensormap since the tensor map was published: {text}")
        found = _Map.of(outside.load(outside.place(maps[only], part, _MAP, text, _MAP), _MAP)[0], text)
        if words[4] != f"{len(begins)}d" or len(begins) != len(found.box):
            raise PtxError(f"a box of {len(begins)} sides by a tensor map of {len(found.box)}: {text}")
        places, there = found.read(tuple(int(each[thread]) for each in begins))
        values = np.zeros((len(places), found.item), np.uint8)
        inside = places[there]
        parts = np.repeat(part, len(inside))
        at = outside.place(inside, parts, found.item, text)
        assert outside.region is not None
        if (outside.region[at] != outside.region[found.address]).any():
            raise PtxError(f"out of bounds: a box goes beyond the array that its tensor map is of: {text}")
        outside.note_load(at, found.item, np.repeat(who, len(inside)), np.repeat(when, len(inside)), text)
        s.counts.memory(np.full(len(inside), s.warp[thread]), inside, found.item)
        values[there] = outside.load(at, found.item)
        barriers.send(s, thread, values.reshape(1, -1), int(to[thread]), int(barrier[thread]), _MAP, text)


HANDLERS: Final = {"tensormap": _tensormap}
