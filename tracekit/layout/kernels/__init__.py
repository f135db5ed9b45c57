"""Compiled functions of tracekit.layout."""
