"""Kernels of memory_errors."""
