"""mbarriers and bulk copies of the machine, on PTX written by hand."""

from __future__ import annotations

import numpy as np
import pytest

from tests.ptx_machine import PtxError, launch
from tests.ptx_machine.test_hand_written import ints, kernel

#: Thread 0 copies 128 bytes; all wait and read.
_COPY = """
    setp.eq.u32 %p1, %r0, 0;
    mov.u32 %r1, tile;
    add.u32 %r2, %r1, 128;
    @%p1 mbarrier.init.shared::cta.b64 [%r2], 1;
    fence.proxy.async.shared::cta;
    bar.sync 0;
    add.s64 %d1, %d0, FROM;
    add.u32 %r5, %r1, TO;
    @%p1 mbarrier.arrive.expect_tx.shared::cta.b64 %d5, [%r2], EXPECTED;
    @%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r5], [%d1], SIZE, [%r2];
$WAIT:
    mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r2], PARITY;
    @!%p2 bra $WAIT;
    shl.b32 %r3, %r0, 2;
    add.u32 %r3, %r1, %r3;
    ld.shared.u32 %r4, [%r3];
    add.u32 %r4, %r4, 1;
    bar.sync 0;
    add.s64 %d2, %d0, %d9;
    st.global.u32 [%d2], %r4;
"""


def body(**said: int) -> str:
    result = _COPY
    for name, value in {"FROM": 0, "TO": 0, "EXPECTED": 128, "SIZE": 128, "PARITY": 0, **said}.items():
        result = result.replace(name, str(value))
    return result


def test_all_who_wait_read_what_has_landed() -> None:
    out = np.arange(32, dtype=np.int32)
    counts = launch(kernel(body(), shared=136), 1, [out])
    np.testing.assert_array_equal(out, np.arange(32) + 1)
    # Read and stored to: 128 bytes each.
    assert counts.sectors == counts.ideal_sectors == 8


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"EXPECTED": 144}, "was told to expect 144 bytes, and 128 are on their way"),
        ({"EXPECTED": 112}, "used for its next phase, though nobody has waited"),
        ({"PARITY": 1}, "has not landed yet"),
        ({"SIZE": 120}, "misaligned: 120 bytes"),
        ({"FROM": 8}, "misaligned"),
        ({"TO": 4}, "misaligned"),
        ({"FROM": 16}, "out of bounds"),
    ],
)
def test_what_is_wrong_is_told(said: dict[str, int], why: str) -> None:
    with pytest.raises(PtxError, match=why):
        launch(kernel(body(**said), shared=136), 1, [ints()])


def test_nobody_leaves_before_copies_have_landed() -> None:
    begin, _, _ = body().partition("$WAIT")
    with pytest.raises(PtxError, match="a block ends before what it copies has landed"):
        launch(kernel(begin, shared=136), 1, [ints()])
