"""Programs of musl are refused where they are linked."""

from __future__ import annotations

from pathlib import Path

import pytest

from tracekit.formats.errors import TracekitError
from tracekit.recorder import driver


@pytest.mark.parametrize(
    "words", [("--target=x86_64-linux-musl",), ("-target", "x86_64-linux-musl"), ("/usr/lib/x86_64-linux-musl/libc.a",)]
)
def test_links_with_musl_are_refused(tmp_path: Path, words: tuple[str, ...]) -> None:
    with pytest.raises(TracekitError, match="needs glibc"):
        driver.command("cc", ["-static", *words, "app.o"])
    (tmp_path / "words").write_text(" ".join(words))
    with pytest.raises(TracekitError, match="needs glibc"):
        driver.command("cc", ["-static", f"@{tmp_path / 'words'}", "app.o"])


def test_other_links_are_not() -> None:
    driver.command("cc", ["-static", "app.o", "/home/x86_64-linux-muslin/a.o"])
    driver.command("cc", ["-c", "--target=x86_64-linux-musl", "app.c"])
