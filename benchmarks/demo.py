"""Tune a real model, SqueezeNet, for a few minutes, and say what that brought. ``make demo`` runs this.

What was measured is kept in demo.db: run it again, and it goes on from there.
"""

from __future__ import annotations

import logging
import sys
from pathlib import Path

import numpy as np
import onnx
from rich.console import Console
from rich.table import Table

import ansorlite as al
from ansorlite.best import compile_candidate
from ansorlite.graph.executable import compile_model
from ansorlite.report.compare import compare
from ansorlite.report.peers import has_onnxruntime, onnxruntime_session
from ansorlite.report.tables import outcome, summary
from ansorlite.report.text import duration, speed_up, times
from ansorlite.sketch.candidate import NAIVE

MODEL = Path(onnx.__file__).parent / "backend/test/data/light/light_squeezenet.onnx"
DATABASE = Path("demo.db")
#: Setting up, the checks and the final timing must fit into five minutes, too.
TUNING_SECONDS = 150.0
TIMING_SECONDS = 3.0


def main() -> int:
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    screen = Console(highlight=False)
    model = al.from_onnx(MODEL)
    screen.print(f"{MODEL.name}: {len(model.tasks)} different tasks, {TUNING_SECONDS:.0f} seconds of tuning, kept in {DATABASE}")
    result = al.tune(model, database=DATABASE, progress=True, time_limit=TUNING_SECONDS)
    screen.print(outcome(result))
    screen.print(summary(result), soft_wrap=True)

    tuned = al.compile(model, database=DATABASE)
    naive = compile_model(model, lambda task: compile_candidate(task, NAIVE))
    inputs = example_inputs(model)
    difference = max_relative_difference(tuned(inputs), recorded_outputs(model))
    screen.print(f"\noutputs against those recorded with the model: largest relative difference {difference:.1e}\n")

    versus_naive = compare(lambda: tuned(inputs), lambda: naive(inputs), TIMING_SECONDS)
    rows = [
        ("naive: loops as written, scalar, one thread", versus_naive.against),
        (f"tuned, {model.target.threads} threads", versus_naive.ours),
    ]
    if has_onnxruntime():
        peer = onnxruntime_session(str(MODEL), model.target.threads, inputs)
        versus_peer = compare(lambda: tuned(inputs), peer, TIMING_SECONDS)
        rows += [("onnxruntime, timed in turns with:", versus_peer.against), ("tuned", versus_peer.ours)]
    table = Table("the whole model", "median time", "speed-up over naive", box=None, pad_edge=False, header_style="dim")
    for name, seconds in rows:
        table.add_row(name, duration(seconds), times(speed_up(versus_naive.against, seconds)))
    screen.print(table)
    return 0 if difference < 1e-4 else 1


def example_inputs(model: al.Model) -> dict[str, np.ndarray]:
    """The inputs that the recorded outputs belong to: a ramp from 0 to 1."""
    return {
        name: (np.arange(np.prod(value.shape)).reshape(value.shape) / np.prod(value.shape)).astype(value.dtype)
        for name, value in model.inputs.items()
    }


def recorded_outputs(model: al.Model) -> dict[str, np.ndarray]:
    """The outputs that lie beside the model."""
    files = [MODEL.with_name(f"{MODEL.stem}_output_{number}.pb") for number in range(len(model.outputs))]
    tensors = [onnx.TensorProto.FromString(file.read_bytes()) for file in files]
    return dict(zip(model.outputs, map(onnx.numpy_helper.to_array, tensors), strict=True))


def max_relative_difference(found: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> float:
    """Of any element."""
    tiny = np.finfo(np.float32).tiny
    return max(float(np.max(np.abs(found[name] - array) / np.maximum(np.abs(array), tiny))) for name, array in expected.items())


if __name__ == "__main__":
    sys.exit(main())
