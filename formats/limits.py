"""What readers refuse, or give up at, so that damage costs no more than its size justifies (SPEC.md, "Limits")."""

LONGEST_RUN = 1 << 40
"""Iterations of one run at most."""

SEARCHES = 1000
"""After so many violations in a stream, those of ground truth left out, activations are no longer searched for: damage
must not cost hours."""

DEEPEST = 1 << 23
"""Activations, and open loops, registers and stack objects of them all, that a stream may have at once.

A forged trace of a few bytes could otherwise ask for any amount of memory.
"""
