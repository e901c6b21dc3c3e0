"""Rewrites of a computation that schedules ask for: pure functions ``ComputeDAG -> ComputeDAG``."""
