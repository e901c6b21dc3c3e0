"""Kernels as OpenCL C: loop IR with blocks and threads, printed."""
