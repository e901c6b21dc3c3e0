"""Pointers that step along with a loop, and what LLVM is kept from doing because of them."""

import re

import llvmlite.binding as llvm
import numpy as np

from ansorlite.codegen.machine import machine
from ansorlite.loops.nodes import Function
from ansorlite.platforms import build
from ansorlite.target import host
from tests.running import run_compiled
from tests.unit.loops.build import argument, load, loop, store

TARGET = host(threads=1)


def strided_copy() -> Function:
    """``Z[7 i + j] = X[21 i + 3 j] + X[21 i + 3 j + 1]``"""
    x, z = argument("X", 5 * 21 + 1), argument("Z", 5 * 7)
    body = loop(
        "i",
        5,
        lambda i: loop("j", 7, lambda j: store(z, (i * 7 + j,), load(x, i * 21 + j * 3) + load(x, i * 21 + j * 3 + 1))),
    )
    return Function("f", (x, z), 1, body)


def test_loops_multiply_nothing() -> None:
    compiled = build(strided_copy(), TARGET)
    blocks = re.split(r"^(\w+):$", compiled.llvm, flags=re.MULTILINE)
    inner = next(body for body in blocks if "fadd" in body)
    assert inner.count("phi ptr") == 2  # one for each array, however many of its elements are read
    assert compiled.llvm.count("phi ptr") == 4
    assert "mul i64" not in compiled.llvm
    a, out = np.arange(106, dtype=np.float32), np.zeros(35, np.float32)
    run_compiled(compiled, strided_copy(), TARGET, a, out)
    at = (np.arange(5)[:, None] * 21 + np.arange(7) * 3).ravel()
    np.testing.assert_array_equal(out, a[at] + a[at + 1])


_LOOP = """define void @f(ptr %p, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %at = mul i64 %i, 12345
  %q = getelementptr float, ptr %p, i64 %at
  store float 0.0, ptr %q
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}"""


def test_other_users_of_llvm_in_this_process_keep_strength_reduction() -> None:
    def assembly() -> str:
        return str(machine(TARGET).emit_assembly(llvm.parse_assembly(_LOOP, llvm.create_context())))

    before = assembly()
    build(strided_copy(), TARGET)
    assert assembly() == before
    assert "imul" not in before
