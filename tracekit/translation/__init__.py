"""Object-relative translation: from addresses to (group, object, offset)."""

GROUPS_BY = ("site", "caller", "context")
"""What groups of objects are told apart by: the instruction that allocates; of a wrapper of malloc the call of it; the
instruction in its calling context."""
