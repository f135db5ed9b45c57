"""What library functions read and write: each call of a list leaves exactly the events that its definition says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.recorder.recording import build, events, record

STAT_BYTES = 144
LIBRARY_CALLS: list[tuple[str, list[tuple[str, int]], list[tuple[str, int]]]] = [
    # call, what it loads, what it stores: variable and bytes
    ("strlen(text)", [("text", 6)], []),
    ('strcmp(text, "heap")', [("text", 3)], []),
    ("strncmp(text, number, 9)", [("text", 1), ("number", 1)], []),
    ("memcmp(text, other, 4)", [("text", 1), ("other", 1)], []),
    ("memchr(text, 'l', 9)", [("text", 3)], []),
    ("strcpy(other, text)", [("text", 6)], [("other", 6)]),
    ("strncpy(other, text, 9)", [("text", 6)], [("other", 9)]),
    ("strcat(other, text)", [("other", 1), ("text", 6)], [("other", 6)]),
    ("strchr(text, 'l')", [("text", 3)], []),
    ("strstr(text, number)", [("number", 3), ("text", 6)], []),
    ('snprintf(other, 4, "%d", n)', [], [("other", 4)]),
    ("read(0, other, 16)", [], [("other", 5)]),
    ("pread(file(), other, 3, 1)", [], [("other", 3)]),
    ("readv(0, parts, 2)", [], [("other", 3), ("number", 2)]),
    ("writev(1, parts, 2)", [("other", 3), ("number", 4)], []),
    ("send(ends[0], text, 4, 0)", [("text", 4)], []),
    ("sendto(ends[0], text, 4, 0, 0, 0)", [("text", 4)], []),
    ("sendmsg(ends[0], &message, 0)", [("other", 3), ("number", 4)], []),
    ("recv(filled(), other, 16, 0)", [], [("other", 6)]),
    ("recv(filled(), other, 2, MSG_TRUNC)", [], [("other", 2)]),
    ("recvfrom(filled(), other, 16, 0, 0, 0)", [], [("other", 6)]),
    ("recvmsg(filled(), &message, 0)", [], [("other", 3), ("number", 3)]),
    ("fgets(other, 4, stdin)", [], [("other", 4)]),
    ("fgets_unlocked(other, 4, stdin)", [], [("other", 4)]),
    ("fread(other, 1, 9, stdin)", [], [("other", 5)]),
    ("fread_unlocked(other, 1, 9, stdin)", [], [("other", 5)]),
    ("fwrite(text, 3, 3, stdout)", [("text", 9)], []),
    ("fwrite_unlocked(text, 3, 3, stdout)", [("text", 9)], []),
    ("fputs_unlocked(text, stdout)", [("text", 6)], []),
    ("strtol(number, 0, 10)", [("number", 3)], []),
    ("strtoimax(number, &word, 10)", [("number", 3)], []),
    ("strtof(number, 0)", [("number", 3)], []),
    ("strtold(number, 0)", [("number", 3)], []),
    ('stat("/", (struct stat *)state)', [], [("state", STAT_BYTES)]),
    ('stat64("/", (struct stat64 *)state)', [], [("state", STAT_BYTES)]),
    ('lstat64("/", (struct stat64 *)state)', [], [("state", STAT_BYTES)]),
    ("fstat64(0, (struct stat64 *)state)", [], [("state", STAT_BYTES)]),
    ('fstatat(AT_FDCWD, "/", (struct stat *)state, 0)', [], [("state", STAT_BYTES)]),
    ('fstatat64(AT_FDCWD, "/", (struct stat64 *)state, 0)', [], [("state", STAT_BYTES)]),
    ('strcasecmp(text, "HELP")', [("text", 4)], []),
    ("strncasecmp(text, number, 9)", [("text", 1), ("number", 1)], []),
    ('strcoll(text, "help")', [("text", 6)], []),
    ("strxfrm(other, text, 4)", [("text", 6)], [("other", 4)]),
    ("rawmemchr(text, 'l')", [("text", 3)], []),
    ("strchrnul(text, 'x')", [("text", 6)], []),
    ("memrchr(text, 'x', 5)", [("text", 5)], []),
    ("memrchr(text, 'h', 5)", [("text", 5)], []),
    ("strspn(text, number)", [("text", 1), ("number", 3)], []),
    ('strcspn(text, "ol")', [("text", 3)], []),
    ('strpbrk(text, "ol")', [("text", 3)], []),
    ('strcasestr(text, "EL")', [("text", 3)], []),
    ("memmem(text, 5, number, 2)", [("number", 2), ("text", 5)], []),
    ("memccpy(other, text, 'l', 9)", [("text", 3)], [("other", 3)]),
    ("stpncpy(other, text, 3)", [("text", 3)], [("other", 3)]),
    ('strtok(text, " ")', [("text", 6)], []),
    ('strsep(&word, " l")', [("text", 3)], []),
    ("wcslen(wide)", [("wide", 12)], []),
    ("wcscpy(wide, wide)", [("wide", 12)], [("wide", 12)]),
    ("wmemset(wide, 0, 2)", [], [("wide", 8)]),
    ("wmemcmp(wide, wide, 2)", [("wide", 8), ("wide", 8)], []),
    ('printf("%-8.*s|%5ld|%Lf|%s", 3, text, 1l, 1.0L, number)', [("text", 3), ("number", 3)], []),
    ('printf("%ls %c %s%%%n", wide, 1, text, (int *)other)', [("wide", 12), ("text", 6)], [("other", 4)]),
    ('sprintf(other, "%g%s", 1.5, number)', [("number", 3)], [("other", 6)]),
    ('sscanf(number, "%hhd", other)', [("number", 3)], [("other", 1)]),
    ('sscanf("7 8.5 word", "%*d%lf %5[a-z]", other, text)', [], [("other", 8), ("text", 5)]),
    ('sscanf("7 x", "%d%d", (int *)text, (int *)other)', [], [("text", 4)]),
    ('sscanf("abc", "%2c %n", text, (int *)other)', [], [("text", 2), ("other", 4)]),
    ('sscanf("abc", "%2cd%n", text, (int *)other)', [], [("text", 2)]),
    ('sscanf("abcd", "%2cc%n%c", text, (int *)other, date)', [], [("text", 2), ("other", 4), ("date", 1)]),
    ("rand_r((unsigned *)other)", [("other", 4)], [("other", 4)]),
    ("ctime_r(&epoch, date)", [], [("date", 26)]),
    ('strftime(other, 16, "%Y", gmtime_r(&epoch, (struct tm *)date))', [("date", 56)], [("date", 56), ("other", 5)]),
    ('inet_pton(AF_INET, "127.0.0.1", other)', [], [("other", 4)]),
    ("mbrtowc(wide, text, 5, (mbstate_t *)date)", [("text", 1), ("date", 8)], [("wide", 4), ("date", 8)]),
    ("mbrtowc(wide, accents, 1, 0)", [("accents", 1)], []),  # not a whole character
    ("mbrtowc(wide, accents, 3, 0)", [("accents", 2)], [("wide", 4)]),
    ("mbtowc(wide, accents, 9)", [("accents", 2)], [("wide", 4)]),
    ("mblen(accents, 9)", [("accents", 2)], []),
    ("mbrlen(accents, 1, (mbstate_t *)date)", [("accents", 1), ("date", 8)], [("date", 8)]),
    ("wcrtomb(other, 0xe9, 0)", [], [("other", 2)]),
    ("wctomb(other, 0xe9)", [], [("other", 2)]),
    ("mbsinit((mbstate_t *)date)", [("date", 8)], []),
    ("mbstowcs(wide, accents, 4)", [("accents", 4)], [("wide", 12)]),
    ("mbstowcs(wide, accents, 1)", [("accents", 2)], [("wide", 4)]),
    ("mbstowcs(0, accents, 0)", [("accents", 4)], []),
    ("wcstombs(other, wide, 9)", [("wide", 12)], [("other", 3)]),
    ("wcstombs(other, wide, 1)", [("wide", 4)], [("other", 1)]),
    ("mbsrtowcs(wide, &from, 4, 0)", [("accents", 4)], [("wide", 12)]),
    ("mbsrtowcs(wide, &from, 1, 0)", [("accents", 2)], [("wide", 4)]),
    ("mbsnrtowcs(wide, &from, 2, 4, 0)", [("accents", 2)], [("wide", 4)]),
    ("wcsrtombs(other, &wide_from, 9, 0)", [("wide", 12)], [("other", 3)]),
    ("wcsnrtombs(other, &wide_from, 1, 9, 0)", [("wide", 4)], [("other", 1)]),
    ("waitpid(child(), (int *)other, 0)", [], [("other", 4)]),
    ("wait((child(), (int *)other))", [], [("other", 4)]),
    ("wait4(child(), (int *)other, 0, (struct rusage *)state)", [], [("other", 4), ("state", 144)]),
    ("waitid(P_PID, child(), (siginfo_t *)state, WEXITED)", [], [("state", 128)]),
    ("poll((struct pollfd *)other, 0, 0)", [], []),
    ("poll((struct pollfd *)other, 1, 0)", [("other", 6)], []),  # its answer stands six bytes further on
    (
        "select(3, readable((fd_set *)state), 0, 0, (struct timeval *)date)",
        [("state", 8), ("date", 16)],
        [("state", 8), ("date", 16)],
    ),
    ("pipe((int *)other)", [], [("other", 8)]),
    ("socketpair(AF_UNIX, SOCK_STREAM, 0, (int *)other)", [], [("other", 8)]),
    ("getsockname(ends[0], (struct sockaddr *)state, &length)", [], [("state", 2)]),
    ("getsockopt(ends[0], SOL_SOCKET, SO_TYPE, other, &length)", [], [("other", 4)]),
    ("recvfrom(filled(), other, 16, 0, (struct sockaddr *)state, &length)", [], [("other", 6)]),
    ("sigemptyset((sigset_t *)state)", [], [("state", 128)]),
    ("sigprocmask(SIG_BLOCK, 0, (sigset_t *)state)", [], [("state", 128)]),
    ("sigaction(SIGINT, 0, (struct sigaction *)state)", [], [("state", 152)]),
    ("getrlimit(RLIMIT_CORE, (struct rlimit *)state)", [], [("state", 16)]),
    ("fcntl(file(), F_GETLK, memset(date, 0, 32))", [("date", 32)], [("date", 32)]),
]


@pytest.fixture(scope="module")
def library_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    cases = "".join(f"case {k}: result = (long){call}; break;\n" for k, (call, _, _) in enumerate(LIBRARY_CALLS))
    return build(
        tmp_path_factory.mktemp("library"),
        r"""
        #define _GNU_SOURCE
        #include <arpa/inet.h>
        #include <fcntl.h>
        #include <inttypes.h>
        #include <locale.h>
        #include <poll.h>
        #include <signal.h>
        #include <stdio.h>
        #include <stdlib.h>
        #include <string.h>
        #include <sys/resource.h>
        #include <sys/select.h>
        #include <sys/socket.h>
        #include <sys/stat.h>
        #include <sys/uio.h>
        #include <sys/wait.h>
        #include <time.h>
        #include <unistd.h>
        #include <wchar.h>
        wchar_t wide[4] = L"hi";
        char date[64] __attribute__((aligned(8))), state[256] __attribute__((aligned(8))), *word;
        time_t epoch;
        char text[16] = "hello", other[16], number[16] = "42";
        int n = 12345, ends[2];
        char accents[8] = "\xc3\xa9!";
        const char *from = accents;
        const wchar_t *wide_from = wide;
        socklen_t length = 16;
        struct iovec parts[] = {{other, 3}, {number, 4}};
        struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
        int filled(void) { char bytes[] = "thread"; send(ends[1], bytes, 6, 0); return ends[0]; }
        pid_t child(void) { pid_t made = fork(); if (made == 0) _exit(3); return made; }
        fd_set *readable(fd_set *set) { FD_ZERO(set); FD_SET(1, set); return set; }
        int file(void) { FILE *made = tmpfile(); fprintf(made, "bytes"); fflush(made); return fileno(made); }
        int main(int argc, char **argv)
        {
            volatile long result;
            setlocale(LC_ALL, "C.UTF-8");
            dprintf(1, "%p %p %p %p %p %p %p\n", text, other, number, wide, date, state, accents);
            socketpair(AF_UNIX, SOCK_DGRAM, 0, ends);
            word = text;
            switch (atoi(argv[argc - 1])) { CASES }
            return (result = 0);
        }""".replace("CASES", cases),
        "-fno-builtin",
        "-Wno-everything",
    )


@pytest.mark.parametrize("number", range(len(LIBRARY_CALLS)), ids=[call for call, _, _ in LIBRARY_CALLS])
def test_library_functions_touch_exactly_what_they_say(tmp_path: Path, library_program: Path, number: int) -> None:
    _, loads, stores = LIBRARY_CALLS[number]
    run = record(tmp_path, library_program, str(number), stdin="abcde")
    names = ("text", "other", "number", "wide", "date", "state", "accents")
    places = dict(zip((int(word, 16) for word in run.stdout.split()[: len(names)]), names))
    seen: dict[str, list[tuple[str, int]]] = {"library_load": [], "library_store": []}
    for found in events(tmp_path / "trace.zst", *seen):
        if found.words[0] in places:
            seen[found.name].append((places[found.words[0]], found.words[1]))
    assert seen == {"library_load": loads, "library_store": stores}
