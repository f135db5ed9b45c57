"""Compiled functions of tracekit.translation."""
