"""Kernels of replay: arrays and scalars only."""
