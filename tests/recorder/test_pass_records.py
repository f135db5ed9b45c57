"""What blocks record: addresses and sizes against those that the program prints, in the order of execution."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.recorder.instrumented import Access, Run, build_and_run, compile_unit
from tests.recorder.stream_rules import check_stream
from tracekit.formats.image import BlockFlag, CallFlag, OpFlag, OpKind

MEMORY = (OpKind.LOAD, OpKind.STORE, OpKind.ATOMIC, OpKind.COPY_FROM, OpKind.COPY_TO, OpKind.SET)
LEVELS = pytest.mark.parametrize("level", ["-O0", "-O1", "-O2", "-O3"])


def within(run: Run, function: str) -> list[Access]:
    return [access for access in run.accesses(*MEMORY) if access.function == function]


def printed(run: Run) -> list[int]:
    return [int(word, 0) for word in run.output.split()]


@LEVELS
def test_addresses_and_sizes(level: str, tmp_path: Path) -> None:
    run = build_and_run(
        tmp_path,
        r"""
#include <stdio.h>
struct __attribute__((packed)) P { char c; long long l; short s; double d; };
struct P p[3]; char bytes[64]; int *volatile where;
__attribute__((noinline)) void touch(struct P *p, int *x) {
    p->c = 1; p->l = *x; p->s += 3; p->d = p->l * .5; bytes[p->s]++; }
int main(void) { int x = 7; where = &x; touch(p + 1, &x); printf("%p %p %p", (void *)(p + 1), (void *)&x, bytes); }
""",
        level,
    )
    p, x, array = printed(run)
    assert [
        (a.kind, a.address, a.size)
        for a in within(run, "touch")
        if a.address in range(p, p + 19) and a.kind is OpKind.STORE
    ] == [(OpKind.STORE, p, 1), (OpKind.STORE, p + 1, 8), (OpKind.STORE, p + 9, 2), (OpKind.STORE, p + 11, 8)]
    accesses = [(a.kind, a.address, a.size) for a in within(run, "touch")]
    assert (OpKind.LOAD, x, 4) in accesses
    assert accesses[-2:] == [(OpKind.LOAD, array + 3, 1), (OpKind.STORE, array + 3, 1)]
    assert run.globals["p"] == p - 19 and run.globals["bytes"] == array


@LEVELS
def test_bulk_operations(level: str, tmp_path: Path) -> None:
    run = build_and_run(
        tmp_path,
        r"""
#include <stdio.h>
#include <string.h>
char a[200], b[200];
__attribute__((noinline)) void fixed(void) { memcpy(a, b, 40); memmove(a + 1, a, 100); memset(b, 1, 77); }
__attribute__((noinline)) void varying(size_t n) { memcpy(a, b, n); memmove(a + 1, a, n + 1); memset(b, 1, n + 2); }
int main(void) { void *(*volatile keep)(void *, const void *, size_t) = memcpy;
    fixed(); varying(33); printf("%p %p", a, b); }
""",
        level,
        "-fno-builtin-memmove",
    )
    a, b = printed(run)
    expected = [
        (OpKind.COPY_FROM, b, 40),
        (OpKind.COPY_TO, a, 40),
        (OpKind.COPY_FROM, a, 100),
        (OpKind.COPY_TO, a + 1, 100),
        (OpKind.SET, b, 77),
    ]
    assert [(x.kind, x.address, x.size) for x in within(run, "varying")] == [
        (OpKind.COPY_FROM, b, 33),
        (OpKind.COPY_TO, a, 33),
        (OpKind.SET, b, 35),
    ]
    assert [(x.kind, x.address, x.size) for x in within(run, "fixed")] == expected[:2] + expected[4:]
    plain = build_and_run(tmp_path, (tmp_path / "program.c").read_text(), level)
    a, b = printed(plain)
    assert [(x.kind, x.size) for x in within(plain, "fixed")] == [(kind, size) for kind, _, size in expected]


@LEVELS
def test_library_copies_are_operations_and_pure_calls(level: str, tmp_path: Path) -> None:
    tables = compile_unit(
        tmp_path,
        r"""
