"""The suites: which operators, of which shapes."""

from collections.abc import Mapping
from typing import Final

from benchmarks.kernels.suites import ansor10, networks, shapes
from benchmarks.kernels.suites.anchors import ANCHORS, Anchor, Recorded
from benchmarks.kernels.suites.case import Case

#: name -> its cases
SUITES: Final[Mapping[str, tuple[Case, ...]]] = {
    "anchors": tuple(anchor.case for anchor in ANCHORS),
    "ansor10": ansor10.CASES,
    "subgraph": networks.SUBGRAPH,
    "bert": networks.BERT,
    "resnet": networks.RESNET,
    "odd": shapes.ODD,
    "memory": shapes.MEMORY,
    "int8": shapes.INT8,
    "constant": networks.CONSTANT,
}

__all__ = ["ANCHORS", "SUITES", "Anchor", "Case", "Recorded"]
