"""Lines of caches, pages of memory, where arrays, buffers and parts of files begin, and what is loaded of them as a whole."""

from typing import Final

#: Bytes of a cache line.
CACHE_LINE: Final = 64
#: Bytes of a page of memory, large ones aside. A TLB keeps the address of one; where a run of lines ends before one does, less of
#: it has been fetched ahead.
PAGE: Final = 4096
#: Bytes: a cache line, and the widest vector register.
ALIGNMENT: Final = CACHE_LINE
#: Bytes: what the address of each array of a GPU's program is a multiple of, as it loads so many at once.
DEVICE_ALIGNMENT: Final = 16
#: Elements that are up to so many apart are loaded as whole vectors, and picked from these.
WHOLE_STRIDE: Final = 4


def aligned(size: int) -> int:
    """``size`` bytes and what is missing to a multiple of :data:`ALIGNMENT`."""
    return -(-size // ALIGNMENT) * ALIGNMENT
