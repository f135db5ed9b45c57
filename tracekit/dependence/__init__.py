"""Memory dependences.

History of loads and stores, tables, reduction over workers, merging over runs, rows of a profile.
"""
