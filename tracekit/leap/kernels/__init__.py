"""Kernels of LEAP."""
