"""Compiled kernels: loading, calling and timing them."""
