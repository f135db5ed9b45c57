"""Kernels of formats: arrays and scalars only."""
