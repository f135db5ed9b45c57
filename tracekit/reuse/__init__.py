"""Reuse distances: how many other lines of memory a program touches before it comes back to one."""
