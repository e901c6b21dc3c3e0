"""Models exported for GPUs, on a stand-in for the driver. ``test_gpu.py`` runs this in a process that has no other."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import ansorlite as al
from ansorlite.codegen.nvptx.assemble import ASSEMBLER_VARIABLE
from ansorlite.errors import ArgumentError, DeviceLostError, MemoryLimitError, ModelError, TargetError
from ansorlite.export.load_gpu import LoadedGpuModel
from tests.driver_stand_in import Driver
from tests.unit.export.gpu_models import X, exported, meaning, with_prepared_weights

_DRIVERS: list[Driver] = []


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Libraries of one model, with weights inside and beside; one for another GPU; and one whose weights are prepared."""
    made = tmp_path_factory.mktemp("exported")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv(ASSEMBLER_VARIABLE, "driver")
        exported("sm_80", made / "inside.so")
        exported("sm_80", made / "beside.so", weights="beside")
        exported("h100", made / "hopper.so")
        with_prepared_weights("sm_80", made / "prepared.so")
    return made


@pytest.fixture
def driver(folder: Path) -> Iterator[Driver]:
    """The one of this process, as if it were new."""
    if not _DRIVERS:
        _DRIVERS.append(Driver(folder))
    found = _DRIVERS[0]
    found.refuse, found.room, found.capability, found.broken = {}, 1 << 30, (8, 0), 0
    found.calls.clear(), found.launched.clear(), found.copied.clear()
    yield found
    assert found.stack == 0, "every context that was pushed is popped"


def test_before_there_is_a_driver(folder: Path) -> None:
    """This comes first."""
    assert not _DRIVERS
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        with pytest.raises(TargetError, match=r"there is no NVIDIA driver here \(libcuda.so.1: .*\); install it"):
            al.load(folder / "inside.so")
    else:
        pytest.skip("this machine has a driver")


@pytest.mark.parametrize("name", ["inside.so", "beside.so", "prepared.so"])
def test_it_computes_what_it_was_exported_from(folder: Path, driver: Driver, name: str) -> None:
    model = al.load(folder / name)
    assert isinstance(model, LoadedGpuModel)
    assert driver.calls[0] == "cuInit"
    assert driver.calls.count("cuMemAlloc") == 2, "weights, and room"
    for x in (X, 2 * X):
        np.testing.assert_allclose(model(x)["y"], meaning(name, x), rtol=1e-5)
    assert driver.copied[1:] == [X.nbytes, meaning(name, X).nbytes] * 2, "in and out, behind the weights"
    if name == "prepared.so":
        assert len(driver.launched) == 2, "what is of weights alone was done when it was exported"
    memories = driver.memories
    out = np.empty_like(meaning(name, X), np.float32)
    assert model.run({"x": X}, {"y": out})["y"] is out
    np.testing.assert_allclose(out, meaning(name, X), rtol=1e-5)
    del model
    assert driver.memories == memories - 2
    assert driver.retained == 0


def test_arrays_on_the_gpu_are_used_where_they_are(folder: Path, driver: Driver) -> None:
    model = al.load(folder / "inside.so")
    x, y = driver.array(X), driver.array(np.zeros((2, 3), np.float32))
    driver.copied.clear()
    assert model.run({"x": x}, {"y": y})["y"] is y
    assert driver.copied == []
    np.testing.assert_allclose(y.get(), meaning("inside.so", X), rtol=1e-5)
    np.testing.assert_array_equal(model(x)["y"], y.get())
    assert driver.copied == [24]
    # What begins between is copied, within the GPU.
    shifted, other = driver.array(X, 4), driver.array(np.zeros((2, 3), np.float32), 8)
    model.run({"x": shifted}, {"y": other})
    np.testing.assert_array_equal(other.get(), y.get())
    assert driver.copied == [24, 32, 24]
    # What is made on another stream is used on that.
    x.stream = 0x55
    y.stream = 1
    driver.calls.clear()
    np.testing.assert_array_equal(model(x)["y"], other.get())
    other.stream = 0x66
    with pytest.raises(ArgumentError, match="the arrays on the GPU are of several streams"):
        model.run({"x": x}, {"y": other})


