"""Compiled kernels: arrays and scalars only."""
