"""Kernels of path profiles."""
