"""The version of tracekit, for what it writes and prints."""

__version__ = "0.1.0"
"""As ``tracekit --version`` prints it and profiles say."""
