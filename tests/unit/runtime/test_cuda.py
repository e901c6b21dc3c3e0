"""Kernels on a GPU through CuPy's stand-in, whose GPU is the machine for PTX: every line of the road but the driver's own."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import types
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import ansorlite as al
from ansorlite import te
from ansorlite.codegen.limits import Limits
from ansorlite.codegen.nvptx import compile as nvptx
from ansorlite.codegen.nvptx.assemble import ASSEMBLER_VARIABLE
from ansorlite.codegen.object import DeviceObject, Form
from ansorlite.errors import ArgumentError, DeviceLostError, MemoryLimitError, TargetError
from ansorlite.loops.nodes import Function
from ansorlite.platforms import build
from ansorlite.programs.kernels import kernel_of
from ansorlite.programs.packing import pack, unpack
from ansorlite.runtime.device_kernel import DeviceKernel
from ansorlite.runtime.devices import device_of
from ansorlite.runtime.kernel import Origin
from ansorlite.runtime.timing import TimingSettings
from ansorlite.sketch.candidate import NAIVE
from ansorlite.sketch.program import lower
from ansorlite.target import GPUS, Target, check_runs, obstacle, resolve
from tests.cupy_stand_in import ATTRIBUTES, StandIn
from tests.gpu_programs import GOLDEN, SMALL, element_wise
from tests.unit.platforms.test_platforms import several


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    """Two GPUs; their driver takes PTX."""
    monkeypatch.setenv(ASSEMBLER_VARIABLE, "driver")
    device_of.cache_clear()
    with StandIn(gpus=2).installed() as stand_in:
        yield stand_in
    device_of.cache_clear()


def kernel(function: Function, target: Target | None = None) -> DeviceKernel:
    target = target or resolve("cuda")
    return DeviceKernel(build(function, target), function.params, target)


@pytest.mark.usefixtures("gpu")
def test_the_target_is_what_the_driver_tells() -> None:
    target = resolve("cuda:1")
    assert target.key == "cuda nvptx64 sm_86 v16 t1 Stand-in-2 4"
    assert target.gpu is not None
    assert (target.ordinal, target.gpu.block_shared, target.gpu.flops, target.gpu.bandwidth) == (1, 99 << 10, 1.024e12, 64e9)
    assert target.key == resolve("cuda").key, "records do not tell two alike apart"
    check_runs(target)
    with pytest.raises(TargetError, match="no GPU number 2; this machine has 2"):
        resolve("cuda:2")
    assert "device cuda:0 is cuda nvptx64 sm_86" in (obstacle(GPUS["h100"]) or "")


def test_without_cupy_or_a_driver_one_sentence_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(TargetError, match=r"through CuPy, which is not here .*pip install 'ansorlite\[cuda12\]'"):
        resolve("cuda")
    assert "CuPy" in (obstacle(GPUS["a100"]) or "")
    with StandIn(driver=False).installed(), pytest.raises(TargetError, match=r"no driver for it .*; install the driver"):
        resolve("cuda")
    with StandIn(gpus=0).installed(), pytest.raises(TargetError, match="compile for a named one, as h100"):
        resolve("cuda")


@pytest.mark.parametrize("name", GOLDEN)
def test_programs_are_right(gpu: StandIn, name: str) -> None:
    program = GOLDEN[name]
    arrays = program.arrays()
    made = kernel(program.function)
    inputs = arrays[: -program.function.outputs]
    found = made(*inputs)
    assert isinstance(found, np.ndarray), "numpy's in, numpy's out"
    np.testing.assert_allclose(found, program.meaning(*inputs), rtol=1e-5, atol=1e-5)
    there = made(*map(gpu.asarray, inputs))
    assert isinstance(there, gpu.module.ndarray)
    np.testing.assert_array_equal(there.get(), found)


def test_arrays_on_the_gpu_are_used_where_they_are_and_not_waited_for(gpu: StandIn) -> None:
    made = kernel(SMALL["element_wise"].function)
    x, y = (np.random.default_rng(n).random(100, dtype=np.float32) for n in range(2))
    given = gpu.asarray(x), gpu.asarray(y)
    used = gpu.gpu.used
    result = made(*given)
    assert gpu.gpu.used - used == 512, "one output, and nothing else"
    assert not gpu.gpu.launched, "it has not run yet"
    np.testing.assert_allclose(result.get(), np.exp(x) + y, rtol=1e-6)
    out = gpu.empty((100,))
    assert made(*given, out=out) is out
    np.testing.assert_array_equal(out.get(), result.get())
    # In place of an input: that one is copied first.
    made(given[0], given[1], out=given[1])
    np.testing.assert_array_equal(given[1].get(), result.get())


def test_it_runs_on_the_callers_stream(gpu: StandIn) -> None:
    made = kernel(SMALL["element_wise"].function)
    x = gpu.asarray(np.ones(100, np.float32))
    gpu.null[0].synchronize()
    stream = gpu.module.cuda.Stream()
    with stream:
        result = made(x, x)
    gpu.null[0].synchronize()
    assert not gpu.gpu.launched
    stream.synchronize()
    assert len(gpu.gpu.launched) == 1
    np.testing.assert_allclose(result.get(), np.e + 1, rtol=1e-6)


class Foreign:
    """An array of another library on a GPU, as DLPack has it."""

    def __init__(self, array: Any, device: tuple[int, int]) -> None:
        self._array, self._device = array, device
        self.streams: list[int] = []

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._device

    def __dlpack__(self, stream: int) -> Any:
        self.streams.append(stream)
        return self._array


def test_arrays_of_other_libraries(gpu: StandIn) -> None:
    made = kernel(SMALL["element_wise"].function)
    x = np.linspace(0, 1, 100, dtype=np.float32)
    there = gpu.asarray(x)
    foreign = Foreign(there, (2, 0))
    stream = gpu.module.cuda.Stream()
    with stream:
        result = made(foreign, there)
        assert foreign.streams == [stream.ptr], "its library lets our stream wait"
    gpu.null[0].synchronize()
    stream.synchronize()
    np.testing.assert_allclose(result.get(), np.exp(x) + x, rtol=1e-6)

    class Interface:
        __cuda_array_interface__ = there.__cuda_array_interface__

    np.testing.assert_array_equal(made(Interface(), x).get(), result.get())
    with pytest.raises(ArgumentError, match=r"X is on GPU 1, and the program on GPU 0; .*'cuda:1'"):
        made(Foreign(there, (2, 1)), there)
    with pytest.raises(ArgumentError, match="X is a Foreign on a device of another kind"):
        made(Foreign(there, (10, 0)), there)
    with gpu.module.cuda.Device(1):
        elsewhere = gpu.asarray(x)
    with pytest.raises(ArgumentError, match="Y is on GPU 1"):
        made(there, elsewhere)
    with pytest.raises(ArgumentError, match="X is a list, not an array"):
        made([1.0], there)

    class Refusing(Foreign):
        def __dlpack__(self, stream: int) -> Any:
            raise BufferError("it needs its gradient")

    with pytest.raises(ArgumentError, match=r"CuPy cannot view \(it needs its gradient\)"):
        made(Refusing(there, (2, 0)), there)


def test_on_the_second_gpu(gpu: StandIn) -> None:
    made = kernel(SMALL["softmax"].function, resolve("cuda:1"))
    x = np.random.default_rng(0).random((2, 128), dtype=np.float32)
    np.testing.assert_allclose(made(x).sum(1), 1, rtol=1e-5)
    assert (len(gpu.gpus[0].launched), len(gpu.gpus[1].launched)) == (0, 1)


def test_arrays_that_do_not_fit_are_told_in_one_sentence(gpu: StandIn) -> None:
    made = kernel(SMALL["transpose"].function)
    x = gpu.asarray(np.ones((16, 8), np.float32))
    with pytest.raises(ArgumentError, match=r"takes 1 arrays \(X\), not 2"):
        made(x, x)
    with pytest.raises(ArgumentError, match=r"X has shape \(8, 16\)"):
        made(x.T)
    with pytest.raises(ArgumentError, match="X is int32, not float32"):
        made(gpu.asarray(np.ones((16, 8), np.int32)))
    with pytest.raises(ArgumentError, match="out for Y is numpy's array"):
        made(x, out=np.ones((8, 16), np.float32))
    with pytest.raises(ArgumentError, match="out for Y must be contiguous"):
        made(x, out=gpu.empty((16, 8)).T)
    with pytest.raises(ArgumentError, match="out has 2 arrays"):
        made(x, out=[x, x])
    with pytest.raises(ArgumentError, match="bind takes arrays on the GPU"):
        made.bind(np.ones((16, 8), np.float32), gpu.empty((8, 16)))
    with pytest.raises(ArgumentError, match="takes 2 arrays, inputs then outputs, not 1"):
        made.bind(x)
    # What is not contiguous is copied.
    across = gpu.asarray(np.arange(128, dtype=np.float32).reshape(8, 16)).T
    np.testing.assert_array_equal(made(across).get(), np.arange(128, dtype=np.float32).reshape(8, 16))


def test_a_gpu_that_is_full(gpu: StandIn) -> None:
    made = kernel(SMALL["element_wise"].function)
    x = gpu.asarray(np.ones(100, np.float32))
    gpu.gpu.total = gpu.gpu.used
    with pytest.raises(MemoryLimitError, match=r"GPU 0 has no 400 bytes of memory left; free some"):
        made(x, x)
    with pytest.raises(MemoryLimitError, match="GPU 0 has no"):
        made(np.ones(100, np.float32), np.ones(100, np.float32))


@pytest.mark.usefixtures("gpu")
def test_more_shared_memory_than_there_is() -> None:
    wide = GOLDEN["transpose"].function
    target = resolve("cuda")
    assert target.gpu is not None
    small = replace(target, gpu=replace(target.gpu, block_shared=4096))
    with pytest.raises(TargetError, match=r"needs 4224 bytes of shared memory in a block; Stand-in 2 has at most 4096"):
        kernel(wide, small)
    # Made elsewhere for a GPU that has it, and of the same name.
    compiled = build(wide, target)
    large = replace(compiled, launches=tuple(replace(each, shared=1 << 20) for each in compiled.launches))
    with pytest.raises(TargetError, match="needs 1048576 bytes of shared memory in a block; there are 101376"):
        DeviceKernel(large, wide.params, target)
    # More than is common must be asked for, and is.
    more = replace(compiled, launches=tuple(replace(each, shared=64 << 10) for each in compiled.launches))
    x = np.random.default_rng(0).random((64, 96), dtype=np.float32)
    np.testing.assert_array_equal(DeviceKernel(more, wide.params, target)(x), x.T)


@pytest.mark.usefixtures("gpu")
def test_what_the_driver_refuses() -> None:
    function, target = SMALL["element_wise"].function, resolve("cuda")
    compiled = build(function, target)
    with pytest.raises(TargetError, match="the driver refuses to load the program: CUDA_ERROR_INVALID_IMAGE"):
        DeviceKernel(replace(compiled, code=b"\x7fELF"), function.params, target)
    other = build(function, GPUS["a100"])
    with pytest.raises(TargetError, match=r"compiled for cuda nvptx64 sm_80 .* not for .*Stand-in"):
        DeviceKernel(other, function.params, target)


def test_a_fault_is_told_and_stays(gpu: StandIn) -> None:
    """A program that reads beyond its arrays breaks the GPU for this process: every call says so."""
    function, target = SMALL["element_wise"].function, resolve("cuda")
    compiled = build(function, target)
    wrong = replace(compiled, launches=tuple(replace(each, grid=1 << 10) for each in compiled.launches))
    broken = DeviceKernel(wrong, function.params, target)
    sound = DeviceKernel(compiled, function.params, target)
    x = gpu.asarray(np.ones(100, np.float32))
    gpu.gpu.blocks.clear()  # as if somebody had freed it
    result = broken(x, x)
    with pytest.raises(Exception, match="ILLEGAL_ADDRESS"):
        result.get()
    with pytest.raises(DeviceLostError, match=r"GPU 0 fails \(CUDA_ERROR_ILLEGAL_ADDRESS.*start this process again"):
        sound(np.ones(100, np.float32), np.ones(100, np.float32))


def test_what_writes_beside_its_arrays_is_found(gpu: StandIn) -> None:
    device = device_of(resolve("cuda"))
    memories = [device.read_only(np.ones(10, np.float32)), device.guarded((10,), "float32")]
    device.copy_out(memories[1])
    gpu.gpu.at(memories[0].address + 40, 1)[...] = 0
    with pytest.raises(DeviceLostError, match="written beside its arrays"):
        device.copy_out(memories[1])
    device.free(memories[0])
    device.copy_out(memories[1])


def test_arrays_that_begin_anywhere_are_copied_and_none_is_written_there(gpu: StandIn) -> None:
    """Kernels load four elements at once: what does not begin at a multiple of 16 bytes would break the GPU."""
    made = kernel(element_wise(128, 8).function)
    wide = np.random.default_rng(0).random(129, dtype=np.float32)
    there = gpu.asarray(wide)
    x = there[1:]
    assert x.data.ptr % 16
    np.testing.assert_allclose(made(x, x).get(), np.exp(wide[1:]) + wide[1:], rtol=1e-6)
    with pytest.raises(ArgumentError, match=r"out for Z must be contiguous, and begin at 16 bytes; pass one from cupy.empty"):
        made(there[:128], there[:128], out=x)
    with pytest.raises(ArgumentError, match="X is not a contiguous array that can be used in place"):
        made.bind(x, there[:128], gpu.empty((128,)))


def test_on_a_stream_that_is_captured(gpu: StandIn) -> None:
    """With arrays of the caller's it is a part of the graph; what would need memory is refused, and harms nothing."""
    made = kernel(SMALL["element_wise"].function)
    x, out = gpu.asarray(np.ones(100, np.float32)), gpu.empty((100,))
    gpu.null[0].synchronize()
    stream = gpu.module.cuda.Stream()
    with stream:
        stream.begin_capture()
        with pytest.raises(ArgumentError, match=r"stream of GPU 0 is captured, .*call it once on that stream before.* out="):
            made(x, x)
        made(x, x, out=out)
        graph = stream.end_capture()
    stream.synchronize()
    assert not gpu.gpu.launched
    graph.launch(stream)
    stream.synchronize()
    np.testing.assert_allclose(out.get(), np.e + 1, rtol=1e-6)


