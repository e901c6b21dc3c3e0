"""Kept programs for GPUs: assembled for each kind of them, and run where no GPU is."""

from __future__ import annotations

from typing import Final

import numpy as np
import pytest

from ansorlite.loops.kernel_module import When, kernel_module
from ansorlite.loops.verifier import verify
from ansorlite.sketch.gpu_limits import registers
from ansorlite.sketch.program import lower, sketch_of
from ansorlite.te.evaluate import evaluate
from tests.contracts.test_right_numbers import interpreted, poisoned
from tests.golden.gpu import CASES, FULL, for_processor, keep, kept
from tests.on_gpu import PROCESSORS, assembled, compiled, launched
from tests.strategies import arrays_for, assert_close

#: How far from the estimate what the assembler says may be: a share of it, and so many registers.
NEAR: Final = (0.5, 24)
#: Programs whose estimate is below that have registers left, so nothing is spilled.
ROOM: Final = 200


@pytest.fixture
def update(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--update-golden"))


@pytest.mark.parametrize("name", CASES)
def test_assembled_within_the_estimate(name: str, update: bool) -> None:
    if update:
        keep(name, small=False)
    task, candidate = CASES[name].task(small=False), kept(name, small=False)
    nests = [nest for nest in sketch_of(task, candidate).fold(()).nests if not nest.prepared]
    assert FULL.gpu is not None
    estimates = [int(registers(nest, FULL.gpu)) for nest in nests]
    (function,) = kernel_module(lower(task, candidate)).at(When.CALL)
    verify(function)
    ptx, kernels = compiled(function, FULL)
    assert len(kernels) == len(nests)
    for processor in PROCESSORS:
        reports = assembled(for_processor(ptx, processor), processor)
        for kernel, estimate in zip(kernels, estimates, strict=True):
            report = reports[kernel.symbol]
            share, more = NEAR
            assert abs(report.registers - estimate) <= share * estimate + more, (kernel.symbol, report, estimate)
            if estimate < ROOM:
                assert report.spilled == 0, (kernel.symbol, report, estimate)


@pytest.mark.parametrize("name", CASES)
def test_small_ones_are_right_on_every_machine(name: str, update: bool) -> None:
    if update:
        keep(name, small=True)
    task = CASES[name].task(small=True)
    function = lower(task, kept(name, small=True))
    verify(function)
    rng = np.random.default_rng(5)
    inputs = arrays_for(task.dag, rng)
    expected = evaluate(task.dag, inputs)
    assert_close(task.dag, interpreted(task.dag, function, inputs, rng), expected)
    outputs = poisoned(task.dag)
    launched(kernel_module(function), [*inputs, *outputs])
    assert_close(task.dag, outputs, expected)
