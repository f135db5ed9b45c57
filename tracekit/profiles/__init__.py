"""Profiles as files and objects: reading, writing, merging, comparing, annotating sources."""
