"""Loops of several threads: what entering one costs, and reading what another thread has written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ansorlite.alignment import CACHE_LINE
from ansorlite.calibration.core import Body
from ansorlite.calibration.loop import Loop
from ansorlite.runtime import team

#: Lines that one thread writes and another one reads, and how many runs of them are between neighbours in time.
LINES: Final = 1024
_APART: Final = 205
#: Lines of a run.
_RUN: Final = 2
#: Cycles of work: of one iteration of a parallel loop, of as little as lets another thread begin, and of so much that an attempt
#: that has it does not count.
_WORK: Final = 10_000
_BRIEF: Final = 2_000
_LATE: Final = 10 * _WORK
#: Multiplications of one turn of a chain.
_CHAIN: Final = 8


def loop_of(function: str, threads: int, context: str = "null") -> Body:
    """A parallel loop of as many chunks as threads; each calls one of :data:`FUNCTIONS`."""
    run = f"void (ptr, ptr, i64, i64, i64) inttoptr (i64 {team.address()} to ptr)"

    def body(loop: Loop) -> int:
        loop.b.do(f"call {run}(ptr @{function}, ptr {context}, i64 {threads}, i64 {threads}, i64 {threads})")
        return 1

    return body


def writes(loop: Loop) -> int:
    """One thread writes all lines."""
    loop.b.do(f"call void @write(ptr {loop.at(0)})")
    return LINES


def reads(loop: Loop) -> int:
    """One thread is busy, and the other one reads all lines."""
    loop_of("read", 2, loop.at(0))(loop)
    return LINES


def both(loop: Loop) -> int:
    """One thread writes all lines, and is busy while the other one reads them."""
    writes(loop)
    return reads(loop)


def _busy(name: str, cycles: int) -> str:
    """A chain of dependent multiplications, some three cycles each: what else runs on the same core hardly slows it."""
    squares = "\n".join(f"  %x{n + 1} = mul i64 %x{n}, %x{n}" for n in range(_CHAIN))
    return f"""define void @{name}(ptr %context, i64 %begin, i64 %end, i64 %thread) {{
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %x0 = phi i64 [ %end, %entry ], [ %x{_CHAIN}, %loop ]
{squares}
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, {cycles // (3 * _CHAIN)}
  br i1 %more, label %loop, label %out
out:
  call void asm sideeffect "", "r"(i64 %x{_CHAIN})
  ret void
}}"""


#: Stores to every line.
_WRITE: Final = f"""define void @write(ptr %data) noinline {{
entry:
  br label %loop
loop:
  %line = phi i64 [ 0, %entry ], [ %next, %loop ]
  %offset = mul i64 %line, {CACHE_LINE}
  %at = getelementptr i8, ptr %data, i64 %offset
  store volatile i64 %line, ptr %at, align 8
  %next = add i64 %line, 1
  %more = icmp slt i64 %next, {LINES}
  br i1 %more, label %loop, label %out
out:
  ret void
}}"""
#: The first iteration is busy for a moment; the second one loads from every line, in runs of two that are far apart. Where the
#: first thread does that as well, there is no miss: then it takes so long that the attempt does not count.
_READ: Final = f"""define void @read(ptr %data, i64 %begin, i64 %end, i64 %thread) {{
entry:
  %first = icmp eq i64 %begin, 0
  br i1 %first, label %wait, label %lines
wait:
  call void @brief(ptr %data, i64 %begin, i64 %end, i64 %thread)
  br label %out
lines:
  %alone = icmp eq i64 %thread, 0
  br i1 %alone, label %late, label %loop
late:
  call void @late(ptr %data, i64 %begin, i64 %end, i64 %thread)
  br label %loop
loop:
  %run = phi i64 [ 0, %lines ], [ 0, %late ], [ %next, %loop ]
  %far = mul i64 %run, {_APART}
  %place = urem i64 %far, {LINES // _RUN}
  %offset = mul i64 %place, {_RUN * CACHE_LINE}
  %at = getelementptr i8, ptr %data, i64 %offset
  %beside = getelementptr i8, ptr %at, i64 {CACHE_LINE}
  %one = load volatile i64, ptr %at, align 8
  %other = load volatile i64, ptr %beside, align 8
  %next = add i64 %run, 1
  %more = icmp slt i64 %next, {LINES // _RUN}
  br i1 %more, label %loop, label %out
out:
  ret void
}}"""

#: What a chunk that is busy calls.
BUSY: Final = "busy"
#: All that the loops call, by name.
FUNCTIONS: Final[Mapping[str, str]] = {
    BUSY: _busy(BUSY, _WORK),
    "brief": _busy("brief", _BRIEF),
    "late": _busy("late", _LATE),
    "write": _WRITE,
    "read": _READ,
}
