"""What is measured of a GPU, on one whose clock is known: CuPy's stand-in, where a block takes a microsecond."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from ansorlite.cache.disk import CACHE_VARIABLE, default_cache
from ansorlite.calibration import gpu as calibration
from ansorlite.calibration import gpu_programs as programs
from ansorlite.calibration.gpu import calibrate_gpu
from ansorlite.calibration.gpu_programs import Sizes
from ansorlite.cli.main import main
from ansorlite.codegen.nvptx.assemble import ASSEMBLER_VARIABLE
from ansorlite.cost_model.draft_gpu import GpuDraft
from ansorlite.errors import CalibrationError
from ansorlite.features.gpu import GPU_NAMES
from ansorlite.loops.nodes import Function
from ansorlite.loops.verifier import verify
from ansorlite.machine import kept_gpu
from ansorlite.machine.gpu import A100, H100
from ansorlite.machine.kept_gpu import GpuRates, kept, measured
from ansorlite.platforms import build
from ansorlite.programs.kernels import kernel_on
from ansorlite.runtime.devices import device_of
from ansorlite.runtime.timing import TimingSettings
from ansorlite.target import GPUS, host, resolve
from tests.cupy_stand_in import StandIn
from tests.on_gpu import compiled, run

SIZES = Sizes(memory=4096, cache=1024, steps=2, blocks=3, threads=64, sectors=128, words=256, copies=3)


@pytest.fixture
def gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    monkeypatch.setenv(ASSEMBLER_VARIABLE, "driver")
    monkeypatch.setattr(Sizes, "of", staticmethod(lambda _: SIZES))
    for name in ("_TIMING", "_WARMING"):
        monkeypatch.setattr(calibration, name, TimingSettings(min_seconds=0.0, min_repeats=2, repeat_seconds=1e-6))
    device_of.cache_clear()
    kept.cache_clear()
    with StandIn().installed() as stand_in:
        yield stand_in
    device_of.cache_clear()
    kept.cache_clear()


#: A launch takes a microsecond, a copy of 16 blocks 15 more, and three blocks of anything two more.
_FLOPS = 2 * 3 * 64 * 2 * 16 / 2e-6
_CLOCK = _FLOPS / (2 * 4 * 128)
FOUND = GpuRates(
    bandwidth=2 * 4 * 4096 / 15e-6,
    flops=_FLOPS,
    launch=1e-6,
    shared_words=3 * 64 * 2 * 16 / 2e-6 / (_FLOPS / (2 * 128)),
    l2_bandwidth=2 * 4 * 1024 / 3e-6,
    latency=1e-6 / 2 * _CLOCK,
    sector_bytes=3 * 64 * 2 * 16 * 32 / 2e-6 / (4 * _CLOCK),
    bulk_bytes=0,
)


@pytest.mark.usefixtures("gpu")
def test_what_is_measured_is_kept_under_the_devices_name_and_used() -> None:
    before = resolve("cuda")
    assert before.gpu is not None
    told = CliRunner().invoke(main, ["calibrate", "--target", "cuda", "--dry-run", "--json"])
    assert told.exit_code == 0, told.output
    answer = json.loads(told.stdout)
    assert answer["target"] == before.key
    assert answer["gpu"] == pytest.approx(vars(FOUND), rel=1e-6)
    assert not answer["kept"]
    assert resolve("cuda") == before
    told = CliRunner().invoke(main, ["calibrate", "--target", "cuda"])
    assert told.exit_code == 0, told.output
    assert "measuring shared memory" in told.stderr
    assert "shared_words" in told.stdout
    after = resolve("cuda")
    assert after.gpu is not None
    assert after.key == before.key, "records of it stay"
    assert vars(kept(before.gpu.name)) == pytest.approx(vars(FOUND), rel=1e-6)
    assert after.gpu.bandwidth == pytest.approx(FOUND.bandwidth)
    assert measured(H100) == H100, "another one's are its own"
    # The estimate is of these.
    features = np.zeros((1, 1, len(GPU_NAMES)))
    for name in ("launch", "blocks"):
        features[0, 0, GPU_NAMES.index(name)] = 1.0
    assert GpuDraft(after).seconds(features) == pytest.approx([FOUND.launch])
    assert GpuDraft(before).seconds(features) == pytest.approx([3e-6])
    told = CliRunner().invoke(main, ["calibrate", "--target", "cuda", "--fit"])
    assert told.exit_code == 2
    assert "--fit is for CPUs" in told.stderr


def _run(function: Function, x: np.ndarray, target: str) -> np.ndarray:
    there = resolve(target)
    found: np.ndarray = kernel_on(build(function, there), function.params, there, None)(x)
    return found


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("target", ["cuda", "emulated"])
def test_the_programs_do_what_they_are_said_to_do(target: str) -> None:
    """What nobody uses no compiler would have to compute."""
    rng = np.random.default_rng(0)
    x = rng.random(512, dtype=np.float32)
    np.testing.assert_array_equal(_run(programs.copy(512, 64), x, target), x)
    x = x[:64]
    sums = 16 * (x + SIZES.steps * x * (0.5 * x))
    found = _run(programs.multiply_adds(SIZES), x, target)
    np.testing.assert_allclose(found, np.tile(sums, (SIZES.blocks, 1)), rtol=1e-5)
    x = rng.random(256, dtype=np.float32)
    read = [[x[(k * 32 + j * 64 + t) % 256] for k in range(SIZES.steps) for j in range(16)] for t in range(64)]
    found = _run(programs.shared_loads(SIZES), x, target)
    np.testing.assert_allclose(found, np.tile(np.sum(read, axis=1), (SIZES.blocks, 1)), rtol=1e-5)
    chain = programs.chain(4096)
    lines = [0]
    while len(lines) == 1 or lines[-1]:
        lines.append(int(chain[lines[-1]]))
    assert sorted(lines[1:]) == list(range(0, 512, 16)), "each line once, and back"
    found = _run(programs.chase(512, 5), chain, target)
    np.testing.assert_array_equal(found, [(lines[:-1] + lines)[lines.index(16 * b) + 5] for b in range(2)])
    x = rng.random(1024, dtype=np.float32)
    stride = SIZES.blocks * 64
    at = np.arange(SIZES.steps * 16) * stride + np.arange(stride).reshape(SIZES.blocks, 64, 1)
    found = _run(programs.sector_loads(SIZES), x, target)
    np.testing.assert_allclose(found, x[at % 128 * 8].sum(-1), rtol=1e-5)


@pytest.mark.parametrize("nbytes", [64, 1024])
@pytest.mark.parametrize("bulk", [True, False])
def test_copies_ahead_are_in_bulk_or_not(nbytes: int, bulk: bool) -> None:
    function = programs.copies_ahead(nbytes, SIZES)
    verify(function)
    target = replace(GPUS["h100"], gpu=replace(H100, bulk_bytes=nbytes if bulk else 0))
    ptx, _ = compiled(function, target)
    assert ("cp.async.bulk" in ptx, "cp.async.cg" in ptx) == (bulk, not bulk)
    x = np.random.default_rng(1).random(function.params[0].shape, dtype=np.float32)
    y = np.full(function.params[1].shape, np.nan, np.float32)
    run(function, [x, y], target)
    rows = x[:, :, : nbytes // 4].reshape(3, -1)
    np.testing.assert_allclose(y, np.tile(rows[:, : 4 * y.shape[1] : 4].sum(0), (SIZES.blocks, 1)), rtol=1e-5)


def test_bulk_copies_are_worth_it_from_where_they_never_lose() -> None:
    assert calibration._worth_it({64: (1.0, 2.0), 128: (1.0, 1.0), 256: (1.0, 0.9)}) == 128
    assert calibration._worth_it({64: (1.0, 0.9), 128: (1.0, 1.1), 256: (1.0, 0.9)}) == 256
    assert calibration._worth_it({64: (1.0, 2.0), 128: (1.0, 2.0)}) == 256
    assert calibration._worth_it({64: (1.0, 0.5), 128: (1.0, 0.5)}) == 64


def test_the_sizes_of_real_gpus_fit() -> None:
    for row in (A100, H100):
        sizes = Sizes.of(row)
        assert row.l2 // 8 <= 4 * 8 * sizes.sectors <= row.l2 // 4
        assert 4 * sizes.memory >= 16 * row.l2, "out of the cache, there and back"
        assert 2 * 4 * sizes.cache <= row.l2 // 2


@pytest.mark.usefixtures("gpu")
def test_what_is_damaged_or_cannot_be(caplog: pytest.LogCaptureFixture) -> None:
    default_cache().put(kept_gpu._key(A100.name), b'{"bandwidth": -1.0}')
    with caplog.at_level(logging.WARNING):
        assert measured(A100) == A100
    assert "run `ansorlite calibrate --target cuda` again" in caplog.text
    with pytest.raises(CalibrationError, match="flops of a GPU is inf, not a number above 0"):
        GpuRates(1.0, float("inf"), 1.0, 1.0, 1.0, 1.0, 1.0, 0)
    with pytest.raises(CalibrationError, match="bulk_bytes of a GPU is -1, not a number of bytes"):
        GpuRates(1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, -1)
    with pytest.raises(CalibrationError, match="no longer than its launch"):
        calibrate_gpu(resolve("cuda"), Sizes(256, 256, 1, 1, 64))
    with pytest.raises(CalibrationError, match="is no GPU"):
        calibrate_gpu(host())


@pytest.mark.usefixtures("gpu")
def test_programs_of_several_dimensions_are_timed_on_arrays_of_their_shape() -> None:
    assert calibration._seconds(resolve("cuda"), programs.copies_ahead(64, SIZES)) > 0
