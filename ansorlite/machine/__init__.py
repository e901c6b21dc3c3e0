"""What a machine's instructions, caches and memory cost, for the analytical cost model: measured before, or shipped."""
