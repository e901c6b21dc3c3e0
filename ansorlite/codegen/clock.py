"""The time, as LLVM IR, for whatever measures or waits."""

from __future__ import annotations

from typing import Final

#: ``i64 now()``: nanoseconds of a clock that never goes back. A definition to put into a module.
NOW: Final = """define internal i64 @now() nounwind {
  %time = alloca [2 x i64], align 8
  call i32 @clock_gettime(i32 1, ptr %time)
  %nanoseconds_at = getelementptr i64, ptr %time, i64 1
  %seconds = load i64, ptr %time
  %nanoseconds = load i64, ptr %nanoseconds_at
  %scaled = mul i64 %seconds, 1000000000
  %sum = add i64 %scaled, %nanoseconds
  ret i64 %sum
}

declare i32 @clock_gettime(i32, ptr)
"""
