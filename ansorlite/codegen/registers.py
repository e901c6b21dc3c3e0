"""Register buffers in straight-line code: values go from statement to statement by name, not through memory.

A register buffer is a stack slot that LLVM turns into registers. Within one basic block its elements are read at most once
and written at most once, at the block's end; what LLVM has to take apart is several times smaller for it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ansorlite.codegen import types
from ansorlite.codegen.builder import Builder
from ansorlite.te import dtypes


@dataclass
class _Element:
    """A scalar or vector of a buffer whose value is known. ``dirty``: the buffer does not have it yet."""

    dtype: str
    lanes: int
    value: str
    dirty: bool


@dataclass
class _Known:
    """What is known of one buffer: elements by offset, and the offsets that they cover, none of them twice."""

    elements: dict[int, _Element] = field(default_factory=dict)
    covered: set[int] = field(default_factory=set)


class Registers:
    """The known elements of all register buffers, by the buffers' addresses. Offsets are in elements.

    Attributes:
        stores: how often one was stored to in this block.
    """

    def __init__(self, b: Builder) -> None:
        self._b = b
        self._known: dict[str, _Known] = {}
        self._addresses: dict[tuple[str, int], str] = {}
        self.stores = 0

    def load(self, pointer: str, dtype: str, lanes: int, offset: int) -> str:
        """The elements at ``offset``, as they are in memory."""
        known = self._reach(pointer, lanes, offset)
        found = known.elements.get(offset)
        if found is None:
            address, kind = self._address(pointer, dtype, offset), types.memory_type(dtype, lanes)
            value = self._b.op(f"load {kind}, ptr {address}, align {dtypes.size(dtype)}")
            found = known.elements[offset] = _Element(dtype, lanes, value, False)
        return found.value

    def store(self, pointer: str, dtype: str, lanes: int, offset: int, value: str) -> None:
        """Counterpart of :meth:`load`."""
        self.stores += 1
        self._reach(pointer, lanes, offset).elements[offset] = _Element(dtype, lanes, value, True)

    def flush(self) -> None:
        """Before a block ends, or may be left: the buffers get what they do not have yet, and nothing is known any more."""
        for pointer in self._known:
            self.write_back(pointer)
        self._known.clear()
        self.stores = 0

    def write_back(self, pointer: str) -> None:
        """As :meth:`flush`, for one buffer that is to be accessed in another way."""
        known = self._known.get(pointer)
        if known is None:
            return
        for offset, element in known.elements.items():
            if element.dirty:
                address, kind = self._address(pointer, element.dtype, offset), types.memory_type(element.dtype, element.lanes)
                self._b.do(f"store {kind} {element.value}, ptr {address}, align {dtypes.size(element.dtype)}")
        self._known[pointer] = _Known()

    def forget(self, pointer: str) -> None:
        """A buffer's life ends."""
        self._known.pop(pointer, None)

    def _reach(self, pointer: str, lanes: int, offset: int) -> _Known:
        """What is known of a buffer, among it the elements at ``offset`` with all ``lanes`` or none of them."""
        known = self._known.setdefault(pointer, _Known())
        found = known.elements.get(offset)
        if found is not None and found.lanes == lanes:
            return known
        span = range(offset, offset + lanes)
        if not known.covered.isdisjoint(span):
            self.write_back(pointer)
            known = self._known[pointer]
        known.covered.update(span)
        return known

    def _address(self, pointer: str, dtype: str, offset: int) -> str:
        if not offset:
            return pointer
        found = self._addresses.get((pointer, offset))
        if found is None:
            found = self._b.at_entry(f"getelementptr {types.MEMORY[dtype]}, ptr {pointer}, i64 {offset}")
            self._addresses[pointer, offset] = found
        return found
