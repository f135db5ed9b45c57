"""Kernels of the race detector: vector clocks, what orders threads, the history of bytes."""
