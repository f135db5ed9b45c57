"""Traces of other tools, made into traces of ours: loads and stores by program counter (docs/import.md)."""
