"""Communication: bytes that one thread stored last and another one loads."""
