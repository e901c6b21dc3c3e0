"""How large a tensor of a model may be, even one that is never stored: what asks for more is a mistake or an attack."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from ansorlite.errors import ExpressionError
from ansorlite.te import dtypes

#: Bytes of one tensor: half of what a process can address.
LARGEST: Final = 1 << 46


def check_size(shape: Sequence[int], dtype: str) -> None:
    """Refuse tensors that no process could address.

    Raises:
        ExpressionError: an extent is negative, or the tensor would take more than :data:`LARGEST` bytes.
    """
    if any(extent < 0 for extent in shape):
        raise ExpressionError(f"a tensor has shape {tuple(shape)}; no extent may be negative")
    # Without its empty dimensions: numpy counts so, too.
    size = math.prod(max(1, extent) for extent in shape) * dtypes.size(dtype)
    if size > LARGEST:
        most = f"{LARGEST >> 40} TiB"
        raise ExpressionError(
            f"a tensor of shape {tuple(shape)} ({dtype}) takes {size / 2**40:.4g} TiB, and the most is {most}; "
            "give the model smaller inputs with shapes={...}, or check the sizes in it"
        )
