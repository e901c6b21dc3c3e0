"""How far the building of candidates scales, and what a cluster survives: ``python -m benchmarks.cluster``."""
