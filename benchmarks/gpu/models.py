"""Whole models on a device: tuned as far as time allows, checked, and timed in turns with torch.compile's, both as graphs."""

from __future__ import annotations

import importlib
import statistics
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

import ansorlite as al
from ansorlite.graph.executable import Executable
from ansorlite.runtime.arguments import Array, numpy_type
from ansorlite.runtime.device_arrays import arrays_of
from ansorlite.runtime.devices import device_of
from ansorlite.runtime.timing import measure
from ansorlite.target import Target
from benchmarks.gpu.model_cases import ModelCase
from benchmarks.gpu.row import Row, reason
from benchmarks.gpu.session import TURN, TURNS, TorchTimer, pace_of, torch_here

#: Of the largest output.
_TOLERANCE: Final = 1e-3


def run_model(case: ModelCase, target: Target, trials: int, limit: float, database: Path | None) -> Row:
    """Tune, check and time one model. Whatever goes wrong is in the row, which says how many trials were made of those wanted.

    Args:
        trials: for each task.
    """
    start = time.time()
    try:
        exported = importlib.import_module("benchmarks.models.exported")
        export = importlib.import_module("ansorlite.frontends.torch.export").export
        cpu = importlib.import_module("torch")
        module, arrays = exported.drawn(case.make, case.inputs, np.random.default_rng(0))
        with cpu.inference_mode():
            reference = module(*map(cpu.from_numpy, arrays.values())).numpy()
        model = al.from_onnx(export(module, [*map(cpu.from_numpy, arrays.values())], inputs=list(arrays)), target=target)
        wanted = made = trials * len(model.tasks)
        pace = 0.0
        if trials:
            tuned = al.tune(model, trials=wanted, database=database, time_limit=limit, progress=False)
            made, pace = tuned.trials, pace_of(tuned)
        executable = al.compile(model, database=database)
        assert isinstance(executable, Executable)
        (found,) = executable(arrays).values()
        wrong = _wrong(found, reference)
        ours, theirs = _turns(executable, target, arrays, module)
        spent = time.time() - start
        key = target.key
        return Row(case.family, case.name, key, wrong, ours, theirs, 0.0, made, spent, "PyTorch", start, made < wanted, pace)
    except Exception as error:  # one case must not end the run
        return Row(case.family, case.name, target.key, reason(error), seconds=time.time() - start, when=start)


def _wrong(found: Array, reference: Array) -> str:
    """What is wrong with an output; empty: it is right."""
    if found.shape != reference.shape or not np.isfinite(found).all():
        return f"the output of shape {found.shape} is not one of {reference.shape}, or not finite"
    away, most = float(np.abs(found - reference).max()), float(np.abs(reference).max())
    return "" if away <= _TOLERANCE * most else f"the output is {away:.3g} away from PyTorch's, whose largest is {most:.3g}"


def _turns(executable: Executable, target: Target, arrays: Mapping[str, Array], module: Any) -> tuple[float, float]:
    """Seconds of a call, and of PyTorch's: medians of turns. 0 where PyTorch has no GPU."""
    device = device_of(target)
    there = arrays_of(device)
    given: Mapping[str, Any] = arrays
    out: dict[str, Any] = {name: np.empty(v.shape, numpy_type(v.dtype)) for name, v in executable.outputs.items()}
    if there is not None:
        # On the same arrays each time, which makes it one graph.
        given, out = ({name: there.view(name, array) for name, array in each.items()} for each in (arrays, out))

    def calls(count: int) -> None:
        for _ in range(count):
            executable.run(given, out)

    def ours() -> float:
        return measure(lambda count: device.time(calls, count), TURN, device.sweeper).median

    torch = torch_here() if target.kind == "cuda" else None
    if torch is None:
        return ours(), 0.0
    compiled = torch.compile(module.cuda())
    peer = TorchTimer(
        torch, lambda _, *tensors: compiled(*tensors), [torch.from_numpy(array).cuda() for array in arrays.values()]
    )
    turns = [(ours(), peer.seconds()) for _ in range(TURNS)]
    mine, theirs = (statistics.median(times) for times in zip(*turns, strict=True))
    return mine, theirs
