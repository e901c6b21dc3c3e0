"""Tensor maps: what says to the machine how boxes are cut out of an array, so that one instruction copies one (from sm_90a on).

A map is 128 bytes that nobody but the machine reads; instructions write its fields into zeros (CUDA C++ Programming Guide,
encoding a tensor map on device). Each block makes its own in shared memory, and hands them to the machine in memory that the
launch gives: so nobody needs to know the addresses of arrays before, and a kernel has no arguments but addresses.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ansorlite.codegen.context import Context
from ansorlite.codegen.expressions import evaluate
from ansorlite.codegen.nvptx import alone
from ansorlite.loops.boxes import Box, Side
from ansorlite.loops.nodes import Buffer, For
from ansorlite.machine.gpu import Gpu
from ansorlite.machine.matrix import WARP
from ansorlite.te import dtypes

#: Bytes of a map, and what its address is a multiple of; that of what is copied to is one, too.
NBYTES: Final = 128
#: The version of PTX whose assemblers all take strides in bytes: before CUDA 12.5 some took them in units of 16.
FEATURE: Final = "+ptx86"
#: Numbers of the types of elements, by their bytes: only copied, and filled with zeros, they may be unsigned integers.
_TYPES: Final[Mapping[int, int]] = {1: 0, 2: 1, 4: 2, 8: 4}
#: Stores of 16 bytes that a map is zeros after.
_ZEROS: Final = tuple(f"st.shared.v4.b32 [$0+{at}], {{$1, $1, $1, $1}};" for at in range(0, NBYTES, 16))


@dataclass(frozen=True)
class TensorMap:
    """
    Attributes:
        source: the array.
        sides: of all boxes that are cut out by it, and of the array; innermost first.
    """

    source: Buffer
    sides: tuple[Side, ...]

    @staticmethod
    def of(box: Box) -> TensorMap:
        """That of this box alone."""
        return TensorMap(box.source, box.sides)

    def join(self, other: TensorMap) -> TensorMap | None:
        """The map that does for both; ``None``: there is none."""
        if self.source is not other.source or len(self.sides) != len(other.sides):
            return None
        sides = [a.join(b) for a, b in zip(self.sides, other.sides, strict=True)]
        known = tuple(side for side in sides if side is not None)
        return TensorMap(self.source, known) if len(known) == len(sides) else None


def maps_of(boxes: Mapping[For, Box]) -> tuple[tuple[TensorMap, ...], dict[For, int]]:
    """Maps that do for all boxes, and the number of each one's."""
    maps: list[TensorMap] = []
    numbers: dict[For, int] = {}
    for phase, box in boxes.items():
        mine = TensorMap.of(box)
        joined = ((number, both) for number, each in enumerate(maps) if (both := each.join(mine)) is not None)
        numbers[phase], both = next(joined, (len(maps), mine))
        maps[numbers[phase] : numbers[phase] + 1] = [both]
    return tuple(maps), numbers


def takes(box: Box, gpu: Gpu, threads: int) -> bool:
    """Whether a block of ``threads`` copies this box by a map."""
    item = dtypes.size(box.source.dtype)
    worth = 0 < gpu.map_bytes <= box.sides[0].count * item and box.nbytes >= gpu.bulk_bytes
    whole = box.aligned % NBYTES == 0 and threads % WARP == 0 and item in _TYPES
    return worth and whole and box.source.dtype == box.target.dtype


@dataclass(frozen=True)
class Writer:
    """Writes maps, and copies by them.

    Attributes:
        threads: of a block, whole warps.
        thread: the number of the thread, an SSA name of type i32.
        shared: where maps are made, the address of shared memory for all of them, an SSA name of type i32.
        handed: where the block hands them to the machine, an address, an SSA name of type i64.
    """

    maps: tuple[TensorMap, ...]
    threads: int
    thread: str
    shared: str
    handed: str

    def make(self, c: Context) -> None:
        """Make the maps; all threads meet after this. Warps share the work."""
        for number, each in enumerate(self.maps):
            at, first = self._shared(c, number), self._first(number)
            alone.do(c, self.thread, 1, _ZEROS, f"i32 {at}", "i32 0", first=first)
            begin = c.b.op(f"ptrtoint ptr {c.places[each.source].pointer} to i64")
            fields = tuple(f"tensormap.replace.tile.{field}.shared::cta.b1024.{rest};" for field, rest in _fields(each))
            alone.do(c, self.thread, 1, fields, f"i32 {at}", f"i64 {begin}", first=first)

    def publish(self, c: Context) -> None:
        """Hand the maps to the machine; all threads meet after this."""
        name = "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned"
        for number in range(len(self.maps)):
            operands = f"i64 {self._handed(c, number)}", f"i32 {self._shared(c, number)}"
            alone.do(c, self.thread, WARP, f"{name} [$0], [$1], {NBYTES};", *operands, first=self._first(number))

    def acquire(self, c: Context) -> None:
        """Let the thread that copies see them."""
        for number in range(len(self.maps)):
            fence = f"fence.proxy.tensormap::generic.acquire.gpu [$0], {NBYTES};"
            alone.do(c, self.thread, 1, fence, f"i64 {self._handed(c, number)}")

    def copy(self, c: Context, box: Box, number: int, to: str, barrier: str) -> None:
        """Ask for a box.

        Args:
            number: of its map.
            to: the address in shared memory that it goes to, an SSA name of type i32.
            barrier: that of the barrier that it lands at.
        """
        begins = [f"i32 {c.b.op(f'trunc i64 {evaluate(c, begin).text} to i32')}" for begin in box.begins]
        name = f"cp.async.bulk.tensor.{len(begins)}d.shared::cluster.global.mbarrier::complete_tx::bytes"
        places = ", ".join(f"${3 + side}" for side in range(len(begins)))
        operands = f"i32 {to}", f"i64 {self._handed(c, number)}", f"i32 {barrier}"
        alone.do(c, self.thread, 1, f"{name} [$0], [$1, {{{places}}}], [$2];", *operands, *begins)

    def _first(self, number: int) -> int:
        """The first thread of the warp that makes a map."""
        return WARP * (number % (self.threads // WARP))

    def _shared(self, c: Context, number: int) -> str:
        return c.b.op(f"add i32 {self.shared}, {NBYTES * number}")

    def _handed(self, c: Context, number: int) -> str:
        return c.b.op(f"add i64 {self.handed}, {NBYTES * number}")


def _fields(each: TensorMap) -> list[tuple[str, str]]:
    """All that a map says, as fields and operands of the instruction that replaces one."""
    item, rank = dtypes.size(each.source.dtype), len(each.sides)
    fields = [("global_address", "b64 [$0], $1"), ("rank", f"b32 [$0], {rank - 1}")]
    for number, side in enumerate(each.sides):
        fields += [("box_dim", f"b32 [$0], {number}, {side.count}"), ("global_dim", f"b32 [$0], {number}, {side.extent}")]
        fields.append(("element_stride", f"b32 [$0], {number}, 1"))
        if number:
            # That of the innermost side is one element.
            fields.append(("global_stride", f"b64 [$0], {number - 1}, {side.stride * item}"))
    settings = {"elemtype": _TYPES[item], "interleave_layout": 0, "swizzle_mode": 0, "fill_mode": 0}
    return [*fields, *((field, f"b32 [$0], {value}") for field, value in settings.items())]
