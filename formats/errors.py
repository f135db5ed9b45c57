"""The one exception for everything that a user, or a file, can get wrong."""

from __future__ import annotations


class TracekitError(Exception):
    """A failure with a message for the user: one sentence that says what happened and what to do.

    Commands print it as ``tracekit: <message>`` and exit; it never shows a traceback.
    """
