"""Kernels that keep contexts, levels and scopes up to date with each event."""
