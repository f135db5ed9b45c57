"""Calls of chosen functions, with their arguments and results, as a trace has them (`tracekit calls`)."""
