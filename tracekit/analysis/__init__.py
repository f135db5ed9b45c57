"""One analysis of one trace: its modules with their options, the passes over the trace, the profiles."""
