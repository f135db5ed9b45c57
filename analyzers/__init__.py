"""The analysis modules: one file for each name that ``analyze --module`` accepts."""
