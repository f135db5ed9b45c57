"""The one exception for everything that a user, or a file, can get wrong."""

from __future__ import annotations


class TracekitError(Exception):
    """A failure with a message for the user: one sentence that says what happened and what to do.

    Commands print it as ``tracekit: <message>`` and exit; it never shows a traceback.
    """


CLAIMS_TOO_MUCH = "The trace is damaged: an event claims more bytes than a program can have."
"""Said of a size that no access and no object of any program has."""
