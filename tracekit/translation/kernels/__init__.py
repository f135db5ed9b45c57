"""Kernels of object-relative translation."""