def test_bound_and_timed(gpu: StandIn) -> None:
    made = kernel(SMALL["softmax"].function)
    x = gpu.asarray(np.random.default_rng(0).random((2, 128), dtype=np.float32))
    y = gpu.empty((2, 128))
    run = made.bind(x, y)
    run()
    np.testing.assert_allclose(y.get().sum(1), 1, rtol=1e-5)
    settings = TimingSettings(min_seconds=0.0, min_repeats=2, repeat_seconds=1e-5)
    before = len(gpu.gpu.launched)
    timing = made.benchmark(x, settings=settings)
    assert timing.median == pytest.approx(2e-6), "a block takes a microsecond on this GPU's clock"
    assert len(gpu.gpu.launched) - before >= 12, "five calls a repeat, and what comes before"
    cold = made.benchmark(x, settings=replace(settings, flush_bytes=1 << 16))
    assert cold.median == pytest.approx(2e-6)


def test_many_calls_are_a_graph(gpu: StandIn) -> None:
    made = kernel(SMALL["element_wise"].function)
    x = gpu.asarray(np.ones(100, np.float32))
    y = gpu.empty((100,))
    run = made._bound_on_device([x, x, y])
    gpu.null[0].synchronize()
    run(150)
    gpu.null[0].synchronize()
    assert len(gpu.gpu.launched) == 150
    np.testing.assert_allclose(y.get(), np.e + 1, rtol=1e-6)


