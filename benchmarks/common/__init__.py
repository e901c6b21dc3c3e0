"""What the benchmarks of kernels and of models share: turns, the machine, tables."""
