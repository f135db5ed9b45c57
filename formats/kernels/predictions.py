"""What records are predicted from: the ids that followed an id last, and a slot for each word position of an id.

SPEC.md ("CHNK") defines both; decoding.py and encoding.py keep them alike.
"""

LITERAL = 3
"""The rank of a record whose id is none of the three successors."""

# The codes of words without a residual; the others, up to 7, have residuals of 1, 2, 3, 4, 6 and 8 bytes.
STRIDED = 0
PREDICTED = 1

RESIDUAL_BYTES = 0x86432100
"""A hexadecimal digit for each code, from the lowest: the bytes of its residual."""

# Numbers of a slot.
LAST = 0  # the last word
STRIDE = 1  # it less the one before
REFERENCE = 2
PREDICTOR = 3
SLOT = 4
"""How many there are."""
