"""The machine on PTX written by hand: what it computes, what it counts, and what it refuses."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.ptx_machine import PtxError, launch
from tests.ptx_machine.arithmetic import fused

_HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"
_REGISTERS = """
    .reg .pred %p<9>;
    .reg .b16 %h<9>;
    .reg .b32 %r<40>;
    .reg .b64 %d<20>;
"""


def kernel(body: str, parameters: int = 1, threads: int = 32, shared: int = 0, outside: str = "") -> str:
    """``%d0, ...`` are the parameters, ``%r0`` is the thread, ``%d9`` 4 times that."""
    names = [f"p{number}" for number in range(parameters)]
    loads = "\n".join(f"ld.param.u64 %d{number}, [{name}];" for number, name in enumerate(names))
    variable = f".shared .align 16 .b8 tile[{shared}];" if shared else ""
    return f"""{_HEAD}{outside}
.visible .entry k({", ".join(f".param .u64 {name}" for name in names)}) .reqntid {threads}, 1, 1 {{
{variable}{_REGISTERS}{loads}
    mov.u32 %r0, %tid.x;
    mul.wide.u32 %d9, %r0, 4;
{body}
    ret;
}}
"""


def ints(count: int = 32) -> NDArray[np.int32]:
    return np.zeros(count, np.int32)


def test_threads_take_different_ways_and_meet_again() -> None:
    body = """
    mov.u32 %r1, 0;
    mov.u32 %r2, %r0;
    setp.eq.u32 %p1, %r2, 0;
    @%p1 bra $END;
$LOOP:
    add.u32 %r1, %r1, %r2;
    sub.u32 %r2, %r2, 1;
    setp.ne.u32 %p2, %r2, 0;
    @%p2 bra $LOOP;
$END:
    add.s64 %d1, %d0, %d9;
    st.global.u32 [%d1], %r1;
    """
    out = ints()
    counts = launch(kernel(body), 1, [out])
    lanes = np.arange(32)
    np.testing.assert_array_equal(out, lanes * (lanes + 1) // 2)
    assert counts.instructions["st"] == 1, "the threads did not meet again"


def test_blocks_have_their_numbers_and_shared_memory_of_their_own() -> None:
    body = """
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, tile;
    st.shared.u32 [%r2], %r1;
    bar.sync 0;
    ld.shared.u32 %r3, [%r2];
    mov.u32 %r4, %ntid.x;
    mad.lo.u32 %r5, %r1, %r4, %r0;
    mul.wide.u32 %d2, %r5, 4;
    add.s64 %d1, %d0, %d2;
    st.global.u32 [%d1], %r3;
    """
    out = ints(40 * 48)
    launch(kernel(body, threads=48, shared=4), 40, [out])
    np.testing.assert_array_equal(out.reshape(40, 48), np.arange(40)[:, None].repeat(48, 1))


_EXCHANGE = """
    mov.u32 %r1, tile;
    shl.b32 %r2, %r0, 2;
    add.u32 %r2, %r1, %r2;
    st.shared.u32 [%r2], %r0;
    BARRIER
    xor.b32 %r3, %r0, 63;
    shl.b32 %r3, %r3, 2;
    add.u32 %r3, %r1, %r3;
    ld.shared.u32 %r4, [%r3];
    add.s64 %d1, %d0, %d9;
    st.global.u32 [%d1], %r4;
