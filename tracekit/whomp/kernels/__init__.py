"""Compiled functions of tracekit.whomp."""
