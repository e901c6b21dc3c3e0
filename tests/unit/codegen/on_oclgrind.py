"""Runs the small programs, and those that are kept, on Oclgrind, which tells of races on standard error; then one without
barriers."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np

from ansorlite.codegen.object import DeviceObject
from ansorlite.loops.arguments import argument
from ansorlite.machine.opencl import devices
from ansorlite.platforms import build
from ansorlite.runtime.kernel import Kernel
from ansorlite.sketch.program import lower
from ansorlite.target import resolve
from ansorlite.task import Task
from ansorlite.te.evaluate import evaluate
from tests.golden.gpu import CASES, kept
from tests.gpu_programs import SMALL
from tests.strategies import arrays_for, assert_close


def main() -> None:
    names = [device.platform.name for device in devices()]
    target = resolve(f"opencl:{names.index('Oclgrind')}")
    for name, program in SMALL.items():
        inputs = program.arrays()[: -program.function.outputs]
        found = Kernel(build(program.function, target), program.function.params, target)(*inputs)
        np.testing.assert_allclose(found, program.meaning(*inputs), rtol=1e-5, atol=1e-5)
        print(name)
    for name, golden in CASES.items():
        task = Task(golden.small(), target)
        inputs = arrays_for(task.dag, np.random.default_rng(6))
        params = [argument(tensor) for tensor in (*task.dag.inputs, *task.dag.outputs)]
        found = Kernel(build(lower(task, kept(name, small=True)), target), params, target)(*inputs)
        assert_close(task.dag, [found], evaluate(task.dag, inputs))
        print(name)
    sys.stdout.flush()
    print("without barriers", file=sys.stderr, flush=True)
    program = SMALL["transpose"]
    compiled = build(program.function, target)
    assert isinstance(compiled, DeviceObject)
    without = compiled.text.replace("barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);", "")
    assert without != compiled.text
    Kernel(replace(compiled, text=without), program.function.params, target)(*program.arrays()[:-1])


if __name__ == "__main__":
    main()
