"""What memory_errors keeps of each byte, and what it takes for an error."""
