"""One case on a device: tuned, checked against numpy, and timed in turns with PyTorch."""

from __future__ import annotations

import importlib
import statistics
import time
from pathlib import Path
from typing import Any, Final

import numpy as np

import ansorlite as al
from ansorlite.measure.check import Checker, tolerance
from ansorlite.measure.inputs import make_inputs
from ansorlite.runtime.arguments import Array
from ansorlite.runtime.timing import TimingSettings
from ansorlite.target import Target
from ansorlite.te.evaluate import evaluate
from benchmarks.gpu.cases import Case, Peer
from benchmarks.gpu.row import Row, reason

#: Turns of each side, and how long one is.
TURNS: Final = 5
TURN: Final = TimingSettings(min_seconds=0.02, min_repeats=3)
#: Elements whose reference numpy computes in a moment; of larger cases PyTorch's output is the reference.
_SMALL: Final = 1 << 16
_SLACK: Final = 4.0


def torch_here() -> Any:
    """PyTorch where it has a GPU; else ``None``."""
    try:
        torch = importlib.import_module("torch")
    except ImportError:
        return None
    if not torch.cuda.is_available():
        return None
    # Plain tf32 never stands in for float32.
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    return torch


def run(case: Case, target: Target, trials: int, limit: float, database: Path | None) -> Row:
    """Tune, check and time one case. Whatever goes wrong is in the row."""
    start = time.time()
    made, pace = 0, 0.0

    def row(wrong: str, ours: float = 0.0, theirs: float = 0.0, nbytes: int = 0, reference: str = "") -> Row:
        bandwidth = nbytes / ours if ours else 0.0
        found = (case.family, case.name, target.key, wrong, ours, theirs, bandwidth, made, time.time() - start, reference, start)
        return Row(*found, unfinished=made < trials, pace=pace)

    try:
        task = al.Task(case.tensors(), target)
        if trials:
            tuned = al.tune(task, trials=trials, database=database, time_limit=limit, progress=False)
            made, pace = tuned.trials, pace_of(tuned)
        kernel = al.compile(task, database=database)
        inputs = make_inputs(task.dag, np.random.default_rng(0))
        torch = torch_here() if target.kind == "cuda" else None
        found = kernel(*inputs)
        wrong, reference = _judged(case, task, inputs, found, torch)
        nbytes = sum(array.nbytes for array in (*inputs, found))
        if torch is None:
            return row(wrong, kernel.benchmark(*inputs, settings=TURN).median, nbytes=nbytes, reference=reference)
        given = [_tensor(torch, array) for array in inputs]
        here = [_bits(torch, tensor) for tensor in given]
        peer = TorchTimer(torch, case.peer, given)
        turns = [(kernel.benchmark(*here, settings=TURN).median, peer.seconds()) for _ in range(TURNS)]
        ours, theirs = (statistics.median(times) for times in zip(*turns, strict=True))
        return row(wrong, ours, theirs, nbytes, reference)
    except Exception as error:  # one case must not end the run: the machine is lent for half an hour
        return row(reason(error))


def pace_of(tuned: al.TuneResult) -> float:
    """Seconds that 64 trials take; 0: it has made none."""
    fresh = tuned.trials - tuned.restored
    return 64 * tuned.seconds / fresh if fresh else 0.0


def _judged(case: Case, task: al.Task, inputs: list[Array], found: Array, torch: Any) -> tuple[str, str]:
    """What is wrong with ``found``, and what told so."""
    dag = task.dag
    work = dag.flops
    allowed = tolerance(dag)
    if torch is None or work <= _SMALL * 256:
        reference, name = evaluate(dag, inputs)[0], "numpy"
    else:
        result = case.peer(torch, *(_tensor(torch, array) for array in inputs))
        reference, name = result.float().cpu().numpy().astype(found.dtype), "PyTorch"
        allowed = type(allowed)(_SLACK * allowed.relative, _SLACK * allowed.jumping)
    return Checker([dag.outputs[0].name], [reference], allowed).compare([found]), name


def _tensor(torch: Any, array: Array) -> Any:
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(np.int16).copy()).view(torch.bfloat16).cuda()
    return torch.from_numpy(np.ascontiguousarray(array)).cuda()


def _bits(torch: Any, tensor: Any) -> Any:
    """As our kernels take it: bfloat16 by its bits."""
    return tensor.view(torch.uint16) if tensor.dtype is torch.bfloat16 else tensor


class TorchTimer:
    """PyTorch's calls as one graph, so that neither side pays for Python."""

    def __init__(self, torch: Any, peer: Peer, given: list[Any]) -> None:
        self._torch = torch
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side), torch.inference_mode():
            for _ in range(3):
                peer(torch, *given)
        torch.cuda.current_stream().wait_stream(side)
        self._calls = 16
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph), torch.inference_mode():
            for _ in range(self._calls):
                peer(torch, *given)

    def seconds(self) -> float:
        """Of one call: the median of repeats that fill a turn."""
        self._graph.replay()
        times: list[float] = []
        begin = time.perf_counter()
        while len(times) < TURN.min_repeats or time.perf_counter() - begin < TURN.min_seconds:
            start, end = (self._torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            self._graph.replay()
            end.record()
            end.synchronize()
            times.append(start.elapsed_time(end) / 1e3 / self._calls)
        return statistics.median(times)
