"""Compiled functions of the schedule."""
