"""Kernels of the containers: arrays and scalars only."""
