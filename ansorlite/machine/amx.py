"""Intel's AMX: registers that are tiles, and what their instructions take on Sapphire Rapids, the first processor with them.

After the Intel 64 and IA-32 Architectures Optimization Reference Manual, chapter 20. ``ansorlite calibrate`` found the same
within a tenth on a later Xeon, but for the latency, which was that of a product (docs/decisions/matrix-units.md).
"""

from __future__ import annotations

from typing import Final

#: Rows of a register, and words in a row.
ROWS: Final = 16
#: Bytes of a register.
BYTES: Final = 4.0 * ROWS * ROWS
#: How many registers there are.
REGISTERS: Final = 8
#: Cycles from one product of tiles to the next that does not need its sums, and to the next that does.
PRODUCT: Final = 16.0
LATENCY: Final = 52.0
#: Cycles of loading a tile, and what moving one of sums takes more, from the second cache and back between products: Intel says
#: 16 for a store alone, which products hide as little as the lines that it waits for, so this is what was measured on that Xeon.
LOAD: Final = 8.0
MOVE: Final = 50.0
#: Dot products of vectors that begin in a cycle.
VECTORS: Final = 2.0
