"""Calling and loop contexts.

CAMP's static ids, the tree that a replay visits, its tables and names, merging those of several runs.
"""
