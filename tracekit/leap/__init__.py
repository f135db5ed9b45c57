"""LEAP: linear descriptors of what each instruction does to the objects of a group, and what follows from them."""
