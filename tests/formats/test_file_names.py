"""Names of files as they are printed: each byte can be told, and the shell reads its word back."""

from __future__ import annotations

import io
import os
import subprocess

import pytest

from tracekit.formats.file_names import escape_undecodable, shell_word

NAMES = [b"a.zst", b"a b.zst", b"caf\xe9.zst", b"it's \xff\\n\xe9f \xc3\xa9", "caf\u00e9".encode()]


@pytest.mark.parametrize("name", NAMES)
def test_a_shell_reads_the_word_back(name: bytes) -> None:
    word = shell_word(os.fsdecode(name))
    assert word.isprintable()
    assert subprocess.run(["bash", "-c", f"printf %s {word}"], capture_output=True).stdout == name


def test_a_stream_writes_what_it_cannot_encode_as_escapes() -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii", errors="strict")
    escape_undecodable(stream, io.StringIO())
    stream.write("caf\udce9 caf\u00e9 \ud800 \U0001f600")
    stream.seek(0)
    assert stream.read() == r"caf\xe9 caf\xe9 \ud800 \U0001f600"
