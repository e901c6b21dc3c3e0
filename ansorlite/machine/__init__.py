"""What the analytical cost model takes a machine's core, caches and memory to cost: measured, shipped, or kept from an earlier run."""
