"""Compiled paths: straight-line machine code from a path's record to the callbacks of modules."""