#include <stddef.h>
void *mempcpy(void *, const void *, size_t); void *__memcpy_chk(void *, const void *, size_t, size_t);
void *f(char *a, char *b, size_t n) { mempcpy(a, b, n); return __memcpy_chk(a, b, n, 50); }
""",
        level,
        "-D_GNU_SOURCE",
    )
    ops = tables.of("f", "ops")
    copies = [op for op in ops if op["flags"] & OpFlag.LIBRARY]
    assert [op["kind"] for op in copies[:2]] == [OpKind.COPY_FROM, OpKind.COPY_TO]
    assert all(call["flags"] & CallFlag.PURE for call in tables.calls_of("f"))
    assert all(op["flags"] & OpFlag.DYNAMIC_SIZE for op in copies)


@LEVELS
def test_atomics(level: str, tmp_path: Path) -> None:
    run = build_and_run(
        tmp_path,
        r"""
#include <stdatomic.h>
#include <stdio.h>
_Atomic long v; _Atomic short w;
__attribute__((noinline)) int f(void) {
    v = 3; atomic_fetch_add(&v, 4); long expected = 7;
    int ok = atomic_compare_exchange_strong(&v, &expected, 9);
    atomic_exchange(&w, 5); return ok + atomic_load(&v) + w; }
int main(void) { printf("%p %p %d", (void *)&v, (void *)&w, f()); }
""",
        level,
    )
    v, w, result = printed(run)
    assert result == 15
    found = [(a.kind, a.address, a.size) for a in within(run, "f") if a.address in (v, w)]
    assert found == [
        (OpKind.STORE, v, 8),
        (OpKind.ATOMIC, v, 8),
        (OpKind.ATOMIC, v, 8),
        (OpKind.ATOMIC, w, 2),
        (OpKind.LOAD, v, 8),
        (OpKind.LOAD, w, 2),
    ]


@LEVELS
def test_variable_length_arrays_begin_and_end(level: str, tmp_path: Path) -> None:
    run = build_and_run(
        tmp_path,
        r"""
#include <stdio.h>
void use(int *p, int n) { for (int i = 0; i < n; i++) p[i] = i; printf("%p ", (void *)p); }
__attribute__((noinline)) void f(int n) { for (int k = 1; k <= n; k++) { int v[k * 5]; use(v, k * 5); } }
int main(void) { f(3); }
""",
        level,
    )
    addresses = printed(run)
    assert [(a.address, a.size) for a in run.accesses(OpKind.STACK_ALLOC) if a.function == "f"] == [
        (address, 20 * (k + 1)) for k, address in enumerate(addresses)
    ]
    assert [(a.address, a.size) for a in run.accesses(OpKind.STACK_FREE) if a.function == "f"] == [
        (address, 20 * (k + 1)) for k, address in enumerate(addresses)
    ]


@LEVELS
def test_masked_vector_accesses_lane_by_lane(level: str, tmp_path: Path) -> None:
    run = build_and_run(
        tmp_path,
        r"""
#include <stdio.h>
typedef int v4 __attribute__((vector_size(16))); typedef _Bool m4 __attribute__((ext_vector_type(4)));
#include <immintrin.h>
int from[8] = {1, 2, 3, 4, 5, 6, 7, 8}, to[8];
__attribute__((noinline, target("avx2"))) void f(int mask) {
    __m128i m = _mm_set_epi32(mask & 8 ? -1 : 0, mask & 4 ? -1 : 0, mask & 2 ? -1 : 0, mask & 1 ? -1 : 0);
    _mm_maskstore_epi32(to, m, _mm_maskload_epi32(from, m)); }
int main(int argc, char **argv) { if (__builtin_cpu_supports("avx2")) f(4 + argc);
    printf("%p %p %d %d %d", (void *)from, (void *)to, to[0], to[1], to[2]); }
