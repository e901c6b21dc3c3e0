"""The table of platforms, and what its rows are used for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

import ansorlite as al
from ansorlite import te
from ansorlite.codegen.object import Object
from ansorlite.errors import ProgramSizeError, TargetError
from ansorlite.loops.interpreter import interpret, interpret_module
from ansorlite.loops.kernel_module import KernelModule, Launch, When
from ansorlite.loops.nodes import Alloc, Buffer, Function, LoopKind, Scope, Stmt, block, index
from ansorlite.loops.passes import FETCH_AHEAD, PEEL, LoopPass, run
from ansorlite.loops.printer import text
from ansorlite.loops.verifier import verify
from ansorlite.platforms import PLATFORMS, build, finished, platform_of
from ansorlite.programs.packing import pack, unpack
from ansorlite.runtime.devices import DEVICES
from ansorlite.spaces.derivation import derive
from ansorlite.target import GPUS, LEVELS, NAMED, Target, host
from ansorlite.te import dtypes
from ansorlite.te.expr import Var
from tests.running import run_compiled
from tests.unit.loops.build import argument, load, loop, store

TARGET = host(threads=2)


def changed(monkeypatch: pytest.MonkeyPatch, **fields: object) -> None:
    """The host's row with other ``fields``, for the time of a test."""
    monkeypatch.setitem(PLATFORMS, TARGET.platform, replace(platform_of(TARGET), **fields))  # type: ignore[arg-type]


def test_every_named_target_has_a_platform_and_a_device() -> None:
    cpus = {target.platform for target in NAMED.values()}
    named = cpus | {target.platform for target in GPUS.values()}
    assert PLATFORMS.keys() == DEVICES.keys() == named | {("emulated", architecture) for _, architecture in cpus}
    for key, platform in PLATFORMS.items():
        assert platform.device is DEVICES[key]
        assert len({each.name for each in platform.passes}) == len(platform.passes)


def test_another_platform_is_refused_in_one_sentence() -> None:
    other = replace(LEVELS["aarch64"], triple="riscv64-unknown-linux-gnu")
    task = al.Task([a := te.placeholder((4,), name="a"), te.compute((4,), lambda i: a[i] + 1.0, name="b")], other)
    with pytest.raises(TargetError, match=r"the platform llvm riscv64; the platforms are: llvm x86_64, llvm aarch64, emulated"):
        derive(task)


def packing() -> Function:
    """Through a copy, with tiles of 8 of which the last one, which is cut, is peeled."""
    x, t, y = argument("X", 37), Buffer("T", (37,), "float32", Scope.GLOBAL), argument("Y", 37)

    def tile(i: Var) -> Stmt:
        extent = te.minimum(8, index(37) - i * 8)
        return loop("j", extent, lambda j: store(t, (i * 8 + j,), load(x, i * 8 + j)), LoopKind.VECTORIZED, 8)

    use = loop("j", 37, lambda j: store(y, (j,), load(t, j) * 2.0))
    return Function("packing", (x, y), 1, Alloc(t, block(loop("i", 5, tile), use)))


def test_the_source_shows_the_loops_that_run(monkeypatch: pytest.MonkeyPatch) -> None:
    function = packing()
    module = finished(function, TARGET)
    (after,) = module.at(When.CALL)
    assert text(after) == text(run(function, platform_of(TARGET).passes, TARGET)) != text(function)
    assert build(function, TARGET).loops == text(after)
    verify(after)
    array = np.random.default_rng(0).random(37, dtype=np.float32)
    plain, found = np.empty_like(array), np.empty_like(array)
    interpret(function, [array, plain])
    interpret_module(module, [array, found])
    np.testing.assert_array_equal(plain, found)
    changed(monkeypatch, passes=())
    assert build(function, TARGET).loops == text(function)


def test_passes_run_in_the_order_of_the_row(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def noting(each: LoopPass) -> LoopPass:
        def apply(function: Function, target: Target) -> Function:
            asked.append(each.name)
            return each.apply(function, target)

        return LoopPass(each.name, apply)

    passes = [noting(each) for each in (PEEL, FETCH_AHEAD)]
    changed(monkeypatch, passes=tuple(passes))
    finished(packing(), TARGET)
    assert asked == ["peel", "fetch_ahead"]


def test_the_limits_are_those_of_the_row(monkeypatch: pytest.MonkeyPatch) -> None:
    changed(monkeypatch, limits=replace(platform_of(TARGET).limits, values=10))
    with pytest.raises(ProgramSizeError, match="more than 10 instructions"):
        build(packing(), TARGET)


X, Y, W = argument("X", 24), argument("Y", 24), Buffer("W", (24,), "float32", Scope.CONSTANT)
SQUARES, SUMS = (Buffer(name, (24,), "float32", Scope.PREPARED) for name in ("squares", "sums"))
FIRST, SECOND = (Buffer(name, (24,), "float32", Scope.GLOBAL) for name in ("first", "second"))


def elementwise(name: str, inputs: Sequence[Buffer], output: Buffer, value: str) -> Function:
    values = {
        "double": lambda i: load(inputs[0], i) * 2.0,
        "square": lambda i: load(inputs[0], i) * load(inputs[0], i),
        "add": lambda i: load(inputs[0], i) + load(inputs[1], i),
    }
    body = loop("i", 24, lambda i: store(output, (i,), values[value](i)), LoopKind.PARALLEL)
    return Function(name, (*inputs, output), 1, body)


def several() -> KernelModule:
    """Five launches: two prepare, and the second of them reads what the first left; three of a call hand on temporaries."""
    once = (elementwise("square", (W,), SQUARES, "square"), elementwise("sums", (W, SQUARES), SUMS, "add"))
    call = (
        elementwise("one", (X, SQUARES), FIRST, "add"),
        elementwise("two", (FIRST,), SECOND, "double"),
        elementwise("three", (SECOND, SUMS), Y, "add"),
    )
    launches = (*(Launch(each, When.ONCE) for each in once), *(Launch(each, When.CALL) for each in call))
    return KernelModule("several", (X, W, Y), 1, (SQUARES, SUMS, FIRST, SECOND), launches)


def test_a_kernel_of_several_launches() -> None:
    module, platform = several(), platform_of(TARGET)
    for launch in module.launches:
        verify(launch.function)
    rng = np.random.default_rng(1)
    x, w = (rng.integers(-4, 5, 24).astype(dtypes.NUMPY["float32"]) for _ in range(2))
    expected = 2 * (x + w * w) + w + w * w
    interpreted = np.empty(24, np.float32)
    interpret_module(module, [x, w, interpreted], reorder=rng)
    np.testing.assert_array_equal(interpreted, expected)
    compiled = platform.emitter(module, TARGET, platform.limits)
    assert [(launch.when, launch.symbol.rpartition("_")[2]) for launch in compiled.launches] == [
        *((When.ONCE, str(number)) for number in range(2)),
        *((When.CALL, str(number)) for number in range(3)),
    ]
    assert compiled.unread == (1,)
    assert compiled.workspace >= FIRST.nbytes + SECOND.nbytes
    assert compiled.loops.count("def ") == 5
    assert isinstance(compiled, Object)
    assert unpack(pack(compiled)) == compiled
    found = np.full(24, np.nan, np.float32)
    run_compiled(compiled, Function("several", module.params, 1, module.launches[0].function.body), TARGET, x, w, found)
    np.testing.assert_array_equal(found, expected)
