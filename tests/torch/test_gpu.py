"""Tensors on GPUs: what the backend decides of them, and how kernels come to use them, without a PyTorch that has CUDA."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'ansorlite[torch]'")
pytest.importorskip("onnxscript", reason="PyTorch's exporter needs onnxscript: pip install 'ansorlite[torch]'")

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

import ansorlite as al
from ansorlite.codegen.nvptx.assemble import ASSEMBLER_VARIABLE
from ansorlite.errors import ArgumentError, TargetError
from ansorlite.frontends.torch.compile import compile_graph
from ansorlite.frontends.torch.errors import NotCompiledError
from ansorlite.frontends.torch.placement import call_there, placement_of
from ansorlite.frontends.torch.rehearsal import rehearse
from ansorlite.frontends.torch.settings import Settings
from ansorlite.graph.builder import GraphBuilder
from ansorlite.graph.describe import Value
from ansorlite.graph.model import Model
from ansorlite.runtime.cuda import Cuda
from ansorlite.runtime.devices import device_of
from ansorlite.target import GPUS, resolve
from ansorlite.topi.activations import relu
from tests.cupy_stand_in import StandIn


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    monkeypatch.setenv(ASSEMBLER_VARIABLE, "driver")
    device_of.cache_clear()
    with StandIn(gpus=2).installed() as stand_in:
        yield stand_in
    device_of.cache_clear()


def on(device: str, *shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """A tensor that has all but elements: PyTorch makes such of any device."""
    with FakeTensorMode():
        return torch.empty(shape, dtype=dtype, device=device)


@pytest.mark.usefixtures("gpus")
def test_programs_are_for_where_the_tensors_are() -> None:
    assert placement_of([torch.zeros(2), 3], None).target == resolve("llvm")
    assert placement_of([3, None], None).name == "the CPU"
    there = placement_of([on("cuda:1", 2), 3, on("cuda:1", 4)], None)
    assert (there.target.kind, there.target.ordinal, there.name) == ("cuda", 1, "cuda:1")
    assert placement_of([on("cuda:0", 2)], GPUS["h100"]).target is GPUS["h100"]
    assert placement_of([on("cuda:1", 2)], "cuda:1").target.ordinal == 1
    assert placement_of([torch.zeros(2)], "emulated").target.kind == "emulated"


@pytest.mark.usefixtures("gpus")
def test_what_is_left_to_pytorch() -> None:
    with pytest.raises(NotCompiledError, match="its tensors are on cpu and cuda:0; move the module and its inputs to one device"):
        placement_of([torch.zeros(2), on("cuda:0", 2)], None)
    with pytest.raises(NotCompiledError, match="its tensors are on meta, and programs are made for CPUs and NVIDIA GPUs"):
        placement_of([torch.empty(2, device="meta")], None)
    with pytest.raises(NotCompiledError, match="there is no GPU number 5; this machine has 2"):
        placement_of([on("cuda:5", 2)], None)


@pytest.mark.usefixtures("gpus")
def test_a_target_that_is_not_where_the_tensors_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(
        ArgumentError, match="target is 'cuda', but this PyTorch has no CUDA; install one that has, or leave target"
    ):
        placement_of([torch.zeros(2)], "cuda")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    with pytest.raises(ArgumentError, match="target is 'cuda:1', but the tensors are on cpu; move them, or leave target out"):
        placement_of([torch.zeros(2)], "cuda:1")
    with pytest.raises(ArgumentError, match="target is 'llvm', but the tensors are on cuda:0"):
        placement_of([on("cuda:0", 2)], "llvm")
    with pytest.raises(
        ArgumentError, match="target is 'cuda', but the tensors are on cuda:1; ask for 'cuda:1', or leave target out"
    ):
        placement_of([on("cuda:1", 2)], "cuda")
    with pytest.raises(TargetError, match="unknown target 'gpu'"):
        placement_of([torch.zeros(2)], "gpu")


def test_without_cupy_a_graph_is_left_to_pytorch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(NotCompiledError, match=r"through CuPy, which is not here .*pip install 'ansorlite\[cuda12\]'"):
        placement_of([on("cuda:0", 2)], None)


@pytest.mark.usefixtures("gpus")
def test_tensors_that_kernels_cannot_use_there() -> None:
    placement = placement_of([on("cuda:0", 2)], None)
    graph = torch.fx.symbolic_trace(lambda x: (x + 1,))
    with pytest.raises(NotCompiledError, match=r"it takes a tensor of torch.complex64, .*which kernels have no arrays for"):
        rehearse(graph, [on("cuda:0", 2, dtype=torch.complex64)], placement)
    with pytest.raises(NotCompiledError, match="it takes a tensor on cpu, and not on cuda:0"):
        rehearse(graph, [torch.zeros(2)], placement)


class Tensor:
    """What the bridge uses of a tensor on a GPU, as PyTorch has it; its memory is the stand-in's."""

    def __init__(self, gpus: StandIn, array: Any, dtype: torch.dtype) -> None:
        self._gpus, self.array, self.dtype = gpus, array, dtype
        self.streams: list[int] = []

    def view(self, dtype: torch.dtype) -> Tensor:
        viewed = Tensor(self._gpus, self.array, dtype)
        viewed.streams = self.streams
        return viewed

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, int(self.array.device.id)

    def __dlpack__(self, stream: int) -> Any:
        assert self.dtype is not torch.bfloat16, "CuPy has none"
        self.streams.append(stream)
        return self.array


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_tensors_are_used_on_pytorchs_stream_and_its_own_are_filled(gpus: StandIn, dtype: str) -> None:
    build = GraphBuilder()
    graph = build.finish({"y": build.apply(relu, build.input("x", Value((4, 8), dtype)))})
    executable = al.compile(Model.of(graph, resolve("cuda")))
    gpu = device_of(resolve("cuda"))
    assert isinstance(gpu, Cuda)
    x = np.linspace(-1, 1, 32, dtype=np.float32).reshape(4, 8)
    bits = x if dtype == "float32" else (x.view(np.uint32) >> 16).astype(np.uint16)
    stream = gpus.module.cuda.Stream()
    made: list[Tensor] = []

    def make(shape: tuple[int, ...], kind: torch.dtype) -> Tensor:
        assert kind is getattr(torch, dtype)
        made.append(Tensor(gpus, gpus.empty(shape, bits.dtype), kind))
        return made[-1]

    call = call_there(executable, gpu, make, lambda: stream.ptr)
    given = Tensor(gpus, gpus.asarray(bits), getattr(torch, dtype))
    gpus.null[0].synchronize()
    launched = len(gpus.gpu.launched)
    for _ in range(3):
        (result,) = call([given])
        assert result is made[-1], "PyTorch's own"
    gpus.null[0].synchronize()
    assert len(gpus.gpu.launched) == launched, "it is on PyTorch's stream, and not waited for"
    stream.synchronize()
    assert set(given.streams + result.streams) == {stream.ptr}
    np.testing.assert_array_equal(result.array.get(), np.where(x > 0, bits, bits.dtype.type(0)))


def test_another_target_on_the_cpu_is_an_option() -> None:
    graph = torch.fx.symbolic_trace(lambda x: (torch.relu(x) * 2,))
    x = torch.linspace(-1, 1, 12).reshape(3, 4)
    with torch.no_grad():
        call = compile_graph(graph, [x], [False], Settings(target="emulated"))
        torch.testing.assert_close(call([x])[0], torch.relu(x) * 2)
        compiled = torch.compile(torch.nn.ReLU(), backend="ansorlite", options={"target": "cuda"})
        with pytest.raises(Exception, match=r"this PyTorch has no CUDA|the tensors are on cpu"):
            compiled(x)
