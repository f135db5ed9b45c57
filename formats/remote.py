"""Traces that lie elsewhere: URLs, read through fsspec (http, s3, ssh and whatever else it knows)."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Iterator
from typing import Any

from tracekit.formats.errors import TracekitError

NOT_FOUND = 404


def is_url(source: str) -> bool:
    """Whether `source` has a scheme, as ``https://host/trace.zst``."""
    return "://" in source


class RemoteFile(io.RawIOBase):
    """A seekable file that fetches what is read of it, and says in TracekitErrors why it cannot."""

    def __init__(self, url: str) -> None:
        fsspec = _fsspec()
        with _explained(url):
            self._file = fsspec.open(url, "rb").open()
        self._url = url

    def seekable(self) -> bool:
        """It is, or :meth:`seek` says why not."""
        return True

    def readable(self) -> bool:
        """It is."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a place."""
        with _explained(self._url):
            return int(self._file.seek(offset, whence))

    def tell(self) -> int:
        """The place that is read next."""
        return int(self._file.tell())

    def read(self, size: int = -1) -> bytes:
        """Fetch `size` bytes, fewer at the end."""
        with _explained(self._url):
            return bytes(self._file.read(size))

    def close(self) -> None:
        """Let go of the connection."""
        if not self.closed and hasattr(self, "_file"):
            self._file.close()
        super().close()


@contextlib.contextmanager
def _explained(url: str) -> Iterator[None]:
    """Errors as TracekitErrors: each file system has its own."""
    try:
        yield
    except FileNotFoundError as error:
        raise TracekitError(f"Cannot read {url}: {_not_found(error)}.") from None
    except Exception as error:
        raise TracekitError(f"Cannot read {url}: {_one_line(error)}.") from error


def _not_found(error: FileNotFoundError) -> str:
    """Why a file is not found: for fsspec's http so is all that a server refuses, and whatever no server serves."""
    cause = error.__cause__
    if cause is None or isinstance(cause, FileNotFoundError) or getattr(cause, "status", None) == NOT_FOUND:
        return "there is no such file"
    return _one_line(cause)


def size_of(source: str) -> int:
    """Bytes of a file, or of what is at a URL; 0 if that cannot be told: opening it will say what is wrong."""
    try:
        if not is_url(source):
            return os.stat(source).st_size
        filesystem, path = _fsspec().url_to_fs(source)
        return int(filesystem.size(path) or 0)
    except Exception:
        return 0


def _fsspec() -> Any:
    try:
        import fsspec
        import fsspec.core
    except ImportError:
        raise TracekitError("Reading a trace from a URL needs fsspec: pip install 'tracekit[cluster]'.") from None
    return fsspec


def _one_line(error: BaseException) -> str:
    """Its first sentence; what follows is advice to users of fsspec."""
    return (" ".join(str(error).split()) or type(error).__name__).partition(". ")[0].rstrip(".")
