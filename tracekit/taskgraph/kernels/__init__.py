"""Kernels of task graphs: arrays and scalars only."""
