"""Kernels that find the object of an address."""
