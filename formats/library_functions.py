"""Functions of the C library whose writes into the program's memory are all events, by the recorder's version of them.

What the others write, no event tells of: whoever asks whether memory was ever written must not take their word.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

KEY = "library"
"""Of META: the recorder's version of this list; 1 in a trace without it."""

VERSION = 4
"""The version that today's recorder knows. It rises when more functions are recorded."""

NODES = (
    "_ZSt18_Rb_tree_incrementPSt18_Rb_tree_node_base",
    "_ZSt18_Rb_tree_incrementPKSt18_Rb_tree_node_base",
    "_ZSt18_Rb_tree_decrementPSt18_Rb_tree_node_base",
    "_ZSt18_Rb_tree_decrementPKSt18_Rb_tree_node_base",
    "_ZSt29_Rb_tree_insert_and_rebalancebPSt18_Rb_tree_node_baseS0_RS_",
    "_ZSt28_Rb_tree_rebalance_for_erasePSt18_Rb_tree_node_baseRS_",
    "_ZNSt8__detail15_List_node_base7_M_hookEPS0_",
    "_ZNSt8__detail15_List_node_base9_M_unhookEv",
    "_ZNSt8__detail15_List_node_base11_M_transferEPS0_S1_",
    "_ZNSt8__detail15_List_node_base4swapERS0_S1_",
    "_ZNSt8__detail15_List_node_base10_M_reverseEv",
)
"""What libstdc++ does to the nodes of its trees and lists."""

_NUMBERS = "b s t i j l m x y f d e Pv".split()
_STRING = "NSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
_OF_STRINGS = "NS_12basic_stringIcS2_S3_EE"
_OF_STREAMS = "RNSt7__cxx1112basic_stringIS4_S5_T1_EE"
_STRING_STREAMS = [
    f"_ZN{{}}St7__cxx11{name}IcSt11char_traitsIcESaIcEE"
    for name in ("19basic_ostringstream", "19basic_istringstream", "18basic_stringstream")
]
_FILE_STREAMS = [
    f"_ZNSt{name}IcSt11char_traitsIcEE" for name in ("14basic_ofstream", "14basic_ifstream", "13basic_fstream")
]
_EXCEPTIONS = (
    "11logic_error 12domain_error 16invalid_argument 12length_error 12out_of_range 13runtime_error 11range_error "
    "14overflow_error 15underflow_error"
).split()

STREAMS = (
    "_ZNSo5writeEPKcl",
    "_ZSt16__ostream_insertIcSt11char_traitsIcEERSt13basic_ostreamIT_T0_ES6_PKS3_l",
    "_ZStlsIcSt11char_traitsIcESaIcEERSt13basic_ostreamIT_T0_ES7_RKNSt7__cxx1112basic_stringIS4_S5_T1_EE",
    *(f"_ZNSi{name}" for name in ("4readEPcl", "8readsomeEPcl", "3getERc", "3getEPcl", "3getEPclc")),
    *(f"_ZNSi{name}" for name in ("7getlineEPcl", "7getlineEPclc")),
    *(f"_ZNSirsER{kind}" for kind in _NUMBERS),
    *(f"_ZNSi10_M_extractI{kind}EERSiRT_" for kind in _NUMBERS if kind not in "si"),
    "_ZStrsIcSt11char_traitsIcEERSt13basic_istreamIT_T0_ES6_RS3_",
    f"_ZStrsIcSt11char_traitsIcESaIcEERSt13basic_istreamIT_T0_ES7_{_OF_STREAMS}",
    f"_ZSt7getlineIcSt11char_traitsIcESaIcEERSt13basic_istreamIT_T0_ES7_{_OF_STREAMS}",
    f"_ZSt7getlineIcSt11char_traitsIcESaIcEERSt13basic_istreamIT_T0_ES7_{_OF_STREAMS}S4_",
    *(
        name.format("") + what
        for name in _STRING_STREAMS
        for what in (
            *("C1Ev", "C1ESt13_Ios_Openmode", f"C1ERK{_OF_STRINGS}St13_Ios_Openmode"),
            f"3strERK{_OF_STRINGS}",
        )
    ),
    *(name.format("K") + "3strEv" for name in _STRING_STREAMS),
    *(
        name + what + "St13_Ios_Openmode"
        for name in _FILE_STREAMS
        for what in (
            *("C1EPKc", "C1ERKNSt7__cxx1112basic_stringIcS1_SaIcEEE"),
            *("4openEPKc", "4openERKNSt7__cxx1112basic_stringIcS1_SaIcEEE"),
        )
    ),
    *(f"{name}C1Ev" for name in _FILE_STREAMS),
    *(f"_ZNSt{name}C1{text}" for name in _EXCEPTIONS for text in ("EPKc", f"ERK{_STRING}")),
)
"""What streams of libstdc++ read and write of the program's memory, that they and exceptions are made."""

