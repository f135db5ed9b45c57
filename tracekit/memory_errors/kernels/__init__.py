"""Compiled code of memory_errors."""
