"""Which calls of libraries use synchronisation objects and file descriptors that are the program's.

A library may have some of its own, whose uses it orders out of sight; functions of POSIX, C11, C++ and OpenMP have
none.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from tracekit.formats.image import CallFlag

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracekit.program.program import Program

OBJECTS = re.compile(r"(pthread_(mutex|rwlock|spin|cond|barrier)|sem|mtx|cnd)_[a-z]+|omp_[a-z]+(_nest)?_lock\w*")
TAKING = re.compile(
    r"pthread_(mutex|spin)_(try|timed|clock)?lock|pthread_rwlock_(try|timed|clock)?wrlock|mtx_(try|timed)?lock"
)
WAITING = re.compile(r"(pthread_cond|cnd)_\w*wait|_ZNSt\w*condition_variable\w*")
TRYING = re.compile(
    r"(pthread_(mutex|rwlock|spin|join)|sem|mtx)_(try|timed|clock)\w*|pthread_\w+join_np|sem_getvalue"
    r"|omp_test_\w+|__kmpc_dispatch_next_\w+|_ZNSt28__atomic_futex\w*"
)
"""Calls whose result says in which order threads came to a lock or a loop."""
SAYING_NOTHING = re.compile(
    r"v?printf|puts|putchar|_?exit|abort|perror|__assert_fail|__printf_chk|__vprintf_chk"
    r"|u?sleep|(clock_)?nanosleep|sched_yield|qsort|bsearch|malloc_usable_size|__errno_location|getpid|gettid"
    r"|pthread_(create|join|detach|self|equal|exit|once|yield|key_\w+|[gs]etspecific|attr_\w+|\w+attr_\w+|setname_np)"
    r"|thrd_[a-z]+|call_once|tss_[a-z]+|__kmpc_\w+|omp_[gs]et_\w+|omp_\w+_lock\w*|__cxa_\w+|_Unwind_\w+"
    r"|_ZNSt6thread\w*|_ZNSt\w*condition_variable\w*|_ZNSt15__exception_ptr\w*|_ZSt\d+__throw_\w+"
)
"""Calls that tell a thread nothing of what others did: what they write goes out of the program, or is in the trace."""
CXX = re.compile(r"_ZN?K?St")
FILES = frozenset(
    "open open64 openat openat64 creat creat64 __open_2 __open64_2 __openat_2 __openat64_2 close fclose dup dup2 dup3 "
    "pipe pipe2 socket socketpair accept accept4 connect shutdown read pread pread64 readv write pwrite pwrite64 "
    "writev recv recvfrom recvmsg send sendto sendmsg __read_chk __pread_chk __pread64_chk __recv_chk __recvfrom_chk "
    "eventfd eventfd_read eventfd_write epoll_create epoll_create1 epoll_ctl epoll_wait epoll_pwait".split()
)


def calls_of(program: Program, pattern: re.Pattern[str]) -> NDArray[np.intp]:
    """Instructions that call a function of such a name."""
    found = [row for row in range(len(program.calls)) if pattern.fullmatch(program.callee_name(row))]
    return program.calls["op"][found].astype(np.intp)


def outside_calls(program: Program) -> NDArray[np.intp]:
    """Rows of ``calls`` of what is not in the trace, and may so hand on to other threads what these decide by."""
    flags = program.calls["flags"]
    seen = int(CallFlag.PURE | CallFlag.ALLOCATES)
    own = {program.function_name(row) for row in range(len(program.functions))}
    found = [row for row in np.flatnonzero(flags & seen == 0) if is_outside(program.callee_name(int(row)), own)]
    return np.array(found, np.intp)


def is_outside(name: str, own: set[str]) -> bool:
    """Whether a function of that name may tell something to other threads, or by pointer ("") one that is called."""
    return name not in own and not OBJECTS.fullmatch(name) and not SAYING_NOTHING.fullmatch(name)


def library_calls(program: Program) -> NDArray[np.intp]:
    """Instructions that call such a function by its name."""
    names = [program.callee_name(row) for row in range(len(program.calls))]
    found = [row for row, name in enumerate(names) if OBJECTS.fullmatch(name) or CXX.match(name) or name in FILES]
    return program.calls["op"][found].astype(np.intp)
