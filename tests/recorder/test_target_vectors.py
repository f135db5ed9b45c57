"""Masked accesses of x86's intrinsics: what they compute is what clang makes of them, and each lane is an access."""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.recorder.instrumented import build_and_run, clang, compile_unit
from tracekit.formats.image import CallFlag, OpKind

SOURCE = r"""
#include <immintrin.h>
#include <stdio.h>
#include <string.h>
int table[64]; double doubles[64]; char out[32];
int four[4] = {3, 9, 27, 40}, more[8] = {1, 60, 5, 33, 7, 8, 2, 63}, flags[8] = {-1, 0, -1, -1, 0, 0, -1, 1};
long eight[4] = {6, 31, 50, 2};
static void show(__m256i v) { memcpy(out, &v, 32); for (int i = 0; i < 32; i++) printf("%d ", out[i]); puts(""); }
static void show_half(__m128i v) { show(_mm256_inserti128_si256(_mm256_setzero_si256(), v, 0)); }
__attribute__((noinline)) void f(void) {
    __m128i i4 = _mm_loadu_si128((void *)four), m4 = _mm_loadu_si128((void *)flags);
    __m256i i8 = _mm256_loadu_si256((void *)more), m8 = _mm256_loadu_si256((void *)flags);
    __m256i l4 = _mm256_loadu_si256((void *)eight);
    __m128i l2 = _mm_loadu_si128((void *)eight);
    show(_mm256_mask_i32gather_epi32(_mm256_set1_epi32(-9), table, i8, m8, 4));
    show_half(_mm_mask_i64gather_epi32(_mm_set1_epi32(5), table, l2, m4, 4));
    show_half(_mm256_mask_i64gather_epi32(_mm_set1_epi32(5), table, l4, m4, 4));
    show(_mm256_castpd_si256(_mm256_i32gather_pd(doubles, i4, 8)));
    show_half(_mm_castpd_si128(_mm_i32gather_pd(doubles, i4, 2)));
    _mm256_maskstore_pd(doubles + 1, m8, _mm256_maskload_pd(doubles + 40, m8));
#ifdef __AVX512VL__
    show(_mm256_mmask_i32gather_epi32(_mm256_set1_epi32(7), 0xA5, i8, table, 4));
    show_half(_mm_mmask_i64gather_epi32(_mm_set1_epi32(7), 2, l2, table, 4));
    _mm256_mask_i32scatter_epi32(table, 0x93, i8, _mm256_set1_epi32(77), 4);
    _mm256_mask_i64scatter_epi32(table, 6, l4, _mm_set1_epi32(88), 4);
    _mm512_mask_i32scatter_pd(doubles, 0x81, i8, _mm512_set1_pd(1.5), 8);
#endif
}
int main(void) {
    printf("%p %p\n", (void *)table, (void *)doubles);
    for (int i = 0; i < 64; i++) { table[i] = i * 1001; doubles[i] = i * 1.25; }
    f();
    for (int i = 0; i < 64; i++) printf("%d %g ", table[i], doubles[i]);
}
"""
TABLE, DOUBLES = 0, 1
FOUR, MORE, EIGHT = (3, 9, 27, 40), (1, 60, 5, 33, 7, 8, 2, 63), (6, 31, 50, 2)


Lanes = Counter[tuple[OpKind, int, int, int]]
"""Kind, array, offset, size."""


def lanes(kind: OpKind, base: int, scale: int, indices: Iterable[int], mask: int) -> Lanes:
    """Those whose bit is set."""
    size = 8 if base == DOUBLES else 4
    return Counter((kind, base, index * scale, size) for bit, index in enumerate(indices) if mask >> bit & 1)


AVX2 = (
    lanes(OpKind.LOAD, TABLE, 4, MORE, 0b01001101)
    + lanes(OpKind.LOAD, TABLE, 4, EIGHT[:2], 0b01)
    + lanes(OpKind.LOAD, TABLE, 4, EIGHT, 0b1101)
    + lanes(OpKind.LOAD, DOUBLES, 8, FOUR, 0b1111)
    + lanes(OpKind.LOAD, DOUBLES, 2, FOUR[:2], 0b11)
    # Four signs of 8 bytes: of (-1, 0), (-1, -1), (0, 0), (-1, 1), the upper half says.
    + lanes(OpKind.LOAD, DOUBLES, 8, range(40, 44), 0b0010)
    + lanes(OpKind.STORE, DOUBLES, 8, range(1, 5), 0b0010)
)
AVX512 = (
    AVX2
    + lanes(OpKind.LOAD, TABLE, 4, MORE, 0xA5)
    + lanes(OpKind.LOAD, TABLE, 4, EIGHT[:2], 2)
    + lanes(OpKind.STORE, TABLE, 4, MORE, 0x93)
    + lanes(OpKind.STORE, TABLE, 4, EIGHT, 6)
    + lanes(OpKind.STORE, DOUBLES, 8, MORE, 0x81)
)


@pytest.mark.parametrize("level", ["-O0", "-O2"])
@pytest.mark.parametrize(("feature", "wanted"), [("avx2", AVX2), ("avx512vl", AVX512)])
def test_lanes_of_gathers_and_scatters(feature: str, wanted: Lanes, level: str, tmp_path: Path) -> None:
    if feature not in Path("/proc/cpuinfo").read_text().split():
        pytest.skip(f"no {feature} here")
    flags = [f"-m{feature}", "-w", level]
    (tmp_path / "plain.c").write_text(SOURCE)
    clang([*flags, tmp_path / "plain.c", "-o", tmp_path / "plain"], instrument=False)
    plain = subprocess.run([tmp_path / "plain"], check=True, capture_output=True).stdout.decode()
    run = build_and_run(tmp_path, SOURCE, *flags)
    places, computed = run.output.split("\n", 1)
    assert computed == plain.split("\n", 1)[1]
    starts = [int(word, 16) for word in places.split()]
    seen = Counter(
        (a.kind, array, a.address - start, a.size)
        for a in run.accesses(OpKind.LOAD, OpKind.STORE)
        for array, start in enumerate(starts)
        if a.function == "f" and a.size and a.address in range(start, start + (512 if array else 256))
    )
    assert seen == wanted


@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_what_intrinsics_touch_unseen_is_no_pure_call(level: str, tmp_path: Path) -> None:
    """LLVM says that it touches what its argument points to, and nothing else; but nobody records what that is."""
    tables = compile_unit(tmp_path, "#include <immintrin.h>\nunsigned f(void) { return _mm_getcsr() & 64; }", level)
    assert [call["flags"] & (CallFlag.INLINE_ASM | CallFlag.PURE) for call in tables.calls_of("f")] == [
        CallFlag.INLINE_ASM
    ]
