"""Kernels of imports: they read what other tools wrote, and make records of it."""
