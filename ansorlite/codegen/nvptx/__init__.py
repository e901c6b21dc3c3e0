"""Kernels for NVIDIA GPUs: loop IR with blocks and threads → LLVM IR → PTX → what the driver loads."""
