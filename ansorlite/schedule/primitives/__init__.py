"""The primitives of the schedule language: the table of everything that a trace can say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ansorlite.schedule.primitives.annotations import Bind, Parallel, Pipeline, Stream, Unroll, Vectorize
from ansorlite.schedule.primitives.loops import Fuse, Reorder, Split
from ansorlite.schedule.primitives.places import CacheRead, ComputeAt, ComputeRoot, DecomposeReduction, ReverseComputeAt
from ansorlite.schedule.primitives.prefetch import PrefetchRead
from ansorlite.schedule.primitives.products import Convert, Tensorize, UseMatrixUnit
from ansorlite.schedule.primitives.rewrites import (
    AddUnitAxis,
    CacheWrite,
    Divide,
    FuseDimensions,
    Inline,
    Polyphase,
    Rfactor,
    Winograd,
)
from ansorlite.schedule.primitives.step import Results, Rewrite, Step, check_arguments
from ansorlite.schedule.primitives.storage import StorageAlign, Swizzle

#: By the method that makes it: a new primitive is a class and a line here.
PRIMITIVES: Final[Mapping[str, type[Step]]] = {
    primitive.method: primitive
    for primitive in (
        Inline,
        CacheWrite,
        Rfactor,
        AddUnitAxis,
        Tensorize,
        Convert,
        Polyphase,
        Divide,
        FuseDimensions,
        Winograd,
        UseMatrixUnit,
        Split,
        Fuse,
        Reorder,
        ComputeAt,
        ComputeRoot,
        ReverseComputeAt,
        CacheRead,
        DecomposeReduction,
        Parallel,
        Vectorize,
        Unroll,
        Bind,
        Pipeline,
        Stream,
        StorageAlign,
        Swizzle,
        PrefetchRead,
    )
}

__all__ = [
    "PRIMITIVES",
    "AddUnitAxis",
    "Bind",
    "CacheRead",
    "CacheWrite",
    "ComputeAt",
    "ComputeRoot",
    "Convert",
    "DecomposeReduction",
    "Divide",
    "Fuse",
    "FuseDimensions",
    "Inline",
    "Parallel",
    "Pipeline",
    "Polyphase",
    "PrefetchRead",
    "Reorder",
    "Results",
    "ReverseComputeAt",
    "Rewrite",
    "Rfactor",
    "Split",
    "Step",
    "StorageAlign",
    "Stream",
    "Swizzle",
    "Tensorize",
    "Unroll",
    "UseMatrixUnit",
    "Vectorize",
    "Winograd",
    "check_arguments",
]