def test_arrays_that_do_not_fit(folder: Path, driver: Driver) -> None:
    model = al.load(folder / "inside.so")
    for array, said in (
        (driver.array(X.T), r"input 'x' has shape \(4, 2\), but the model takes \(2, 4\)"),
        (driver.array(X.astype(np.int32)), "input 'x' is int32, and not float32; convert it"),
        (X.T, r"input 'x' has shape \(4, 2\)"),
        ([1.0], "input 'x' is a list"),
    ):
        with pytest.raises(ArgumentError, match=said):
            model(array)
    across = driver.array(X)
    across.facts["strides"] = (4, 8)
    with pytest.raises(ArgumentError, match="input 'x' is not contiguous; copy it first"):
        model(across)
    with pytest.raises(ArgumentError, match="output 'z' is unknown; the model's outputs are: y"):
        model.run({"x": X}, {"z": X})
    with pytest.raises(ArgumentError, match="input 'x' is missing"):
        model()


@pytest.mark.parametrize(
    ("function", "answer", "error", "said"),
    [
        ("cuInit", 100, TargetError, r"the NVIDIA driver does not start \(CUDA_ERROR_NO_DEVICE\)"),
        ("cuDevicePrimaryCtxRetain", 2, MemoryLimitError, r"the GPU cannot be used \(CUDA_ERROR_OUT_OF_MEMORY\)"),
        ("cuModuleLoadData", 218, TargetError, r"the driver refuses the model's code \(CUDA_ERROR_INVALID_PTX\)"),
        ("cuModuleGetFunction", 500, TargetError, "the driver refuses the model's code"),
        ("cuMemcpyAsync", 700, TargetError, r"the GPU fails \(CUDA_ERROR_ILLEGAL_ADDRESS\)"),
        ("cuStreamSynchronize", 12345, TargetError, r"the GPU fails \(an unknown error\)"),
    ],
)
def test_what_fails_when_it_is_loaded(
    folder: Path, driver: Driver, function: str, answer: int, error: type[Exception], said: str
) -> None:
    memories, retained = driver.memories, driver.retained
    driver.refuse[function] = answer
    with pytest.raises(error, match=said):
        al.load(folder / "inside.so")
    assert (driver.memories, driver.retained) == (memories, retained), "all is given back"


def test_a_gpu_that_is_full_or_another_one(folder: Path, driver: Driver) -> None:
    memories, retained = driver.memories, driver.retained
    driver.room = 100
    with pytest.raises(MemoryLimitError, match=r"no memory left for the model; free some \(CUDA_ERROR_OUT_OF_MEMORY\)"):
        al.load(folder / "inside.so")
    driver.room = 1 << 30
    with pytest.raises(TargetError, match=r"there is no GPU with that number \(CUDA_ERROR_INVALID_DEVICE\)"):
        al.load(folder / "inside.so", device=1)
    with pytest.raises(
        TargetError, match=r"compiled for sm_90a, and this GPU has compute capability 8.0; export it for this one"
    ):
        al.load(folder / "hopper.so")
    driver.capability = (7, 5)
    with pytest.raises(TargetError, match=r"compiled for sm_80, and this GPU has compute capability 7.5"):
        al.load(folder / "inside.so")
    assert (driver.memories, driver.retained) == (memories, retained)
    driver.capability = (12, 0)
    np.testing.assert_allclose(al.load(folder / "inside.so")(X)["y"], meaning("inside.so", X), rtol=1e-5)
    driver.capability = (9, 0)
    np.testing.assert_allclose(al.load(folder / "hopper.so")(X)["y"], meaning("inside.so", X), rtol=1e-5)


def test_a_gpu_that_fails(folder: Path, driver: Driver) -> None:
    model = al.load(folder / "inside.so")
    driver.broken = 700
    with pytest.raises(DeviceLostError, match=r"the GPU fails: .* has broken its memory or hangs \(CUDA_ERROR_ILLEGAL_ADDRESS\)"):
        model(X)
    driver.broken, driver.stack = 0, 0
    driver.refuse["cuLaunchKernel"] = 1
    with pytest.raises(DeviceLostError, match="CUDA_ERROR_INVALID_VALUE"):
        model(X)


