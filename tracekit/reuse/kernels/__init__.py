"""Kernels of reuse distances."""
