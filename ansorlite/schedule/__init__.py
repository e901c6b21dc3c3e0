"""Schedules: steps with holes, the one fold over them, and lowering to loop IR."""