"""


def test_a_barrier_lets_threads_exchange_values() -> None:
    out = ints(64)
    launch(kernel(_EXCHANGE.replace("BARRIER", "bar.sync 0;"), threads=64, shared=256), 1, [out])
    np.testing.assert_array_equal(out, np.arange(64)[::-1])


def test_a_missing_barrier_is_a_race() -> None:
    with pytest.raises(PtxError, match="another thread stores without a barrier to what is read of shared memory"):
        launch(kernel(_EXCHANGE.replace("BARRIER", ""), threads=64, shared=256), 1, [ints(64)])


def test_a_store_over_what_others_have_just_read_is_a_race() -> None:
    body = _EXCHANGE.replace("BARRIER", "bar.sync 0;") + "not.b32 %r5, %r0;\nst.shared.u32 [%r2], %r5;\n"
    with pytest.raises(PtxError, match="another thread reads without a barrier what is stored to shared memory"):
        launch(kernel(body, threads=64, shared=256), 1, [ints(64)])


def test_two_blocks_may_not_exchange_values() -> None:
    body = "mov.u32 %r1, %ctaid.x;\nst.global.u32 [%d0], %r1;\n"
    with pytest.raises(PtxError, match="race"):
        launch(kernel(body), 2, [ints()])
    same = "mov.u32 %r1, 7;\nst.global.u32 [%d0], %r1;\n"
    out = ints()
    launch(kernel(same), 2, [out])
    assert out[0] == 7, "who stores the same races with nobody"


def test_a_barrier_that_not_all_threads_reach_is_an_error() -> None:
    body = "setp.lt.u32 %p1, %r0, 40;\n@%p1 bra $SKIP;\nbar.sync 0;\n$SKIP:\n"
    with pytest.raises(PtxError, match="barrier"):
        launch(kernel(body, threads=64), 1, [ints(64)])
    with pytest.raises(PtxError, match="barrier"):
        launch(kernel("setp.lt.u32 %p1, %r0, 32;\n@%p1 ret;\nbar.sync 0;\n", threads=64), 1, [ints(64)])


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("add.s64 %d1, %d0, %d9;\nst.global.u32 [%d1+4], %r0;", "out of bounds: 4 bytes .* of global"),
        ("add.s64 %d1, %d0, %d9;\nld.global.u32 %r1, [%d1+-4];", "out of bounds"),
        ("mov.u32 %r1, tile;\nld.shared.u32 %r2, [%r1+128];", "out of bounds: .* shared"),
        ("add.s64 %d1, %d0, %d9;\nld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%d1];", "misaligned"),
        ("mov.u32 %r1, tile;\nld.shared.u32 %r2, [%r1+2];", "misaligned"),
        ("add.u32 %r1, %r2, 1;", "nobody has set it"),
        ("frobnicate.u32 %r1, %r0;", "unknown instruction"),
        ("call foo;", "unknown instruction"),
        ("$LOOP:\nbra $LOOP;", "it hangs"),
        ("shfl.sync.bfly.b32 %r1, %r0, 1, 31, 1;", "not among those that take part"),
        ("setp.lt.u32 %p1, %r0, 4;\n@%p1 bra $S;\nshfl.sync.bfly.b32 %r1, %r0, 1, 31, -1;\n$S:\n", "take part"),
    ],
)
def test_faults_are_told(body: str, message: str) -> None:
    with pytest.raises(PtxError, match=message):
        launch(kernel(body, shared=128), 1, [ints()], limit=1000)


def test_arrays_that_are_only_read_stay_so() -> None:
    given = ints()
    given.flags.writeable = False
    with pytest.raises(PtxError, match="only to be read"):
        launch(kernel("st.global.u32 [%d0], %r0;\n".replace("%r0", "7")), 1, [given])
    with pytest.raises(PtxError, match="for what nobody stores to"):
        launch(kernel("add.s64 %d1, %d0, %d9;\nld.global.nc.u32 %r1, [%d1];\nst.global.u32 [%d1], %r1;\n"), 1, [ints()])


@pytest.mark.parametrize(
    ("mode", "b", "c", "expected"),
    [
        ("bfly", 5, 31, [lane ^ 5 for lane in range(32)]),
        ("down", 4, 31, [lane + 4 if lane < 28 else lane for lane in range(32)]),
        ("up", 4, 0, [lane - 4 if lane >= 4 else lane for lane in range(32)]),
        ("idx", 9, 31, [9] * 32),
        ("idx", 3, 0x181F & ~0xFF | 7 | (0x18 << 8), [lane // 8 * 8 + 3 for lane in range(32)]),
    ],
)
def test_shuffles(mode: str, b: int, c: int, expected: list[int]) -> None:
    body = f"shfl.sync.{mode}.b32 %r1, %r0, {b}, {c}, -1;\nadd.s64 %d1, %d0, %d9;\nst.global.u32 [%d1], %r1;\n"
    out = ints()
    launch(kernel(body), 1, [out])
    np.testing.assert_array_equal(out, expected)


def test_votes_and_reductions_of_warps() -> None:
    body = """
    setp.lt.u32 %p1, %r0, 5;
    vote.sync.ballot.b32 %r1, %p1, -1;
    redux.sync.add.s32 %r2, %r0, -1;
    add.u32 %r3, %r1, %r2;
    add.s64 %d1, %d0, %d9;
    st.global.u32 [%d1], %r3;
    """
    out = ints()
    launch(kernel(body), 1, [out])
    np.testing.assert_array_equal(out, 0b11111 + 31 * 16)


def test_lanes_that_come_later_are_waited_for() -> None:
    """Half of a warp goes another way before the shuffle of all."""
    body = """
    mov.u32 %r1, %r0;
    setp.ge.u32 %p1, %r0, 16;
    @%p1 bra $LATER;
