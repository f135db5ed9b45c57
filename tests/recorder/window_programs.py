"""Programs that are recorded with windows."""

from __future__ import annotations

from pathlib import Path

from tests.recorder.recording import build, record

CALLS = r"""
#include <stdio.h>
#include <stdlib.h>
long table[64];
__attribute__((noinline)) long inner(long n)
{
    long sum = 0;
    for (long i = 0; i < n; i++) sum += table[i * 31 & 63];
    return sum;
}
__attribute__((noinline)) long parse(long n)
{
    long mine[4] = {n, n + 1, n + 2, n + 3}, sum = inner(n) + mine[n & 3];
    if (n > 5)
        sum += parse(n - 5);
    table[n & 63] += sum; /* HERE */
    char *volatile block = malloc(n); /* THERE */
    free(block);
    return sum + mine[1];
}
int main(void)
{
    long sum = 0;
    for (long k = 0; k < 9; k++) sum += inner(k) + parse(12 + k);
    printf("%ld\n", sum);
}
"""
"""Calls inside calls, loops, and stack and heap memory; a line that is HERE, and one that is THERE."""

FILTERED = r"""
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
long a[64], b[64], c[64];
static jmp_buf back;
__attribute__((noinline)) void leaf(long n) { for (long i = 0; i < n; i++) a[i & 63] += i; }
__attribute__((noinline)) void logger(int n, ...)
{
    va_list list;
    va_start(list, n);
    for (int i = 0; i < n; i++) { b[i & 63] += va_arg(list, int); leaf(2); }
    va_end(list);
}
__attribute__((noinline)) void jumper(int n) { leaf(1); if (n > 2) longjmp(back, 1); b[n] = n; }
__attribute__((noinline)) void middle(long n)
{
    for (long i = 0; i < n; i++) { c[i & 63]++; leaf(3); }
    logger(2, 1, 2);
}
__attribute__((noinline)) void catcher(int n) { if (setjmp(back) == 0) jumper(n); else leaf(2); c[n]++; }
static sem_t done;
__attribute__((noinline)) void work(void) { for (int i = 0; i < 5; i++) middle(4); }
static void *begin(void *x) { work(); sem_post(&done); return 0; }
int main(void)
{
    pthread_t thread;
    sem_init(&done, 0, 0);
    pthread_create(&thread, 0, begin, 0);
    while (sem_wait(&done)) {} // not pthread_join, before which `thread` is loaded while the other runs
    for (int i = 0; i < 6; i++) { middle(i); catcher(i); }
    printf("%ld %ld %ld\n", a[1], b[1], c[1]);
    pthread_join(thread, 0);
}
"""
"""Two threads, of which one waits while the other calls anything; functions with variable arguments, and one that
longjmp leaves."""


def filtered(folder: Path, level: str) -> Path:
    """The program FILTERED, of which the whole run is in whole.zst beside it. At -O0 functions have no clean bodies."""
    app = build(folder, FILTERED, level, "-g", "-pthread", "--windows")
    assert record(folder, app, options=("-o", "whole.zst")).returncode == 0
    return app
