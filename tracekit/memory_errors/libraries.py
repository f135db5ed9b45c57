"""What is known of functions of libraries: which of them write memory that no event tells of.

The recorder interposes the functions of the C library that read or write the program's memory by definition
(recorder/runtime/interceptors_libc.c and its neighbours), and the pass knows the bulk copies. Any other function that
is no part of the program may write wherever it likes, but for those here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

import numpy as np
from numpy.typing import NDArray

MALLOC = ("malloc", "realloc", "reallocarray", "aligned_alloc", "memalign", "posix_memalign", "valloc", "pvalloc")
"""Return memory without contents (a realloc: behind the old one's)."""
ZEROED = ("calloc",)
DUPLICATES = ("strdup", "strndup", "wcsdup", "__strdup", "__strndup")
"""Return a block that is the program's to free."""
SIZE_ASKING = ("usable_size", "malloc_size", "allocx")
"""How names of jemalloc's, mimalloc's and others' functions end that say how many bytes a block really has."""
MAPPING = ("mmap", "mmap64", "mremap", "munmap", "shmat")
MOVING = ("realloc", "reallocarray", "mremap")
"""Copy the contents of a block that they move."""

COPYING = tuple("memcpy memmove mempcpy bcopy __memcpy_chk __memmove_chk __mempcpy_chk".split())
"""Copy, which the recorder says as a load and a store of the call."""

SORTING = ("qsort",)
"""Move what they are given before they say so."""

FIRST_BYTE = tuple(
    "strtol strtoul strtoll strtoull strtoimax strtoumax strtof strtod strtold atoi atol atoll atof".split()
)
"""Look at a text as far as it is a number; the recorder says: up to its end."""

READERS = (
    "write pwrite pwrite64 writev send sendto fwrite fwrite_unlocked fputs fputs_unlocked puts strlen strnlen strcpy "
    "stpcpy strncpy strcat strncat strcmp strncmp memcmp bcmp strchr strrchr memchr strstr strdup strndup __strcpy_chk "
    "__stpcpy_chk __strncpy_chk __strcat_chk __strncat_chk strcasecmp strncasecmp strcoll strspn strcspn strpbrk "
    "strcasestr strchrnul rawmemchr memrchr memmem wcslen wcsnlen wcscmp wcsncmp wmemcmp printf fprintf vprintf "
    "vfprintf dprintf vdprintf __printf_chk __fprintf_chk __vprintf_chk __vfprintf_chk __dprintf_chk __vdprintf_chk "
    "_ZStlsISt11char_traitsIcEERSt13basic_ostreamIcT_ES5_PKc"
).split()
"""Look at each byte that the recorder says they do, and decide something by it, or hand it to the system."""

HARMLESS = (
    "putchar putchar_unlocked putc putc_unlocked fputc fputc_unlocked _IO_putc perror getchar getchar_unlocked getc "
    "getc_unlocked fgetc fgetc_unlocked _IO_getc ungetc fopen fopen64 freopen freopen64 fdopen popen pclose tmpfile "
    "tmpfile64 fclose fflush fflush_unlocked fseek fseeko fseeko64 ftell ftello ftello64 rewind feof feof_unlocked "
    "ferror ferror_unlocked clearerr fileno setbuf open open64 openat close lseek lseek64 ftruncate ftruncate64 fsync "
    "fdatasync unlink remove rename rmdir mkdir access chdir isatty dup dup2 fchmod fchown chmod umask getpid getppid "
    "getuid geteuid getgid getegid sysconf getpagesize sleep usleep clock abort exit _exit _Exit quick_exit atexit "
    "raise kill __assert_fail __stack_chk_fail __errno_location getenv setlocale localeconv nl_langinfo strrchr "
    "strerror strsignal bsearch rand srand random srandom drand48 lrand48 srand48 pthread_mutex_init "
    "pthread_mutex_lock pthread_mutex_trylock pthread_mutex_unlock pthread_mutex_destroy socket listen connect "
    "shutdown eventfd eventfd_write epoll_create epoll_create1 epoll_ctl dup3 pthread_self signal abs labs "
    "malloc_usable_size malloc_trim ffs __ctype_b_loc __ctype_tolower_loc __ctype_toupper_loc toupper tolower isalpha "
    "isdigit isspace longjmp _longjmp siglongjmp __longjmp_chk _setjmp setjmp __sigsetjmp __cxa_allocate_exception "
    "__cxa_free_exception __cxa_throw __cxa_rethrow __cxa_begin_catch __cxa_end_catch __cxa_guard_acquire "
    "__cxa_guard_release __cxa_guard_abort __cxa_atexit __cxa_pure_virtual _Unwind_Resume __clang_call_terminate "
    "_ZSt9terminatev gettext dcgettext textdomain ceil floor btowc wctob iswalpha iswalnum iswdigit iswspace iswprint "
    "iswpunct iswupper iswlower iswctype wctype towupper towlower wcwidth fork vfork alarm sync setuid setgid setsid "
    "getpgrp setpgid getpgid link symlink fchdir chown lchown setrlimit tzset pthread_attr_destroy sched_yield "
    "pthread_cond_init pthread_cond_destroy pthread_cond_signal pthread_cond_broadcast pthread_cond_wait "
    "pthread_cond_timedwait pthread_rwlock_init pthread_rwlock_destroy pthread_rwlock_rdlock pthread_rwlock_wrlock "
    "pthread_rwlock_tryrdlock pthread_rwlock_trywrlock pthread_rwlock_unlock pthread_mutex_timedlock "
    "pthread_barrier_init pthread_barrier_wait pthread_barrier_destroy pthread_spin_init pthread_spin_lock "
    "pthread_spin_trylock pthread_spin_unlock pthread_spin_destroy sem_init sem_post sem_wait sem_trywait "
    "sem_timedwait sem_destroy pthread_attr_init pthread_attr_setstacksize pthread_attr_setdetachstate "
    "pthread_mutexattr_init pthread_mutexattr_settype pthread_mutexattr_destroy pthread_condattr_init "
    "pthread_condattr_setclock pthread_condattr_destroy pthread_detach pthread_equal pthread_setspecific "
    "pthread_key_delete pthread_setname_np gettid flockfile funlockfile unlinkat linkat mkdirat renameat futimens "
    "utimensat utimes mlock munlock madvise secure_getenv syslog openlog closelog "
    "_ZSt11_Hash_bytesPKvmm"
).split()
"""Write no memory of the program that it could know the address of, but what was given to the library before."""

RELEASED = frozenset(
    [
        *"printf fprintf vprintf vfprintf putchar putc fputc puts fputs fwrite fread fgets getchar getc fgetc".split(),
        *"ungetc scanf fscanf vscanf vfscanf fflush fseek fseeko fseeko64 ftell ftello ftello64 rewind perror".split(),
        *"__printf_chk __fprintf_chk __vprintf_chk __vfprintf_chk __fgets_chk __fread_chk _IO_putc _IO_getc".split(),
        *"__isoc99_scanf __isoc99_fscanf __isoc99_vfscanf __isoc23_scanf __isoc23_fscanf __isoc23_vfscanf".split(),
        *"putchar_unlocked putc_unlocked fputc_unlocked puts_unlocked fputs_unlocked fwrite_unlocked".split(),
        *"fread_unlocked fgets_unlocked getchar_unlocked getc_unlocked fgetc_unlocked fflush_unlocked".split(),
        *"wprintf fwprintf putwchar putwc fputwc fputws getwchar getwc fgetwc fgetws".split(),
        *"setlocale gettext dgettext dcgettext ngettext dngettext dcngettext textdomain bindtextdomain".split(),
        *"bind_textdomain_codeset strerror strsignal dlerror".split(),
        *"localtime localtime_r gmtime gmtime_r ctime ctime_r mktime timelocal timegm tzset strftime".split(),
        *"setenv putenv getpwnam getpwuid getpwent getgrnam getgrgid getgrent getservbyname gethostbyname".split(),
        *"getaddrinfo getmntent getlogin ttyname crypt openlog syslog backtrace".split(),
        *"mblen mbrlen mbtowc mbrtowc mbstowcs mbsrtowcs mbsnrtowcs btowc wctob wctomb wcrtomb wcstombs".split(),
        *"wcsrtombs wcsnrtombs".split(),
        *"error error_at_line warn warnx vwarn vwarnx err errx verr verrx psignal".split(),
    ]
)
"""Calls by which the C library allocates for itself: buffers of streams, locales, catalogs of messages, what converts
characters, time zones, what it knows of users. It can free all of it (__libc_freeres), which memcheck lets it do before
it looks for leaks. What it gives to the program (of fopen, getline, newlocale) is not among it."""

OPENMP = ("__kmpc_", "omp_get_", "omp_set_", "kmp_get_", "kmp_set_")
OPENMP_GIVES = ("__kmpc_alloc", "__kmpc_aligned_alloc", "__kmpc_calloc", "__kmpc_realloc")
"""Calls by which clang's OpenMP library allocates for itself (threads, teams, tasks, tables) until the process ends,
and those, among these names, that give memory to the program."""

STREAM_OUTPUT = ("_ZNSo", "_ZStls", "_ZSt16__ostream_insert", "_ZSt4endl", "_ZSt5flush", "_ZNSt13basic_ostreamIw")
STREAM_INPUT = ("_ZNSi", "_ZStrs", "_ZSt7getline", "_ZSt2ws", "_ZNSt13basic_istreamIw")
"""Calls of libstdc++'s streams. The standard ones hand everything to stdio (sync_with_stdio), which may then allocate
the buffer of stdout or stdin; a stream also allocates for the program, but not in such pieces (see `stdio_buffer`)."""


LOCALES = ("_ZNSt6localeC1EPKc", "_ZNSt6localeC2EPKc", "_ZNSt6localeC1ERKNSt", "_ZNSt6localeC2ERKNSt")
"""Constructors of std::locale that are given a name: the C library keeps what it has looked for and loaded."""


def keeps(name: str) -> bool:
    """Is what a call of this function allocates a library's own, whatever its size?"""
    return name in RELEASED or name.startswith(LOCALES) or (name.startswith(OPENMP) and name not in OPENMP_GIVES)


LEAST_BUFFER = 1024
"""Bytes of the least buffer that stdio takes (of a terminal)."""


def stdio_buffer(sizes: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which of the blocks that calls of C++'s streams allocated may be a buffer of stdio, by their sizes (n,) in bytes.

    stdio takes a file system's block size. What strings and string streams ask for is one byte more than twice what
    they had, a file stream has its buffer when it is opened.
    """
    found: NDArray[np.bool_] = (sizes >= LEAST_BUFFER) & (sizes & (sizes - 1) == 0)
    return found


_STRING_STREAMS = ("19basic_ostringstream", "19basic_istringstream", "18basic_stringstream")
_FILE_STREAMS = ("14basic_ofstream", "14basic_ifstream", "13basic_fstream")

_HARMLESS_PREFIXES = (
    *(
        "_ZNSols",
        "_ZNSo9_M_insert",
        "_ZSt16__ostream_insert",
        "_ZNSo3put",
        "_ZNSo5flush",
        "_ZNSo5seekp",
        "_ZNSo5tellp",
        "_ZNSo5write",
    ),
    *("_ZStlsIcSt11char_traitsIcE", "_ZStlsISt11char_traitsIcE", "_ZSt4endlIc", "_ZSt4endsIc", "_ZSt5flushIc"),
    *("_ZNSi3getEv", "_ZNSi4peekEv", "_ZNSi5ungetEv", "_ZNSi7putbackEc", "_ZNSi6ignoreE", "_ZNSi4syncEv"),
    *("_ZNSi5seekgE", "_ZNSi5tellgEv", "_ZNKSi6gcountEv", "_ZNSirsEPF", "_ZSt2wsIc", "_ZNSt8ios_base4Init"),
    *("_ZNSt9basic_iosIcSt11char_traitsIcEE5clearE", "_ZNSt9basic_iosIcSt11char_traitsIcEE8setstateE"),
    "_ZNSt9basic_iosIcSt11char_traitsIcEE10exceptionsE",
    *("_ZNKSt9basic_iosIcSt11char_traitsIcEE", "_ZNKSt5ctypeIcE13_M_widen_initEv", "_ZNSt8ios_baseD2Ev"),
    *(f"_ZNSt7__cxx11{name}IcSt11char_traitsIcESaIcEED" for name in _STRING_STREAMS),
    *(f"_ZN{of}St{name}IcSt11char_traitsIcEE7is_openEv" for name in _FILE_STREAMS for of in ("", "K")),
    *(f"_ZNSt{name}IcSt11char_traitsIcEE{what}" for name in _FILE_STREAMS for what in ("D", "5closeEv")),
    *("_ZNSt13basic_filebufIcSt11char_traitsIcEE5closeEv", "_ZNKSt12__basic_fileIcE7is_openEv"),
    *("_ZNSt6localeD1Ev", "_ZNSaIcE", "_ZNSaIwE", "_ZNKSt8__detail20_Prime_rehash_policy"),
    *(f"_ZSt{length}__throw_" for length in range(15, 32)),
    *("_ZNSt9exceptionD", "_ZNSt13runtime_errorD", "_ZNSt11logic_errorD", "_ZNKSt9exception4whatEv"),
    *("_ZNKSt13runtime_error4whatEv", "_ZNKSt11logic_error4whatEv"),
    "_FortranAClassIs",
    "_FortranAExtendsTypeOf",
    "_FortranAIsAssumedSize",
    "_FortranAIsContiguous",
    "_FortranALboundDim",
    "_FortranAMod",
    "_FortranAPointerIsAssociated",
    "_FortranASameTypeAs",
    "_FortranASize",
)
"""Of libstdc++: what prints, what looks at streams or ends them, and what throws. Of flang's runtime: questions about
descriptors, remainders."""

_KNOWN = frozenset([*READERS, *HARMLESS, *MALLOC, *ZEROED, *MAPPING])


def is_new(name: str) -> bool:
    """An ``operator new``, of one object or many, with or without alignment or exceptions."""
    return name.startswith(("_Znwm", "_Znam"))


def is_delete(name: str) -> bool:
    """An ``operator delete``."""
    return name.startswith(("_ZdlPv", "_ZdaPv"))


def is_harmless(name: str, recorded: Collection[str]) -> bool:
    """Whether a call of this function writes nothing that the events of the call do not tell of.

    recorded: the functions whose writes the trace's recorder knows (formats.library_functions).
    """
    return name in recorded or name in _KNOWN or is_new(name) or is_delete(name) or name.startswith(_HARMLESS_PREFIXES)


def calls_back(name: str) -> bool:
    """Whether a function of libstdc++ may have others of the program do a part of its work.

    Where the program has functions of its own for strings (at -O0 all that it uses), streams call these.
    """
    return name.startswith("_Z") and not is_new(name) and not is_delete(name)


def family_of(name: str) -> int:
    """What allocates, and may free, alike: 1 the C library, 2 new, 3 new[]; 0: nothing, or not known."""
    if name in MALLOC or name in ZEROED or name == "free":
        return 1
    return 2 if name.startswith(("_Znwm", "_ZdlPv")) else 3 if name.startswith(("_Znam", "_ZdaPv")) else 0


def suppressed(names: Iterable[str], patterns: Iterable[str]) -> bool:
    """Whether one of the names is like one of the patterns of a shell."""
    from fnmatch import fnmatchcase

    return any(fnmatchcase(name, pattern) for name in names for pattern in patterns)
