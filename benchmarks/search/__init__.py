"""Strategies judged on recorded tables: ``python -m benchmarks.search``."""