""",
        level,
    )
    source, to, *values = printed(run)
    if values == [0, 0, 0]:
        pytest.skip("no AVX2 here")
    assert values == [1, 0, 3]
    seen = [(a.kind, a.address, a.size) for a in within(run, "f") if a.size and a.address in range(source, source + 16)]
    assert seen == [(OpKind.LOAD, source, 4), (OpKind.LOAD, source + 8, 4)]
    stored = [(a.kind, a.address, a.size) for a in within(run, "f") if a.size and a.address in range(to, to + 16)]
    assert stored == [(OpKind.STORE, to, 4), (OpKind.STORE, to + 8, 4)]


@LEVELS
def test_tail_calls_stay_tail_calls(level: str, tmp_path: Path) -> None:
    run = build_and_run(
        tmp_path,
        r"""
#include <stdio.h>
static int odd(int n, int *sum);
__attribute__((noinline)) static int even(int n, int *sum) {
    *sum += n; if (n == 0) return 1; __attribute__((musttail)) return odd(n - 1, sum); }
__attribute__((noinline)) static int odd(int n, int *sum) {
    *sum -= n; if (n == 0) return 0; __attribute__((musttail)) return even(n - 1, sum); }
int main(void) { int sum = 0; int r = even(20000, &sum); printf("%d %d", r, sum); }
""",
        level,
    )
    assert printed(run) == [1, 10000]
    check_stream(run.records)
    assert sum(bool(r.tables["blocks"][r.block]["flags"] & BlockFlag.TAIL_CALL) for r in run.records) == 20000


def test_scalable_and_segment_memory_do_not_crash(tmp_path: Path) -> None:
    tables = compile_unit(tmp_path, "int f(int __seg_fs *p, int *q) { return *p + *q; }", "-O1")
    assert [op["kind"] for op in tables.of("f", "ops")] == [OpKind.LOAD]  # a segment offset is no address


@LEVELS
def test_inline_assembly_does_not_end_a_block(level: str, tmp_path: Path) -> None:
    tables = compile_unit(
        tmp_path,
        """
int f(int *p, int x) {
    __asm__ volatile("" ::: "memory");
    __asm__("incl %0" : "+m"(*p));
    __asm__ goto("testl %0, %0; jz %l1" :: "r"(x) : "cc" : zero);
    return 1;
zero: return 0; }
""",
        level,
    )
    calls = tables.calls_of("f")
    assert [call["flags"] & (CallFlag.INLINE_ASM | CallFlag.PURE) for call in calls] == [
        CallFlag.INLINE_ASM | CallFlag.PURE,
        CallFlag.INLINE_ASM,
    ]
    assert all(block["call"] == 0xFFFF_FFFF for block in tables.of("f", "blocks"))


@LEVELS
def test_arguments_by_value_are_read_by_the_call_and_live_in_the_callee(level: str, tmp_path: Path) -> None:
    run = build_and_run(
        tmp_path,
        r"""
#include <stdio.h>
struct Big { long a[9]; }; struct Big big = {{1, 2, 3}};
__attribute__((noinline)) long f(struct Big b) { printf("%p ", (void *)&b); b.a[1]++; return b.a[1]; }
int main(void) { long r = f(big); printf("%ld %p", r, (void *)&big); }
""",
        level,
    )
    copy, result, _ = printed(run)
    assert result == 3
    assert (copy, 72) in [(a.address, a.size) for a in run.accesses(OpKind.STACK_ALLOC) if a.function == "f"]
    assert any(a.size == 72 and a.kind is OpKind.LOAD for a in within(run, "main"))


def test_a_long_block_is_cut(tmp_path: Path) -> None:
    body = "".join(f"a[{k}] = n + a[{k + 1}];" for k in range(700))
    tables = compile_unit(tmp_path, f"volatile long a[1000]; void f(long n) {{ {body} }}", "-O1")
    words = [tables["paths"][path]["words"] for path in range(len(tables["paths"]))]
    assert sum(words) == 1400 and max(words) <= 500