def test_launches_that_prepare_and_hand_on(gpu: StandIn) -> None:
    """Five launches: two prepare, three hand temporaries on."""
    target = resolve("cuda")
    module = several()
    compiled = nvptx.compile(module, target, Limits(1000))
    assert unpack(pack(compiled)) == compiled
    x, w = (np.random.default_rng(n).random(24, dtype=np.float32) for n in (1, 2))
    expected = 2 * (x + w * w) + (w + w * w)
    made = DeviceKernel(compiled, module.params, target)
    np.testing.assert_allclose(made(x, w), expected, rtol=1e-6)
    assert len(gpu.gpu.launched) == 5
    prepared = made.prepare(W=gpu.asarray(w))
    assert len(gpu.gpu.launched) >= 5
    np.testing.assert_allclose(prepared(x), expected, rtol=1e-6)
    assert len(gpu.gpu.launched) == 10, "two prepared, three ran"
    np.testing.assert_allclose(prepared(gpu.asarray(x)).get(), expected, rtol=1e-6)
    assert len(gpu.gpu.launched) == 13
    out = gpu.empty((24,))
    prepared.bind(gpu.asarray(x), out)()
    np.testing.assert_allclose(out.get(), expected, rtol=1e-6)


def _task(target: str) -> al.Task:
    a, b = te.placeholder((8, 4), name="a"), te.placeholder((4, 8), name="b")
    k = te.reduce_axis(4, name="k")
    return al.Task([a, b, te.compute((8, 8), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="c")], target)