$BACK:
    shfl.sync.bfly.b32 %r2, %r1, 16, 31, -1;
    add.s64 %d1, %d0, %d9;
    st.global.u32 [%d1], %r2;
    ret;
$LATER:
    add.u32 %r1, %r1, 100;
    bra $BACK;
    """
    out = ints()
    launch(kernel(body), 1, [out])
    np.testing.assert_array_equal(out, [lane + 116 if lane < 16 else lane - 16 for lane in range(32)])


_LATER = """
    setp.lt.u32 %p1, %r0, FIRST;
    @%p1 bra $LATER;
$BACK:
    wgmma.fence.sync.aligned;
    add.s64 %d1, %d0, %d9;
    st.global.u32 [%d1], %r0;
    ret;
$LATER:
    ELSEWHERE
"""


@pytest.mark.parametrize("first", [64, 40])
def test_warps_that_come_later_are_waited_for(first: int) -> None:
    """Some threads of a warpgroup go another way, to what stands further down: whole warps, and lanes of one."""
    out = ints(256)
    launch(kernel(_LATER.replace("FIRST", str(first)).replace("ELSEWHERE", "bra $BACK;"), threads=256), 1, [out])
    np.testing.assert_array_equal(out, np.arange(256))


@pytest.mark.parametrize(
    ("elsewhere", "threads"),
    [
        ("ret;", 128),
        ("bar.sync 0;\nbra $BACK;", 128),
        ("wgmma.fence.sync.aligned;", 128),  # another instruction
        ("bra $BACK;", 96),
    ],
)
def test_warps_that_never_come_are_told(elsewhere: str, threads: int) -> None:
    with pytest.raises(PtxError, match="take part"):
        launch(kernel(_LATER.replace("FIRST", "64").replace("ELSEWHERE", elsewhere), threads=threads), 1, [ints(threads)])


def test_warpgroups_that_some_threads_skip_are_told() -> None:
    body = "setp.lt.u32 %p1, %r0, 64;\n@%p1 wgmma.fence.sync.aligned;\n"
    with pytest.raises(PtxError, match="not all threads of a warpgroup take part"):
        launch(kernel(body, threads=128), 1, [ints(128)])


def test_atomics_of_many_blocks() -> None:
    out = ints(1)
    launch(kernel("atom.global.add.u32 %r1, [%d0], 1;\nred.global.max.s32 [%d0], 3;\n", threads=64), 3, [out])
    assert out[0] == 64 * 3


_COPY = """
    add.s64 %d1, %d0, %d9;
    mov.u32 %r1, tile;
    shl.b32 %r2, %r0, 2;
    add.u32 %r2, %r1, %r2;
    cp.async.ca.shared.global [%r2], [%d1], 4, SIZE;
    cp.async.commit_group;
    WAIT
    ld.shared.u32 %r4, [%r2];
    add.u32 %r4, %r4, 1;
    st.global.u32 [%d1], %r4;
