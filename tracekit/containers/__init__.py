"""What kernels keep data in.

Arenas in reserved address space, shadow memory, hash tables, reduction maps; the memory budget.
"""
