"""Kinds of machines that a page is for, and how a machine that can do more is held to one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ansorlite.target import LEVELS, TARGET_VARIABLE, obstacle

#: With it a process compiles the Python files of a checkout anew; those of an installed package are compiled.
_UNCOMPILED: Final = "PYTHONDONTWRITEBYTECODE"


@dataclass(frozen=True)
class Bars:
    """What is to be reached on machines of a kind; ``None``: nothing is.

    Attributes:
        mean, early_mean: calls beside PyTorch's, geometric mean over all suites, after all trials and after few.
        least: the slowest case beside PyTorch, of the suites that this is asked of.
        large, large_share: 1024^3 beside PyTorch, and as a share of the measured peak of all cores.
        untuned: speed without any trial, as a share of the tuned.
        networks: ResNet-50 and SqueezeNet beside the better of the other systems.
        few: speed of models after few trials a task, as a share of that after all.
        models, least_model: all models beside the better of the other systems: geometric mean, and the slowest.
    """

    mean: float | None = None
    early_mean: float | None = None
    least: float | None = None
    large: float | None = None
    large_share: float | None = None
    untuned: float | None = None
    few: float | None = None
    networks: float | None = None
    models: float | None = None
    least_model: float | None = None


@dataclass(frozen=True)
class Kind:
    """A kind of machine.

    Attributes:
        title: what its vectors are called.
        level: its name as a target.
        page: the file, from the repository's root.
        held: what holds the other systems to it on a machine that can do more, as environment variables.
        unheld: the systems that nothing holds, which then do not take part.
    """

    title: str
    level: str
    page: Path
    bars: Bars
    held: Mapping[str, str]
    unheld: tuple[str, ...] = ()


KINDS: Final[Mapping[str, Kind]] = {
    "avx2": Kind(
        "AVX2",
        "x86-64-v3",
        Path("docs/performance_avx2.md"),
        Bars(1.8, 1.6, 0.9, 1.1, 0.85, 0.88, 0.97, 1.15, 1.25, 0.95),
        {"ATEN_CPU_CAPABILITY": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2", "MKL_ENABLE_INSTRUCTIONS": "AVX2"},
        ("onnxruntime",),
    ),
    "avx512": Kind(
        "AVX-512", "x86-64-v4", Path("docs/performance.md"), Bars(least=1.0, large=1.0, large_share=0.85, few=0.97), {}
    ),
}


def kind_here() -> str | None:
    """The kind of this machine, the one that can do most; ``None``: of none that a page is for."""
    able = [name for name, kind in KINDS.items() if obstacle(LEVELS[kind.level]) is None]
    return able[-1] if able else None


def forced(name: str) -> bool:
    """Whether this machine can do more than one of that kind."""
    return name != kind_here()


def environment(name: str, given: Mapping[str, str]) -> dict[str, str]:
    """``given``, for a process that is to run as on a machine of that kind.

    Where the machine is of that kind, everything is left to it. Else ours are compiled for the level, under whose name they are
    kept apart from this machine's own programs and measurements. Workers start as fast as those of an installed package.
    """
    kind = KINDS[name]
    plain = {variable: value for variable, value in given.items() if variable not in (TARGET_VARIABLE, _UNCOMPILED, *kind.held)}
    return {**plain, TARGET_VARIABLE: kind.level, **kind.held} if forced(name) else plain