@pytest.mark.usefixtures("gpu")
def test_compiled_through_the_front_door() -> None:
    made = al.compile(_task("cuda"))
    assert isinstance(made, DeviceKernel)
    a, b = (np.random.default_rng(n).random(shape, dtype=np.float32) for n, shape in enumerate([(8, 4), (4, 8)]))
    np.testing.assert_allclose(made(a, b), a @ b, rtol=1e-5)
    assert ".entry" in made.source("asm")
    assert "define void" in made.source("llvm")


def test_programs_are_made_where_no_gpu_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """For an H100, without CuPy; to run them is refused."""
    monkeypatch.setitem(sys.modules, "cupy", None)
    monkeypatch.setenv(ASSEMBLER_VARIABLE, "driver")
    device_of.cache_clear()
    task = _task("h100")
    compiled = build(lower(task, NAIVE), task.target)
    assert isinstance(compiled, DeviceObject)
    assert compiled.form is Form.PTX
    with pytest.raises(TargetError, match="CuPy"):
        kernel_of(task, compiled, Origin(NAIVE, None))


def _names(namespace: Any, prefix: str = "") -> Iterator[str]:
    for name in vars(namespace):
        if not name.startswith("__"):
            value = getattr(namespace, name)
            yield prefix + name
            if isinstance(value, types.SimpleNamespace):
                yield from _names(value, f"{prefix}{name}.")


