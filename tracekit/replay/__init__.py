"""Replay: from the records of a trace to events, and from events to what modules compute."""
