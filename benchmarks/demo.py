"""Tune a real model for a few minutes, check its outputs, and say what that brought. ``make demo`` runs this.

    python -m benchmarks.demo [--model squeezenet] [--seconds 150 | --trials N] [--database demo.db]

The models are those that come with the onnx package, with the outputs that lie beside them. What was measured is kept in
the database: run it again, and it goes on from there.
"""

from __future__ import annotations

import logging
from pathlib import Path

import click
import numpy as np
import onnx
from rich.console import Console
from rich.table import Table

import ansorlite as al
from ansorlite.graph.executable import compile_model
from ansorlite.programs.kernels import compile_candidate
from ansorlite.report.compare import compare
from ansorlite.report.peers import has_onnxruntime, onnxruntime_session
from ansorlite.report.tables import outcome, summary
from ansorlite.report.text import duration, speed_up, times
from ansorlite.sketch.candidate import NAIVE

MODELS = Path(onnx.__file__).parent / "backend/test/data/light"
#: Setting up, the checks and the final timing must fit into five minutes, too.
TUNING_SECONDS = 150.0
TIMING_SECONDS = 3.0
#: The largest relative difference from the recorded outputs.
TOLERANCE = 1e-4


@click.command()
@click.option("--model", "name", default="squeezenet", show_default=True, help="light_NAME.onnx of the onnx package.")
@click.option("--seconds", default=TUNING_SECONDS, show_default=True, help="How long to tune, if no --trials are given.")
@click.option("--trials", type=int, help="How many measurements to tune for, however long that takes.")
@click.option("--database", default="demo.db", show_default=True, help="The file of measurements.")
def main(name: str, seconds: float, trials: int | None, database: str) -> None:
    """Tune a model, check its outputs, and compare it with the loops as written and with onnxruntime."""
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    screen = Console(highlight=False)
    path = MODELS / f"light_{name}.onnx"
    if not path.exists():
        known = sorted(file.stem.removeprefix("light_") for file in MODELS.glob("light_*.onnx"))
        raise click.BadParameter(f"no model {name!r}; there are {', '.join(known)}", param_hint="--model")
    model = al.from_onnx(path)
    effort = f"{seconds:.0f} seconds" if trials is None else f"{trials} trials"
    screen.print(f"{path.name}: {len(model.tasks)} different tasks, {effort} of tuning, kept in {database}")
    result = al.tune(model, trials=trials, database=database, progress=True, time_limit=seconds if trials is None else None)
    screen.print(outcome(result))
    screen.print(summary(result), soft_wrap=True)

    tuned = al.compile(model, database=database)
    naive = compile_model(model, lambda task: compile_candidate(task, NAIVE))
    inputs = example_inputs(model)
    difference = max_relative_difference(tuned(inputs), recorded_outputs(path, model))
    screen.print(f"\noutputs against those recorded with the model: largest relative difference {difference:.1e}\n")

    versus_naive = compare(lambda: tuned(inputs), lambda: naive(inputs), TIMING_SECONDS)
    rows = [
        ("naive: loops as written, scalar, one thread", versus_naive.against),
        (f"tuned, {model.target.threads} threads", versus_naive.ours),
    ]
    if has_onnxruntime():
        peer = onnxruntime_session(str(path), model.target.threads, inputs)
        versus_peer = compare(lambda: tuned(inputs), peer, TIMING_SECONDS)
        rows += [("onnxruntime, timed in turns with:", versus_peer.against), ("tuned", versus_peer.ours)]
    table = Table("the whole model", "median time", "speed-up over naive", box=None, pad_edge=False, header_style="dim")
    for label, taken in rows:
        table.add_row(label, duration(taken), times(speed_up(versus_naive.against, taken)))
    screen.print(table)
    if difference > TOLERANCE:
        raise click.ClickException(f"the outputs differ by more than {TOLERANCE}: this is a bug, please report it")


def example_inputs(model: al.Model) -> dict[str, np.ndarray]:
    """The inputs that the recorded outputs belong to: a ramp from 0 to 1."""
    return {
        name: (np.arange(np.prod(value.shape)).reshape(value.shape) / np.prod(value.shape)).astype(value.dtype)
        for name, value in model.inputs.items()
    }


def recorded_outputs(path: Path, model: al.Model) -> dict[str, np.ndarray]:
    """The outputs that lie beside the model."""
    files = [path.with_name(f"{path.stem}_output_{number}.pb") for number in range(len(model.outputs))]
    tensors = [onnx.TensorProto.FromString(file.read_bytes()) for file in files]
    return dict(zip(model.outputs, map(onnx.numpy_helper.to_array, tensors), strict=True))


def max_relative_difference(found: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> float:
    """Of any element."""
    tiny = np.finfo(np.float32).tiny
    return max(float(np.max(np.abs(found[name] - array) / np.maximum(np.abs(array), tiny))) for name, array in expected.items())


if __name__ == "__main__":
    main()