_SINCE = {
    1: (
        "read pread pread64 recv fread fgets strtol strtoul strtoll strtoull strtod atoi atol atof snprintf vsnprintf "
        "sprintf vsprintf qsort memcpy memmove memset mempcpy bcopy bzero __memcpy_chk __memmove_chk __memset_chk "
        "__fgets_chk __fread_chk __read_chk __vsnprintf_chk __vsprintf_chk __snprintf_chk __sprintf_chk free cfree"
    ),
    2: (
        "readv epoll_wait epoll_pwait eventfd_read fread_unlocked fgets_unlocked strtoimax strtoumax strtof strtold "
        "__fgets_unlocked_chk __fread_unlocked_chk __pread_chk __pread64_chk __recv_chk modf modff modfl frexp frexpf "
        "frexpl remquo remquof remquol sincos sincosf sincosl lgamma_r lgammaf_r lgammal_r strtok strtok_r strsep "
        "strxfrm memccpy stpncpy wcscpy wcsncpy wmemcpy wmemmove wmemset asprintf vasprintf __asprintf_chk "
        "__vasprintf_chk sscanf vsscanf __isoc99_sscanf __isoc99_vsscanf __isoc23_sscanf __isoc23_vsscanf rand_r "
        "erand48 nrand48 jrand48 localtime gmtime localtime_r gmtime_r asctime ctime asctime_r ctime_r strftime "
        "mktime timegm stat lstat fstat fstatat stat64 lstat64 fstat64 fstatat64 getcwd realpath readlink gethostname "
        "uname inet_ntop inet_pton mbrtowc __mbrtowc mbtowc mbrlen __mbrlen mblen wcrtomb wctomb mbsinit mbstowcs "
        "wcstombs mbsrtowcs mbsnrtowcs wcsrtombs wcsnrtombs __wcrtomb_chk __wctomb_chk __mbstowcs_chk __wcstombs_chk "
        "__mbsrtowcs_chk __mbsnrtowcs_chk __wcsrtombs_chk __wcsnrtombs_chk sigemptyset sigfillset sigaddset sigdelset "
        "sigismember sigpending sigprocmask pthread_sigmask sigaltstack sigaction getrlimit getrlimit64 sysinfo "
        "statvfs statvfs64 getgroups getitimer setitimer nanosleep clock_nanosleep getsockname getpeername getsockopt "
        "setsockopt bind tcgetattr tcsetattr wait waitpid wait3 wait4 waitid poll ppoll __poll_chk __ppoll_chk select "
        "pselect pipe pipe2 socketpair accept accept4 recvfrom __recvfrom_chk recvmsg fcntl fcntl64 pthread_create "
        "pthread_join pthread_tryjoin_np pthread_timedjoin_np pthread_clockjoin_np thrd_create thrd_join"
    ),
    3: " ".join(NODES),
    4: " ".join(STREAMS),
}


def recorded(meta: Mapping[str, Any]) -> frozenset[str]:
    """The functions all of whose writes are events of a trace with this META (or that write what nobody else has)."""
    version = meta.get(KEY)
    known = version if isinstance(version, int) else 1
    return frozenset(name for since, names in _SINCE.items() if since <= known for name in names.split())
