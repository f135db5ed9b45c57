"""Kernels of physical addresses."""
