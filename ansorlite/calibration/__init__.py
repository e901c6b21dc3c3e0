"""Measuring what the analytical cost model takes for granted of a machine: short loops of LLVM IR, timed."""
