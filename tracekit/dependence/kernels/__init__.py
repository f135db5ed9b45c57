"""Kernels that find dependences."""
