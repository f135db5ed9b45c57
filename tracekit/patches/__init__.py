"""Advice as a patch of the source: directives, and bounds that are kept in a constant."""
