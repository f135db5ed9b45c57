"""Kernels of schedules."""
