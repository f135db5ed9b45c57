"""The shared-memory pool that the traced program fills and the collector empties (runtime/pool.h).

A wrong program may write anything into it. What is read here is copied first, and believed if it can be so; else
:class:`DamagedPoolError` says that it cannot.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import resource
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from tracekit.formats.errors import TracekitError
from tracekit.recorder.native import PoolStatus, library
from tracekit.recorder.window_filters import Filter, of_code
from tracekit.recorder.window_rules import WindowRule

IMAGE_AREA = 1 << 30
"""Bytes of address space for the tables of images; memory is used as they are registered."""

Windows = Sequence[WindowRule] | None
"""The rules by which windows open; None: the whole run is recorded."""

BUFFERS = 256
"""Buffers in use; more are added when threads own them all."""

DEFAULT_BUFFER = 256 << 10
SMALLEST_BUFFER = 16 << 10
LARGEST_BUFFER = 4 << 20


class DamagedPoolError(TracekitError):
    """The program wrote into the pool what it should not."""

    def __init__(self) -> None:
        super().__init__("the program wrote into the recorder's memory")


class Pool:
    """A pool in a memfd, mapped into this process (and, by fork, into the collector)."""

    def __init__(
        self,
        buffer_bytes: int = DEFAULT_BUFFER,
        buffers: int = BUFFERS,
        windows: Windows = None,
        filters: Sequence[Filter] = (),
    ) -> None:
        """Make a pool of ``buffers`` buffers of ``buffer_bytes`` bytes each; TracekitError if the system refuses.

        ``windows``: the program records what happens in windows only, and by which rules they open by themselves;
        ``filters``: what of it.
        """
        self.made = time.monotonic()
        """When it was made: the program that writes to it begins after that."""
        self.buffer_words = buffer_bytes // 8
        self.buffers = buffers
        size = int(library().tk_pool_bytes(self.buffer_words, IMAGE_AREA))
        try:
            with _no_file_size_limit():
                self.descriptor = _high_descriptor(os.memfd_create("tracekit-pool"))
                os.ftruncate(self.descriptor, size)
            self._memory = mmap.mmap(self.descriptor, size)
        except OSError as error:
            raise TracekitError(
                f"the system refused the shared memory for recording ({error.strerror}); "
                "raise the limits on address space and file size (ulimit -v, ulimit -f)"
            ) from error
        address = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        self.view = library().tk_pool_format(address, self.buffer_words, buffers, IMAGE_AREA)
        """This process's own struct tk_view, which the program cannot write."""
        if not self.view:
            raise MemoryError
        library().tk_pool_set_windows(self.view, windows is not None)
        for number, rule in enumerate(windows or ()):
            self._set_rule(number, rule)
        for each in of_code(filters):
            library().tk_pool_add_filter(self.view, each.rule, each.of, each.excludes, each.number, each.name.encode())

    def _set_rule(self, number: int, rule: WindowRule) -> None:
        library().tk_pool_set_rule(
            self.view, number, rule.begin, rule.length, rule.every, rule.accesses, rule.every_accesses
        )
        for closes, condition in enumerate((rule.on, rule.till)):
            for each in condition.happenings:
                library().tk_pool_add_event(
                    self.view, number, closes, condition.enough, each.kind, each.name.encode(), each.number, each.line
                )

    def adopt(self) -> None:
        """Say that this process is the collector, and allocate the memory of the first buffers."""
        library().tk_pool_adopt(self.view)

    def say_exited(self, gone: bool = True) -> None:
        """Let the workers of this process read what the program's threads own.

        ``gone``: the program is certainly gone. Else it may go on writing what nobody waits for, which is no damage.
        """
        library().tk_pool_exited(self.view, gone)

    def discard(self) -> None:
        """Say that nobody reads any more: the program goes on in scratch memory."""
        library().tk_pool_discard(self.view)

    def status(self) -> PoolStatus:
        """The counters in the pool's header; ``waited`` in nanoseconds."""
        status = PoolStatus()
        library().tk_pool_status(self.view, ctypes.byref(status))
        return status

    def exit_status(self) -> int | None:
        """The program's exit status as it said it itself when it ended; None if it did not."""
        status = int(library().tk_pool_exit_status(self.view))
        return None if status < 0 else status

    def close(self) -> None:
        """Unmap it from this process and close the descriptor."""
        library().tk_pool_free(self.view)
        self._memory.close()
        os.close(self.descriptor)

    def image_offset(self, number: int) -> int:
        """Where the registration of an image (``number`` below ``status().images``) stands."""
        return int(library().tk_pool_image_offset(self.view, number))

    def copied(self, offset: int, size: int) -> bytes:
        """A copy of a part of the pool."""
        return self._memory[offset : offset + size]

    def copied_table(self, offset: int, size: int) -> bytes:
        """A copy of what an image registered; DamagedPoolError if it does not lie where such tables do."""
        area = int(library().tk_pool_area_offset(self.view))
        if not area <= offset <= offset + size <= area + IMAGE_AREA:
            raise DamagedPoolError
        return self.copied(offset, size)


def _high_descriptor(descriptor: int) -> int:
    """Move a descriptor out of the way of the program's own and let it be inherited."""
    import fcntl

    limit = min(resource.getrlimit(resource.RLIMIT_NOFILE)[0], 1024)
    high = fcntl.fcntl(descriptor, fcntl.F_DUPFD, max(3, limit - 64))
    os.close(descriptor)
    os.set_inheritable(high, True)
    return high


@contextmanager
def _no_file_size_limit() -> Iterator[None]:
    """Lift the soft limit on file sizes, which counts for memory files too, for a moment."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limits[1], limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
