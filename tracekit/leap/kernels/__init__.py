"""Compiled functions of tracekit.leap."""
