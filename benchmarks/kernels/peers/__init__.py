"""The systems that ours is compared with. None is needed: one that is missing is named, and the others go on."""

from collections.abc import Mapping
from typing import Final

from benchmarks.kernels.peers.metaschedule import MetaSchedule
from benchmarks.kernels.peers.numpy import Numpy
from benchmarks.kernels.peers.onnxruntime import Onnxruntime
from benchmarks.kernels.peers.peer import Contender, Peer
from benchmarks.kernels.peers.torch import Torch

PEERS: Final[Mapping[str, Peer]] = {
    "torch": Torch(),
    "onnxruntime": Onnxruntime(),
    "numpy": Numpy(),
    "metaschedule": MetaSchedule(),
}

__all__ = ["PEERS", "Contender", "Peer"]
