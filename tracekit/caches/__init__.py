"""A simulator of a hierarchy of caches."""
