r"""How names of files are printed: bytes that are no UTF-8 as Python and the shell write them, ``caf\xe9.zst``.

Python reads such bytes as lone surrogates (PEP 383), which a stream refuses to write, or writes as ``\udce9``: neither
is what the user typed, nor what ``ls`` shows.
"""

from __future__ import annotations

import codecs
import io
import re
import shlex
from typing import TextIO

_HANDLER = "tracekit.undecodable"
_UNDECODABLE = re.compile("[\udc80-\udcff]")


def escape_undecodable(*streams: TextIO) -> None:
    r"""Let the streams write undecodable bytes as ``\xe9``, and whatever else they cannot encode as an escape, too."""
    codecs.register_error(_HANDLER, _escape)
    for stream in streams:
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=_HANDLER)


def shell_word(name: str) -> str:
    r"""The name as a word that a shell reads back: ``a.zst``, ``'a b.zst'``, ``$'caf\xe9.zst'``."""
    if not _UNDECODABLE.search(name):
        return shlex.quote(name)
    return "$'" + _escaped(re.sub(r"[\\']", r"\\\g<0>", name)) + "'"


def _escaped(text: str) -> str:
    return _UNDECODABLE.sub(lambda found: rf"\x{ord(found[0]) - 0xDC00:02x}", text)


def _escape(error: UnicodeError) -> tuple[str, int]:
    """The handler of errors: what stands for the characters that cannot be encoded, and where to go on."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    refused = _escaped(error.object[error.start : error.end])
    return refused.encode("ascii", "backslashreplace").decode(), error.end
