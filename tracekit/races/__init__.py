"""Data races: accesses to a common byte, one of them a store, that nothing orders."""
