"""The other systems, each on the same threads, for the least latency of one call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from importlib.util import find_spec
from typing import Final, TypeAlias

import torch

from ansorlite.report.peers import onnxruntime_session
from benchmarks.models.example import Array, Example

if find_spec("openvino"):
    import openvino

#: Computes the outputs anew, in the model's order.
Call: TypeAlias = Callable[[], Sequence[Array]]


def _onnxruntime(example: Example, threads: int, _: str) -> Call:
    return onnxruntime_session(example.data, threads, example.inputs)


def _openvino(example: Example, threads: int, precision: str) -> Call:
    core = openvino.Core()
    # No less exact than ours: by default it may compute in half precision where the processor can.
    settings = {
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_NUM_THREADS": threads,
        "NUM_STREAMS": 1,
        "INFERENCE_PRECISION_HINT": {"float32": "f32", "bfloat16": "bf16"}[precision],
    }
    request = core.compile_model(core.read_model(example.data), "CPU", settings).create_infer_request()
    inputs = dict(example.inputs)
    return lambda: list(request.infer(inputs, share_inputs=True, share_outputs=True).to_tuple())


def _torch(example: Example, threads: int, precision: str) -> Call | None:
    torch.set_num_threads(threads)
    eager = example.eager
    if eager is None or precision == "float32":
        return eager

    def autocast() -> Sequence[Array]:
        with torch.autocast("cpu", dtype=getattr(torch, precision)):
            return eager()

    return autocast


#: name -> what makes a call of a model, on so many threads, in a precision; that gives None where there is none. onnxruntime
#: computes in float32 whatever is asked for.
PEERS: Final[Mapping[str, Callable[[Example, int, str], Call | None]]] = {
    "onnxruntime": _onnxruntime,
    "openvino": _openvino,
    "torch": _torch,
}


def missing(name: str) -> str:
    """Why a peer cannot take part; empty if it can."""
    return "" if find_spec(name) else f"{name} is not installed; install it with: pip install {name}"


def versions(names: Sequence[str]) -> dict[str, str]:
    return {name: version(name) for name in names}
