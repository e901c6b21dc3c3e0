"""The derivation rules of GPUs, in the order in which they are asked."""

from __future__ import annotations

from typing import Final

from ansorlite.sketch.rules.gpu.elementwise import ELEMENTWISE
from ansorlite.sketch.rules.gpu.inline import INLINE_BEFORE, INLINE_INTO_COPIES
from ansorlite.sketch.rules.gpu.matrix import MATRIX_UNIT
from ansorlite.sketch.rules.gpu.partial import PARTIAL_SUMS, UNIT_AXIS
from ansorlite.sketch.rules.gpu.reduction import CROSS_THREAD_REDUCTION, SHARED_ROW, WHOLE_ROWS
from ansorlite.sketch.rules.gpu.tiling import CACHE_WRITE, EPILOGUE, TILING
from ansorlite.sketch.rules.skip import SKIP_STAGE
from ansorlite.sketch.state import Rule

GPU_RULES: Final[tuple[Rule, ...]] = (
    UNIT_AXIS,
    INLINE_BEFORE,
    INLINE_INTO_COPIES,
    EPILOGUE,
    PARTIAL_SUMS,
    MATRIX_UNIT,
    TILING,
    CACHE_WRITE,
    SHARED_ROW,
    CROSS_THREAD_REDUCTION,
    WHOLE_ROWS,
    ELEMENTWISE,
    SKIP_STAGE,
)
