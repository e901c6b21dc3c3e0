"""Factors that a multiply-add leaves as they are, so that what it adds to stays in its register.

``a * b + c`` has three forms on x86: the result takes the register of the sum, or that of a factor. An element that was spread
for one row of a register tile is not read again, so LLVM lets the result take its register, and sums wander from register to
register, step by step. Where the tile leaves one or two of 16, they end on the stack, and each waits for its own store::

    vbroadcastss 4(%rax), %ymm2               vbroadcastss 4(%rax), %ymm2
    vfmadd213ps %ymm15, %ymm0, %ymm2          vfmadd231ps %ymm0, %ymm2, %ymm15
    vmovaps %ymm2, 32(%rsp)

A factor that something else reads afterwards, be it an instruction that is none, is not overwritten. That reads the sum, too:
else LLVM's scheduler may spread the next element before this one is multiplied, and of 14 sums, a vector and two elements one has
no register.
"""

from __future__ import annotations

from ansorlite.codegen import types
from ansorlite.codegen.architecture import architecture_of
from ansorlite.codegen.context import Context
from ansorlite.target import Target


def overwritten(target: Target) -> bool:
    """Whether a spread element may be: there is a multiply-add, and it does not spread what is in memory itself."""
    features = target.features.split(",")
    return architecture_of(target).overwrites and "+fma" in features and "+avx512f" not in features


def hold(c: Context, factor: str, total: str, dtype: str, lanes: int) -> None:
    """Read ``factor`` and ``total``, the sum that its product was added to, if they are whole vectors."""
    if dtype not in types.STORAGE_FLOATS and lanes == c.target.lanes(dtype):
        vector = types.value_type(dtype, lanes)
        c.b.do(f'call void asm sideeffect "", "x,x"({vector} {factor}, {vector} {total})')