"""


@pytest.mark.parametrize(("size", "expected"), [(4, np.arange(32) + 1), (0, np.ones(32))])
def test_copies_land_when_they_are_waited_for(size: int, expected: NDArray[Any]) -> None:
    out = np.arange(32, dtype=np.int32)
    launch(kernel(_COPY.replace("SIZE", str(size)).replace("WAIT", "cp.async.wait_group 0;"), shared=128), 1, [out])
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("wait", ["", "cp.async.wait_group 1;"])
def test_copies_that_are_not_waited_for_have_not_landed(wait: str) -> None:
    body = _COPY.replace("SIZE", "4").replace("WAIT", wait)
    with pytest.raises(PtxError, match="has not landed yet"):
        launch(kernel(body, shared=128), 1, [ints()])


def test_what_others_copied_takes_a_barrier_too() -> None:
    body = _COPY.replace("SIZE", "4").replace("WAIT", "cp.async.wait_group 0;\nBARRIER\nxor.b32 %r2, %r2, 4;")
    with pytest.raises(PtxError, match="another thread stores without a barrier"):
        launch(kernel(body.replace("BARRIER", ""), shared=128), 1, [ints()])
    out = np.arange(32, dtype=np.int32)
    launch(kernel(body.replace("BARRIER", "bar.sync 0;"), shared=128), 1, [out])
    np.testing.assert_array_equal(out, (np.arange(32) ^ 1) + 1)


@pytest.mark.parametrize(("stride", "wavefronts"), [(4, 1), (8, 2), (128, 32), (132, 1), (0, 1)])
def test_conflicts_of_banks_are_counted(stride: int, wavefronts: int) -> None:
    body = f"mov.u32 %r1, tile;\nmad.lo.u32 %r2, %r0, {stride}, %r1;\nld.shared.u32 %r3, [%r2];\n"
    counts = launch(kernel(body, shared=132 * 32), 1, [ints()])
    assert (counts.wavefronts, counts.ideal_wavefronts) == (wavefronts, 1)


def test_wide_accesses_of_shared_memory_go_a_quarter_of_a_warp_at_a_time() -> None:
    body = "mov.u32 %r1, tile;\nmad.lo.u32 %r2, %r0, STRIDE, %r1;\nld.shared.v4.u32 {%r3, %r4, %r5, %r6}, [%r2];\n"
    for stride, wavefronts in ((16, 4), (32, 8), (144, 4), (128, 32)):
        counts = launch(kernel(body.replace("STRIDE", str(stride)), shared=144 * 32), 1, [ints()])
        assert (counts.wavefronts, counts.ideal_wavefronts) == (wavefronts, 4), stride


@pytest.mark.parametrize(("stride", "sectors"), [(4, 4), (8, 8), (32, 32), (0, 1)])
def test_sectors_of_memory_are_counted(stride: int, sectors: int) -> None:
    body = f"mul.wide.u32 %d1, %r0, {stride};\nadd.s64 %d1, %d0, %d1;\nld.global.u32 %r1, [%d1];\n"
    counts = launch(kernel(body), 1, [ints(32 * 8)])
    assert counts.sectors == sectors
    assert counts.ideal_sectors == (1 if stride == 0 else 4)


def test_fused_products_are_rounded_once() -> None:
    rng = np.random.default_rng(0)
    x, y, z = (rng.integers(0, 1 << 32, 3000, dtype=np.uint32).view(np.float32) for _ in range(3))
    # Sums that nearly cancel, and those whose last bits decide.
    with np.errstate(all="ignore"):
        z[:1500] = -(x[:1500] * y[:1500])
        got = fused(x, y, z)
    small = np.isfinite(x) & np.isfinite(y) & np.isfinite(z) & (np.abs(got) > 1e-30) & (np.abs(got) < 1e30)
    assert small.sum() > 500
    for a, b, c, result in zip(x[small], y[small], z[small], got[small], strict=True):
        exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
        near = np.array([np.nextafter(result, -np.inf), result, np.nextafter(result, np.inf)], np.float32)
        assert min(abs(Fraction(float(other)) - exact) for other in near) == abs(Fraction(float(result)) - exact)


def _matrix_kernel(product: str, words: int, columns: int) -> str:
    """A of 16 rows and B of 8 columns by ldmatrix, both with 16 or 32 bytes a row; D to memory."""
    del columns
    a = ", ".join(f"%r{10 + n}" for n in range(words))
    b = ", ".join(f"%r{20 + n}" for n in range(words // 2))
    return f"""
    // Words of both to shared memory: A then B.
    mov.u32 %r1, tile;
    mov.u32 %r2, %r0;
