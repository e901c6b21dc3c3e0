"""Programs for GPUs on machines without one: through LLVM's back end and the machine for PTX, beside ``ptxas``."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from numpy.typing import NDArray

from ansorlite.codegen.builder import Module
from ansorlite.codegen.nvptx import kernel
from ansorlite.codegen.nvptx.assemble import Report, assemble, ptxas, to_ptx
from ansorlite.codegen.nvptx.kernel import GpuKernel
from ansorlite.features.gpu import GPU_COLUMN, GPU_NAMES, gpu_features
from ansorlite.loops import passes
from ansorlite.loops.kernel_module import KernelModule
from ansorlite.loops.nodes import Buffer, Function
from ansorlite.loops.simplify import simplify
from ansorlite.loops.verifier import verify
from ansorlite.sketch.sketch import Sketch
from ansorlite.target import Target, resolve
from ansorlite.te import dtypes
from tests.ptx_machine import Counts, launch

#: What programs are assembled for.
PROCESSORS: Final = ("sm_80", "sm_90", "sm_90a")
TARGET: Final = resolve("sm_80")


def compiled(function: Function, target: Target = TARGET) -> tuple[str, tuple[GpuKernel, ...]]:
    """The PTX of a function's kernels, and what they are."""
    function = passes.run(simplify(function), (passes.THROUGH_REGISTERS, passes.SWIZZLE), target)
    verify(function)
    module = Module(target)
    _, statements = kernel.parts(function)
    kernels = tuple(kernel.emit(module, f"k{number}", stmt) for number, stmt in enumerate(statements))
    return to_ptx(module.text(), module.target), kernels


def launched(module: KernelModule, arrays: Sequence[NDArray[Any]], target: Target = TARGET) -> list[GpuKernel]:
    """All launches of a kernel in order, on the machine for PTX; what was launched. Arrays may have another shape than params."""
    given = {buffer: _as(buffer, array) for buffer, array in zip(module.params, arrays, strict=True)}
    given |= {buffer: np.zeros(buffer.size, dtypes.NUMPY[buffer.dtype]) for buffer in module.handed}
    found: list[GpuKernel] = []
    for each in module.launches:
        run(each.function, [given[buffer] for buffer in each.function.params], target)
        found += compiled(each.function, target)[1]
    return found


def _as(buffer: Buffer, array: NDArray[Any]) -> NDArray[Any]:
    """The array's own memory, in elements of the buffer's type."""
    assert array.nbytes == buffer.nbytes
    return array.view(dtypes.NUMPY[buffer.dtype]).reshape(buffer.shape)


def run(function: Function, arrays: Sequence[NDArray[Any]], target: Target = TARGET) -> list[Counts]:
    """All kernels of ``function`` in order, on the machine for PTX; what each cost."""
    ptx, kernels = compiled(function, target)
    temporaries, _ = kernel.parts(function)
    given = dict(zip(function.params, arrays, strict=True))
    own = [buffer for each in kernels for buffer in each.scratch]
    given |= {buffer: np.zeros(buffer.size, dtypes.NUMPY[buffer.dtype]) for buffer in (*temporaries, *own)}
    of = {each: [given[buffer] for buffer in (*each.buffers, *each.scratch)] for each in kernels}
    return [launch(ptx, each.grid, of[each], shared=each.shared, kernel=each.symbol) for each in kernels]


def assembled(ptx: str, processor: str) -> Mapping[str, Report]:
    """What ``ptxas`` says of a program."""
    if ptxas() is None and not os.environ.get("CI"):
        pytest.skip("there is no ptxas: pip install nvidia-cuda-nvcc")
    return assemble(ptx, processor).reports


def disassembled(ptx: str, processor: str) -> str:
    """The machine code of a program as text."""
    if ptxas() is None:
        pytest.skip("there is no ptxas: pip install nvidia-cuda-nvcc")
    # A wheel has it beside ptxas, not on the path.
    wheels = (Path(folder) for folder in sys.path)
    found = [str(file) for folder in wheels for file in folder.glob("nvidia/*/bin/nvdisasm")]
    program = shutil.which("nvdisasm") or next(iter(found), None)
    if program is None:
        pytest.skip("there is no nvdisasm: pip install nvidia-cuda-nvdisasm")
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(assemble(ptx, processor).cubin)
        file.flush()
        return subprocess.run([program, "-c", file.name], capture_output=True, text=True, check=True).stdout


def said_to_touch(sketch: Sketch, row: Sequence[int]) -> tuple[float, float]:
    """Passes over the banks of shared memory and sectors of memory, of all launches of a program, by its features."""
    gpu = sketch.target.gpu
    assert gpu is not None
    features = np.exp2(np.reshape(gpu_features(sketch.fold(row), gpu), (-1, len(GPU_NAMES)))) - 1.0
    of = {name: features[:, column] for name, column in GPU_COLUMN.items()}
    warps = of["blocks"] * np.ceil(np.rint(of["threads"]) / gpu.warp)
    return float(warps @ of["wavefronts"]), float(warps @ of["sectors"])
