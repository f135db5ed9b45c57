"""Graphs of tasks: stretches of threads between the events that order them, their work and the longest way through."""
