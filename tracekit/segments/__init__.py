"""One analysis of one trace in segments of it, each by itself, with the result of the whole."""
