"""Object-relative translation: from addresses to (group, object, offset)."""
