"""Kernels of the layout of data."""
