"""Kernels of WHOMP."""