@pytest.mark.skipif(
    not os.environ.get("CI") and importlib.util.find_spec("cupy") is None, reason="there is no CuPy: pip install cupy-cuda13x"
)
def test_cupy_has_what_its_stand_in_has() -> None:
    """CuPy can be imported without a GPU. What it does with its arguments only a GPU tells."""
    cupy = importlib.import_module("cupy")
    for name in _names(StandIn().module):
        found = cupy
        for part in name.split("."):
            assert hasattr(found, part), f"CuPy has no {name}"
            found = getattr(found, part)
    for number, (name, _) in enumerate(ATTRIBUTES.items()):
        assert getattr(cupy.cuda.runtime, f"cudaDevAttr{name}") == ATTRIBUTES[name][0], number
    for owner, names in {
        cupy.cuda.Stream: ("begin_capture", "end_capture", "is_capturing", "synchronize", "__enter__"),
        cupy.cuda.ExternalStream: ("is_capturing", "synchronize", "__enter__"),
        cupy.cuda.Event: ("record", "synchronize"),
        cupy.cuda.graph.Graph: ("launch",),
        cupy.cuda.function.Module: ("load", "get_function"),
        cupy.cuda.function.Function: ("__call__", "ptr"),
        cupy.cuda.Device: ("__enter__", "compute_capability"),
        cupy.ndarray: ("data", "device", "flags", "get", "copy", "nbytes", "__getitem__", "__setitem__"),
    }.items():
        for name in names:
            assert hasattr(owner, name), f"{owner} has no {name}"
    assert issubclass(cupy.cuda.memory.OutOfMemoryError, MemoryError)
    with pytest.raises(
        TargetError, match=r"no NVIDIA GPU here, or no driver for it|device cuda:0 is|compile for a named one"
    ) as told:
        check_runs(GPUS["h100"])
    assert "\n" not in str(told.value)
