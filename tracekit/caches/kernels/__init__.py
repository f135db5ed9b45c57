"""Kernels of the cache simulator."""
