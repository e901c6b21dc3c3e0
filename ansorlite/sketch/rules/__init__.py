"""The derivation rules, in the order in which they are asked (the order matters: see each file)."""

from __future__ import annotations

from typing import Final

from ansorlite.sketch.rules.cache_read import ADD_CACHE_READ
from ansorlite.sketch.rules.cache_write import ADD_CACHE_WRITE
from ansorlite.sketch.rules.convert import CONVERT_ONCE
from ansorlite.sketch.rules.dot import DOT_PRODUCT
from ansorlite.sketch.rules.fusion import MULTI_LEVEL_TILING_WITH_FUSION
from ansorlite.sketch.rules.inline import ALWAYS_INLINE
from ansorlite.sketch.rules.reduction import REDUCTION_TILING
from ansorlite.sketch.rules.rfactor import ADD_RFACTOR
from ansorlite.sketch.rules.skip import SKIP_STAGE
from ansorlite.sketch.rules.tiling import MULTI_LEVEL_TILING
from ansorlite.sketch.rules.winograd import WINOGRAD
from ansorlite.sketch.state import Rule

#: The rules of CPUs.
CPU_RULES: Final[tuple[Rule, ...]] = (
    WINOGRAD,
    ALWAYS_INLINE,
    DOT_PRODUCT,
    CONVERT_ONCE,
    ADD_RFACTOR,
    ADD_CACHE_WRITE,
    MULTI_LEVEL_TILING_WITH_FUSION,
    MULTI_LEVEL_TILING,
    REDUCTION_TILING,
    ADD_CACHE_READ,
    SKIP_STAGE,
)

#: The rules of CPUs without Winograd's way to compute short convolutions, which rounds otherwise than the sum that is written:
#: ``rules="ansorlite.sketch.rules:WITHOUT_WINOGRAD"``.
WITHOUT_WINOGRAD: Final[tuple[Rule, ...]] = tuple(rule for rule in CPU_RULES if rule is not WINOGRAD)
