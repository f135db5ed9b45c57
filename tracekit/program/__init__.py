"""From an image's tables to a Program.

Linking, validation, symbols, sources, the loop graph, lookup by name and line.
"""
