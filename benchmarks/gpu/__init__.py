"""Kernels on a GPU beside those of the libraries there: ``python -m benchmarks.gpu``."""
