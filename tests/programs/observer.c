// The independent observer of tests/programs/test_observer.py: counts what clang's own instrumentation
// (-fsanitize-coverage=func,trace-loads,trace-stores) calls, by return address, and writes "address kind size count" to
// the file that TRACEKIT_OBSERVER names. It is compiled without that option.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { SLOTS = 1 << 16 };

static struct {
    uintptr_t address;
    unsigned long count;
    char kind;
    int size;
} table[SLOTS];

static void count(void *return_address, char kind, int size)
{
    uintptr_t address = (uintptr_t)return_address;
    unsigned slot = (unsigned)(address * 0x9e3779b97f4a7c15u >> 48);
    while (table[slot].count && table[slot].address != address) slot = (slot + 1) % SLOTS;
    table[slot].address = address;
    table[slot].kind = kind;
    table[slot].size = size;
    table[slot].count++;
}

#define CALLBACKS(size) \
    void __sanitizer_cov_load##size(void *address) { (void)address; count(__builtin_return_address(0), 'L', size); } \
    void __sanitizer_cov_store##size(void *address) { (void)address; count(__builtin_return_address(0), 'S', size); }
CALLBACKS(1)
CALLBACKS(2)
CALLBACKS(4)
CALLBACKS(8)
CALLBACKS(16)

__attribute__((destructor(101))) static void report(void)
{
    const char *path = getenv("TRACEKIT_OBSERVER");
    FILE *file = path ? fopen(path, "w") : NULL;
    if (!file) return;
    for (int i = 0; i < SLOTS; i++)
        if (table[i].count)
            fprintf(file, "%lx %c %d %lu\n", (unsigned long)table[i].address, table[i].kind, table[i].size, table[i].count);
    fclose(file);
}