$COPY:
    mul.wide.u32 %d3, %r2, 4;
    add.s64 %d4, %d0, %d3;
    ld.global.u32 %r3, [%d4];
    shl.b32 %r4, %r2, 2;
    add.u32 %r4, %r1, %r4;
    st.shared.u32 [%r4], %r3;
    add.u32 %r2, %r2, 32;
    setp.lt.u32 %p1, %r2, {16 * words * 2 + 8 * words * 2};
    @%p1 bra $COPY;
    bar.sync 0;
    // Rows of {8 * words} bytes; each lane has the address of a row of 8 x 8 halves.
    and.b32 %r5, %r0, 15;
    shr.u32 %r6, %r0, 4;
    mul.lo.u32 %r7, %r5, {8 * words};
    mad.lo.u32 %r7, %r6, 16, %r7;
    add.u32 %r7, %r7, %r1;
    ldmatrix.sync.aligned.m8n8.x{words}.shared.b16 {{{a}}}, [%r7];
    and.b32 %r5, %r0, 7;
    shr.u32 %r6, %r0, 3;
    and.b32 %r6, %r6, {words // 2 - 1};
    mul.lo.u32 %r7, %r5, {8 * words};
    mad.lo.u32 %r7, %r6, 16, %r7;
    add.u32 %r7, %r7, %r1;
    ldmatrix.sync.aligned.m8n8.x{words // 2}.shared.b16 {{{b}}}, [%r7+{16 * 8 * words}];
    mov.b32 %r30, 0;
    {product} {{%r30, %r31, %r32, %r33}}, {{{a}}}, {{{b}}}, {{%r30, %r30, %r30, %r30}};
    // D[row, 2 c ...] of lane 4 row + c.
    shl.b32 %r8, %r0, 3;
    cvt.u64.u32 %d5, %r8;
    add.s64 %d6, %d1, %d5;
    st.global.v2.b32 [%d6], {{%r30, %r31}};
    st.global.v2.b32 [%d6+256], {{%r32, %r33}};
    """


_MMA = [
    ("m16n8k16.row.col.f32.f16.f16.f32", 4, "float16"),
    ("m16n8k8.row.col.f32.f16.f16.f32", 2, "float16"),
    ("m16n8k16.row.col.f32.bf16.bf16.f32", 4, "bfloat16"),
    ("m16n8k8.row.col.f32.tf32.tf32.f32", 4, "tf32"),
    ("m16n8k32.row.col.s32.s8.s8.s32", 4, "int8"),
]


@pytest.mark.parametrize(("product", "words", "kind"), _MMA)
def test_matrix_products(product: str, words: int, kind: str) -> None:
    rng = np.random.default_rng(1)
    nbytes = 8 * words  # of a row
    if kind == "int8":
        both = rng.integers(-128, 128, (24, nbytes)).astype(np.int8)
        raw, values = both.view(np.uint8), both.astype(np.int32)
    elif kind == "float16":
        both = rng.standard_normal((24, nbytes // 2)).astype(np.float16)
        raw, values = both.view(np.uint8), both.astype(np.float32)
    else:
        # Numbers of 32 bits whose low ones are 0: exact in both formats.
        exact = (
            rng.standard_normal((24, nbytes // (2 if kind == "bfloat16" else 4))).astype(np.float32).view(np.uint32) & 0xFFFF0000
        )
        raw = (exact >> 16).astype(np.uint16).view(np.uint8) if kind == "bfloat16" else exact.view(np.uint8)
        values = exact.view(np.float32)
    out = np.zeros((16, 8), np.int32 if kind == "int8" else np.float32)
    ptx = kernel(_matrix_kernel(f"mma.sync.aligned.{product}", words, 8), parameters=2, shared=24 * nbytes)
    given = np.ascontiguousarray(raw).view(np.int32).copy()
    given.flags.writeable = False
    launch(ptx, 1, [given, out])
    expected = values[:16] @ values[16:].T
    np.testing.assert_allclose(out, expected, rtol=1e-6, atol=1e-5)