def test_its_steps_are_timed_by_events(folder: Path, driver: Driver) -> None:
    """On a clock where each launch and each copy takes a millisecond."""
    model = al.load(folder / "inside.so")
    facts = model.description.steps
    driver.launched.clear(), driver.calls.clear()
    seconds = model.step_seconds({"x": X}, runs=2)
    assert len(seconds) == len(facts) > 1
    launches = len(driver.launched) / 3
    assert sum(seconds) == pytest.approx(launches * 1e-3), "copies in and out are no steps"
    assert all(each == pytest.approx(round(1e3 * each) * 1e-3) for each in seconds)
    assert min(seconds) > 0.0
    assert driver.calls.count("cuEventCreate") == 3 * (len(facts) + 1)
    assert not driver.events, "they are given back"
    with pytest.raises(ArgumentError, match="runs is 0; it must be at least 1"):
        model.step_seconds({"x": X}, runs=0)
    for refused in ("cuEventCreate", "cuEventRecord", "cuEventElapsedTime", "cuLaunchKernel"):
        driver.refuse = {refused: 700}
        with pytest.raises(DeviceLostError, match="the GPU fails"):
            model.step_seconds({"x": X}, runs=1)
        assert not driver.events
        assert driver.stack == 0
    driver.refuse = {}
    np.testing.assert_allclose(model(X)["y"], meaning("inside.so", X), rtol=1e-5)


@pytest.mark.usefixtures("driver")
def test_weights_that_are_not_its_own(folder: Path, tmp_path: Path) -> None:
    for name in ("beside.so", "beside.weights"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    weights = bytearray((folder / "beside.weights").read_bytes())
    weights[5] ^= 1
    (tmp_path / "beside.weights").write_bytes(weights)
    with pytest.raises(TargetError, match="the weights are damaged or those of another model"):
        al.load(tmp_path / "beside.so")
    (tmp_path / "beside.weights").write_bytes(weights[:-1])
    with pytest.raises(TargetError, match="the weights are damaged or those of another model"):
        al.load(tmp_path / "beside.so")
    (tmp_path / "beside.weights").unlink()
    with pytest.raises(ModelError, match=r"the weights of beside.so are missing"):
        al.load(tmp_path / "beside.so")


def test_the_functions_of_c(folder: Path, driver: Driver) -> None:
    library = ctypes.CDLL(str(folder / "beside.so"))
    create, run, enqueue = library.beside_create, library.beside_run, library.beside_enqueue
    create.restype, library.beside_error.restype = ctypes.c_void_p, ctypes.c_char_p
    assert create(0, b"/nowhere") is None
    assert library.beside_error() == b"the file of the weights cannot be read"
    model = ctypes.c_void_p(create(0, str(folder / "beside.weights").encode()))
    assert model.value
    y = np.zeros((2, 3), np.float32)
    x_at, y_at = ctypes.c_void_p(X.ctypes.data), ctypes.c_void_p(y.ctypes.data)
    assert run(model, x_at, y_at) == 0
    np.testing.assert_allclose(y, meaning("beside.so", X), rtol=1e-5)
    y[...] = 0
    stream = ctypes.c_void_p(0x77)
    assert enqueue(model, stream, x_at, y_at) == 0
    assert not y.any(), "it is not waited for"
    driver.stack = 1
    driver.cuStreamSynchronize(0x77)
    driver.stack = 0
    np.testing.assert_allclose(y, meaning("beside.so", X), rtol=1e-5)
    driver.refuse["cuLaunchKernel"] = 1
    assert run(model, x_at, y_at) == 1
    assert b"CUDA_ERROR_INVALID_VALUE" in library.beside_error()
    memories = driver.memories
    library.beside_destroy(model)
    assert driver.memories == memories - 2
    library.beside_destroy(None)
    for name in ("beside", "inside"):
        command = ["cc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", str(folder / f"{name}.h")]
        subprocess.run(command, check=True)
    assert "int beside_enqueue(\n    beside *instance,\n    void *stream,\n" in (folder / "beside.h").read_text()
