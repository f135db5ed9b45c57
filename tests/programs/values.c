// Moves random bytes with the functions of values.ll and prints what arrived: "name from to size bytes".
// Only what memcpy and printf do happens here: the trace's loads and stores of values are those of values.ll.
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define TYPES(X) \
    X(i1, 1, 1) \
    X(i5, 1, 5) \
    X(i8, 1, 8) \
    X(i16, 2, 16) \
    X(i17, 3, 17) \
    X(i24, 3, 24) \
    X(i32, 4, 32) \
    X(i40, 5, 40) \
    X(i56, 7, 56) \
    X(i64, 8, 64) \
    X(i65, 9, 65) \
    X(i72, 9, 72) \
    X(i80, 10, 80) \
    X(i128, 16, 128) \
    X(i256, 32, 256) \
    X(i448, 56, 448) \
    X(i512, 64, 512) \
    X(half, 2, 16) \
    X(bfloat, 2, 16) \
    X(float, 4, 32) \
    X(double, 8, 64) \
    X(fp80, 10, 80) \
    X(fp128, 16, 128) \
    X(ptr, 8, 64) \
    X(v3float, 12, 96) \
    X(v4i1, 1, 4) \
    X(v9i1, 2, 9) \
    X(v3i24, 9, 72) \
    X(v3i8, 3, 24) \
    X(v2ptr, 16, 128) \
    X(v5i16, 10, 80) \
    X(v2double, 16, 128) \
    X(v16i32, 64, 512) \
    X(v17i32, 68, 544) \
    X(v64i8, 64, 512) \
    X(atomic, 8, 64) X(masked, 16, 128) X(packed, 6, 48) X(scattered, 16, 128)

#define DECLARE(name, bytes, bits) void move_##name(void *to, const void *from);
TYPES(DECLARE)

static uint64_t state = 88172645463325252u;

static unsigned random_byte(void)
{
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return (state >> 20) & 255;
}

static _Alignas(64) unsigned char from[128], to[128];

static void show(const char *name, int bytes)
{
    printf("%s %p %p %d ", name, (void *)from, (void *)to, bytes);
    for (int i = bytes; i-- > 0;) printf("%02x", to[i]);
    printf("\n");
}

#define MOVE(name, bytes, bits) \
    for (int round = 0; round < 3; round++) { \
        for (int i = 0; i < bytes; i++) from[i] = round == 1 ? 255 : random_byte(); \
        if (bits % 8) from[bytes - 1] &= (1 << bits % 8) - 1; \
        move_##name(to, from); \
        show(#name, bytes); \
    }

int main(void)
{
    TYPES(MOVE)
    // signalling and quiet NaNs with payloads, and what is no number of the format
    static const uint32_t floats[] = {0x7fa12345, 0xffc54321, 0x7f800001, 0x80000000, 1};
    for (int i = 0; i < 5; i++) memcpy(from, floats + i, 4), move_float(to, from), show("float", 4);
    static const uint64_t doubles[] = {0x7ff4000012345678, 0xfff8000087654321, 0x7ff0000000000001, 1};
    for (int i = 0; i < 4; i++) memcpy(from, doubles + i, 8), move_double(to, from), show("double", 8);
    static const uint64_t longs[][2] = {{0x8000000000000001, 0x7fff}, {0xa000000000000001, 0xffff}, {1, 0x3fff}, {0, 0x7fff}};
    for (int i = 0; i < 4; i++) memcpy(from, longs[i], 10), move_fp80(to, from), show("fp80", 10);
    return 0;
}
