"""Slow, obvious references: one for each kernel and module."""
