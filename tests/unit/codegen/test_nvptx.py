"""Programs for NVIDIA GPUs: numpy = interpreter with threads shuffled = CPU = what the PTX does; and ptxas takes them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from ansorlite.codegen.limits import Limits
from ansorlite.codegen.nvptx import compile as nvptx
from ansorlite.codegen.nvptx import nvjitlink
from ansorlite.codegen.nvptx.assemble import ASSEMBLER_VARIABLE, link, to_ptx
from ansorlite.codegen.object import Form
from ansorlite.errors import TargetError
from ansorlite.loops.emulate import emulate
from ansorlite.loops.interpreter import interpret
from ansorlite.loops.intrinsics import fold
from ansorlite.loops.kernel_module import kernel_module
from ansorlite.loops.nodes import Alloc, Buffer, For, Function, If, LoopKind, Scope, Stmt, block, index, statements
from ansorlite.loops.phases import barriers, phases
from ansorlite.loops.simplify import simplify
from ansorlite.loops.verifier import VerifyError, verify
from ansorlite.machine import cuda
from ansorlite.target import host
from ansorlite.te.expr import Binary, Cast, Expr, Var, cast, const, select
from ansorlite.te.numeric import apply, convert
from ansorlite.te.ops import BinaryOp, ReduceOp
from tests import running
from tests.gpu_programs import GOLDEN, SMALL, Program
from tests.on_gpu import PROCESSORS, TARGET, assembled, compiled, run
from tests.ptx_machine import PtxError, launch
from tests.unit.codegen.every_operation import every_operation
from tests.unit.codegen.test_operators import ALL, assert_same, borders, samples
from tests.unit.loops.build import argument, load, loop, store

BLOCK, THREAD, VECTORIZED = LoopKind.BLOCK, LoopKind.THREAD, LoopKind.VECTORIZED


def check(program: Program, arrays: list[np.ndarray]) -> None:
    outputs = program.function.outputs
    expected = program.meaning(*arrays[:-outputs])
    np.testing.assert_allclose(arrays[-1], expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", SMALL)
def test_interpreted_with_threads_in_any_order(name: str) -> None:
    program = SMALL[name]
    for function in (program.function, simplify(program.function)):
        verify(function)
        arrays = program.arrays()
        interpret(function, arrays, reorder=np.random.default_rng(5))
        check(program, arrays)


@pytest.mark.parametrize("name", GOLDEN)
def test_emulated_on_a_cpu(name: str) -> None:
    program = GOLDEN[name]
    target = host(threads=2)
    function = emulate(simplify(program.function), target)
    verify(function)
    arrays = program.arrays()
    running.run(function, target, *arrays)
    check(program, arrays)


@pytest.mark.parametrize("name", GOLDEN)
def test_on_the_machine_for_ptx(name: str) -> None:
    program = GOLDEN[name]
    arrays = program.arrays()
    run(program.function, arrays)
    check(program, arrays)


@pytest.mark.parametrize("name", GOLDEN)
def test_barriers_are_where_they_must_be_and_nowhere_else(name: str) -> None:
    program = GOLDEN[name]
    ptx, _ = compiled(program.function)
    assert len(re.findall(r"bar(?:rier)?\.(?:cta\.)?sync", ptx)) == program.barriers


def test_values_of_unrolled_iterations_are_defined_where_guards_need_them() -> None:
    """A guard in a loop that is written out: what is computed before the loop around it is made of what is there by then."""
    x, y = argument("X", 8, 20), argument("Y", 4, 40)

    def one(k: Var, n: Var, t: Var) -> Stmt:
        chunk: Expr = n * 32 + t
        column = chunk // 10 + k
        value = select(column >= 1, load(x, column, chunk % 10), const(0.0, "float32"))
        return If(chunk < 40, store(y, (k, chunk), value))

    def body(k: Var) -> Stmt:
        return loop("t", 32, lambda t: loop("n", 2, lambda n: one(k, n, t), LoopKind.UNROLLED), THREAD)

    function = Function("f", (x, y), 1, loop("b", 1, lambda _: loop("k", 4, body), BLOCK))
    array = np.random.default_rng(0).standard_normal((8, 20), dtype=np.float32)
    expected, found = (np.full((4, 40), np.nan, np.float32) for _ in range(2))
    interpret(function, [array, expected])
    run(function, [array, found])
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("name", [name for name, program in SMALL.items() if program.barriers])
def test_without_any_one_of_the_barriers_there_is_a_race(name: str) -> None:
    program = SMALL[name]
    ptx, kernels = compiled(program.function)
    lines = ptx.splitlines()
    for number in (n for n, line in enumerate(lines) if "bar.sync" in line):
        arrays = program.arrays()
        order = [arrays[program.function.params.index(buffer)] for buffer in kernels[0].buffers]
        without = "\n".join(lines[:number] + lines[number + 1 :])
        with pytest.raises(PtxError, match="race"):
            launch(without, kernels[0].grid, order, shared=kernels[0].shared)


@pytest.mark.parametrize("processor", PROCESSORS)
@pytest.mark.parametrize("name", GOLDEN)
def test_ptxas_takes_them_without_spills(name: str, processor: str) -> None:
    program = GOLDEN[name]
    ptx, kernels = compiled(program.function, replace(TARGET, cpu=processor))
    assert f".target {processor}\n" in ptx
    assert f".reqntid {kernels[0].threads}" in ptx, "the number of threads is not in the PTX"
    (report,) = assembled(ptx, processor).values()
    assert report.spilled == report.frame == 0
    assert report.registers <= program.most_registers


def test_memory_is_accessed_in_whole_vectors_and_side_by_side() -> None:
    ptx, _ = compiled(GOLDEN["product"].function)
    for access in ("ld.global.nc", "ld.shared", "st.shared", "st.global"):
        # LLVM 20 writes f32 where 22 writes b32.
        assert re.search(rf"{re.escape(access)}\.v4\.[bf]32", ptx), access
    ptx, _ = compiled(GOLDEN["element_wise"].function)
    assert re.search(r"ld\.global\.nc\.v4\.[bf]32", ptx)
    for name in ("transpose", "softmax", "element_wise", "ring", "swizzle"):
        program = GOLDEN[name]
        (counts,) = run(program.function, program.arrays())
        assert counts.sectors == counts.ideal_sectors, name
        assert counts.wavefronts == counts.ideal_wavefronts, name


@pytest.mark.parametrize("name", ["ring", "ring_of_two", "swizzle"])
def test_rings_are_copied_past_the_registers(name: str) -> None:
    """Vectors past the first cache, too; nothing is stored to shared memory by the threads themselves."""
    ptx, _ = compiled(GOLDEN[name].function)
    assert re.search(r"cp\.async\.cg\.shared\.global \[[^]]+\], \[[^]]+\], 16;", ptx)
    assert re.search(r"cp\.async\.ca\.shared\.global \[[^]]+\], \[[^]]+\], 4;", ptx)
    assert "cp.async.commit_group" in ptx
    assert "cp.async.wait_group" in ptx
    assert "st.shared" not in ptx


# Barriers ---------------------------------------------------------------------------------------------------------------


def _needs(*bodies: Callable[[Buffer, Var], Stmt], serial: bool = False) -> list[bool]:
    """Which of some phases on a shared buffer need a barrier."""
    shared = Buffer("S", (8,), "float32", Scope.SHARED)
    inside = block(*(loop("t", 8, lambda t, body=body: body(shared, t), THREAD) for body in bodies))
    nest = loop("b", 1, lambda _: Alloc(shared, loop("k", 3, lambda _: inside) if serial else inside), BLOCK)
    needed = barriers(nest)
    return [phase in needed for phase in phases(nest)]


Y = argument("Y", 8)


def _write(shared: Buffer, t: Expr) -> Stmt:
    return store(shared, (t,), const(1.0, "float32"))


def _read(shared: Buffer, t: Expr) -> Stmt:
    return store(Y, (t,), load(shared, index(7) - t))


def _neither(_: Buffer, t: Expr) -> Stmt:
    return store(argument("Z", 8), (t,), const(1.0, "float32"))


def test_barriers_follow_from_what_phases_read_and_store() -> None:
    assert _needs(_write, _read) == [False, True]
    assert _needs(_write, _neither, _read) == [False, False, True]
    assert _needs(_write, _read, _read) == [False, True, True], "both store to Y"
    assert _needs(_write, _read, _write) == [False, True, True]
    # A second time around, the first phase stores over what the last one has read.
    assert _needs(_write, _read, serial=True) == [True, True]
    assert _needs(_neither, serial=True) == [True], "it stores where it stored before"


def test_what_is_conditional_may_have_run_or_not() -> None:
    shared = Buffer("S", (8,), "float32", Scope.SHARED)
    first, second, last = (loop("t", 8, lambda t, body=body: body(shared, t), THREAD) for body in (_write, _read, _write))

    def body(b: Var) -> Stmt:
        return Alloc(shared, block(first, If(b < 1, second), last))

    nest = loop("b", 2, body, BLOCK)
    assert barriers(nest) == {second, last}


def test_a_value_that_others_store_is_not_taken_from_before_the_loop() -> None:
    """What a phase in a loop loads does not depend on the loop: still it is loaded after the barrier."""
    x, y = argument("X", 64), argument("Y", 3, 64)
    shared = Buffer("S", (64,), "float32", Scope.SHARED)

    def body(_: Var) -> Stmt:
        fill = loop("t", 64, lambda t: store(shared, (t,), load(x, t)), THREAD)
        use = loop("k", 3, lambda k: loop("t", 64, lambda t: store(y, (k, t), load(shared, 5)), THREAD))
        return Alloc(shared, block(fill, use))

    function = Function("f", (x, y), 1, loop("b", 1, body, BLOCK))
    values, out = np.arange(64, dtype=np.float32), np.zeros((3, 64), np.float32)
    run(function, [values, out])
    np.testing.assert_array_equal(out, 5.0)


def test_threads_hand_on_what_they_stored_to_memory() -> None:
    """Through an output, which is read again: the pointer must not promise that nobody else stores there."""
    x, y, z = argument("X", 64), argument("Y", 64), argument("Z", 64)

    def body(_: Var) -> Stmt:
        first = loop("t", 64, lambda t: store(y, (t,), load(x, t) + 1.0), THREAD)
        return block(first, loop("t", 64, lambda t: store(z, (t,), load(y, index(63) - t)), THREAD))

    function = Function("f", (x, y, z), 2, loop("b", 1, body, BLOCK))
    values, first, second = np.arange(64, dtype=np.float32), np.zeros(64, np.float32), np.zeros(64, np.float32)
    run(function, [values, first, second])
    np.testing.assert_array_equal(second, values[::-1] + 1)


# What the emitter writes --------------------------------------------------------------------------------------------------


def elements(n: int, body: Callable[[Expr], Stmt], lanes: int) -> Stmt:
    """A thread for each element, or for each vector of them."""
    threads = n // lanes

    def mine(t: Var) -> Stmt:
        return body(t) if lanes == 1 else loop("v", lanes, lambda v: body(t * lanes + v), VECTORIZED, lanes)

    return loop("b", 1, lambda _: loop("t", threads, mine, THREAD), BLOCK)


@pytest.mark.parametrize("lanes", [1, 4])
@pytest.mark.parametrize("dtype", ALL)
def test_operations(dtype: str, lanes: int) -> None:
    """Every operation on every dtype: none of them needs a function that GPUs do not have."""
    every_operation(dtype, lambda n, body: elements(n, body, lanes), run)


@pytest.mark.parametrize("dtype", ["int64", "uint64", "int32", "uint32"])
def test_amounts_of_shifts_that_differ_in_their_upper_half(dtype: str) -> None:
    amounts = np.array([0, 1, 31, 32, 63, 64, 1 << 31, (1 << 32) - 1, 1 << 32, (1 << 32) + 1, 1 << 62, (1 << 63) - 1], np.uint64)
    a, b = np.full(12, -37, np.int64).astype(dtype), amounts.astype(dtype)
    x, y = argument("X", 12, dtype=dtype), argument("Y", 12, dtype=dtype)
    outputs = [argument(op.name, 12, dtype=dtype) for op in (BinaryOp.SHL, BinaryOp.SHR)]

    def body(i: Expr) -> Stmt:
        shifts = (Binary(op, load(x, i), load(y, i), dtype) for op in (BinaryOp.SHL, BinaryOp.SHR))
        return block(*(store(z, (i,), shift) for z, shift in zip(outputs, shifts, strict=True)))

    left, right = np.zeros_like(a), np.zeros_like(a)
    run(Function("f", (x, y, *outputs), 2, elements(12, body, 1)), [a, b, left, right])
    np.testing.assert_array_equal(left, apply(BinaryOp.SHL, (a, b), dtype, dtype))
    np.testing.assert_array_equal(right, apply(BinaryOp.SHR, (a, b), dtype, dtype))


@pytest.mark.parametrize("source", ALL)
def test_conversions(source: str) -> None:
    a = np.concatenate([samples(source, 67, np.random.default_rng(4)), borders(source)])
    x = argument("X", a.size, dtype=source)
    outputs = [argument(target, a.size, dtype=target) for target in ALL]

    def body(i: Expr) -> Stmt:
        return block(*(store(z, (i,), Cast(load(x, i), z.dtype)) for z in outputs))

    function = Function("f", (x, *outputs), len(outputs), elements(a.size, body, 1))
    with np.errstate(all="ignore"):
        wanted = [convert(a, target) for target in ALL]
    found = [np.zeros_like(expected) for expected in wanted]
    run(function, [a, *found])
    for got, expected in zip(found, wanted, strict=True):
        assert_same(got, expected)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "int32", "int64", "float16"])
@pytest.mark.parametrize("op", ReduceOp)
@pytest.mark.parametrize("width", [2, 8, 32])
def test_folds(op: ReduceOp, dtype: str, width: int) -> None:
    threads = 64 if width > 8 else 40
    x, y = argument("X", threads, dtype=dtype), argument("Y", threads, dtype=dtype)
    mine = Buffer("mine", (threads,), dtype, Scope.PRIVATE)

    def body(_: Var) -> Stmt:
        first = loop("t", threads, lambda t: store(mine, (t,), load(x, t)), THREAD)
        last = loop("t", threads, lambda t: store(y, (t,), load(mine, t)), THREAD)
        return Alloc(mine, block(first, fold(op, mine, mine, width), last))

    function = Function("f", (x, y), 1, loop("b", 1, body, BLOCK))
    values = np.random.default_rng(0).integers(-2, 3, threads).astype(dtype)
    found, meant = np.zeros_like(values), np.zeros_like(values)
    run(function, [values, found])
    interpret(function, [values, meant])
    np.testing.assert_array_equal(found, meant)


def test_loads_behind_conditions_are_behind_branches() -> None:
    x, y = argument("X", 60), argument("Y", 64)

    def body(i: Expr) -> Stmt:
        return store(y, (i,), select(i < 60, load(x, i) * 2.0, 0.0))

    values, out = np.arange(60, dtype=np.float32), np.full(64, np.nan, np.float32)
    function = Function("f", (x, y), 1, elements(64, body, 1))
    run(function, [values, out])
    np.testing.assert_array_equal(out, np.concatenate([values * 2, np.zeros(4)]))
    assert "nowhere" not in compiled(function)[0]


def test_an_index_that_is_loaded_reaches_memory_of_the_threads_own() -> None:
    n, y = argument("N", 32, dtype="int32"), argument("Y", 32)

    def mine(t: Var) -> Stmt:
        table = Buffer("table", (4,), "float32", Scope.LOCAL)
        fill = loop("i", 4, lambda i: store(table, (i,), cast(i * 10 + t, "float32")))
        return Alloc(table, block(fill, store(y, (t,), load(table, cast(load(n, t), "int64")))))

    function = Function("f", (n, y), 1, loop("b", 1, lambda _: loop("t", 32, mine, THREAD), BLOCK))
    numbers, out = (np.arange(32) % 4).astype(np.int32), np.zeros(32, np.float32)
    run(function, [numbers, out])
    np.testing.assert_array_equal(out, numbers * 10 + np.arange(32))


def test_what_is_no_block_is_done_by_one_thread() -> None:
    """Kernels hand temporaries on in memory."""
    x, y = argument("X", 8), argument("Y", 8)
    between = Buffer("between", (8,), "float32", Scope.GLOBAL)
    first = loop("i", 8, lambda i: store(between, (i,), load(x, i) + 1.0))
    last = loop("b", 2, lambda b: loop("t", 4, lambda t: store(y, (b * 4 + t,), load(between, b * 4 + t) * 2.0), THREAD), BLOCK)
    function = Function("f", (x, y), 1, Alloc(between, block(first, last)))
    values, out = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    run(function, [values, out])
    np.testing.assert_array_equal(out, (values + 1) * 2)
    assert [(k.grid, k.threads) for k in compiled(function)[1]] == [(1, 1), (2, 4)]


def _wrong(make: Callable[[Buffer, Buffer], Stmt]) -> Function:
    private, local = Buffer("P", (64,), "float32", Scope.PRIVATE), Buffer("L", (4,), "float32", Scope.LOCAL)
    return Function("f", (Y,), 1, loop("b", 1, lambda _: Alloc(private, make(private, local)), BLOCK))


def _threads(body: Callable[[Var], Stmt], count: int = 64) -> Stmt:
    return loop("t", count, body, THREAD)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (
            _wrong(lambda p, _: block(_threads(lambda t: store(p, (t,), const(1.0, "float32"))), _write(Y, index(0)))),
            "by none of them",
        ),
        (_wrong(lambda _, local: Alloc(local, _threads(lambda t: store(Y, (t % 8,), load(local, t % 4))))), "belongs to a block"),
        (_wrong(lambda p, _: fold(ReduceOp.SUM, p, p, 64)), "at most 32 threads"),
    ],
)
def test_what_no_gpu_can_run_is_told(function: Function, message: str) -> None:
    with pytest.raises((TargetError, VerifyError), match=message):
        compiled(function)


def test_emulation_leaves_other_programs_as_they_are() -> None:
    function = emulate(SMALL["product"].function, TARGET)
    kinds = {stmt.kind for stmt in statements(function.body) if isinstance(stmt, For)}
    assert kinds <= {LoopKind.PARALLEL, LoopKind.SERIAL, LoopKind.UNROLLED, LoopKind.VECTORIZED}
    plain = emulate(function, TARGET)
    assert plain.body is function.body


@pytest.mark.skipif(
    not os.environ.get("CI") and nvjitlink.library() is None, reason="there is no nvJitLink: pip install nvidia-nvjitlink"
)
def test_nvjitlink_does_what_ptxas_does() -> None:
    ptx, _ = compiled(GOLDEN["softmax"].function)
    found = link(ptx, "sm_80")
    assert found.cubin[:4] == b"\x7fELF"
    assert found.reports["k0"].spilled == 0
    with pytest.raises(TargetError, match=r"nvJitLink refuses the program .*: ERROR"):
        link("no program", "sm_80")


def test_the_assembler_can_be_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    module = kernel_module(SMALL["row_sums"].function)
    monkeypatch.setenv(ASSEMBLER_VARIABLE, "driver")
    left = nvptx.compile(module, TARGET, Limits(1000))
    assert (left.form, left.launches[0].report) == (Form.PTX, None)
    assert left.code == left.text.encode()
    monkeypatch.setenv(ASSEMBLER_VARIABLE, "nvcc")
    with pytest.raises(TargetError, match="ANSORLITE_ASSEMBLER is 'nvcc'; it must be one of ptxas, nvjitlink, driver, or unset"):
        nvptx.compile(module, TARGET, Limits(1000))
    monkeypatch.setenv(ASSEMBLER_VARIABLE, "nvjitlink")
    monkeypatch.setattr(nvjitlink, "library", lambda: None)
    with pytest.raises(TargetError, match="there is no nvJitLink: install nvidia-nvjitlink"):
        nvptx.compile(module, TARGET, Limits(1000))


@pytest.mark.parametrize("processor", sorted({name for name, _ in cuda.PROCESSORS.values()}))
def test_llvm_knows_every_kind_of_gpu_that_code_is_made_for(processor: str) -> None:
    """LLVM 20 to 22 do. One that it does not know would end the process."""
    features = next(features for name, features in cuda.PROCESSORS.values() if name == processor)
    ptx = to_ptx(_EMPTY, replace(TARGET, cpu=processor, features=features))
    version = features.removeprefix("+ptx")
    assert f".version {version[0]}.{version[1:]}\n.target {processor}\n" in ptx


def test_what_the_installed_llvm_does_not_know() -> None:
    with pytest.raises(
        TargetError, match=r"the installed LLVM \(\d+\.\d+\.\d+\) makes no code for sm_999; install a newer llvmlite"
    ):
        to_ptx(_EMPTY, replace(TARGET, cpu="sm_999"))
    call = "declare void @llvm.nvvm.of.tomorrow()\ndefine void @k() {\n  call void @llvm.nvvm.of.tomorrow()\n  ret void\n}"
    with pytest.raises(TargetError, match=r"does not know llvm\.nvvm\.of\.tomorrow; install a newer llvmlite"):
        to_ptx(f"{_EMPTY}\n{call}", TARGET)


_EMPTY = 'target triple = "nvptx64-nvidia-cuda"'
