/* A runtime of the simplest kind, for tests of the pass: one buffer, written to the file $TK_DUMP when the program
 * ends. The file: the rows of tk_functions (count, then {ids, unit, function, paths} as four u8 each), those of
 * tk_globals (count, then {address, unit, global}), the units (address, size, bytes; then an address 0), the words. */
#include "state.h"
#include "format.h"

#include <stdio.h>
#include <stdlib.h>

enum { WORDS = 1 << 24 };

__thread struct tk_state __tk_state;
static uint64_t buffer[WORDS];
static int in_use;

extern const struct tk_function __start_tk_functions[] __attribute__((weak)), __stop_tk_functions[] __attribute__((weak));
extern const struct tk_global __start_tk_globals[] __attribute__((weak)), __stop_tk_globals[] __attribute__((weak));

__attribute__((preserve_most)) void __tk_flip(void)
{
    if (__atomic_exchange_n(&in_use, 1, __ATOMIC_RELAXED)) {
        fputs("the test's buffer is too small, or the program has two threads\n", stderr);
        abort();
    }
    __tk_state.pos = buffer;
    __tk_state.limit = buffer + WORDS - TK_SLACK;
}

void __tk_landing(void *frame) { (void)frame; }

static void put(FILE *out, uint64_t value) { fwrite(&value, sizeof value, 1, out); }

static void put_unit(FILE *out, const struct tk_unit *unit)
{
    put(out, (uintptr_t)unit);
    put(out, unit->bytes);
    fwrite(unit, 1, unit->bytes, out);
}

__attribute__((destructor(101))) static void dump(void)
{
    const char *name = getenv("TK_DUMP");
    FILE *out = name ? fopen(name, "wb") : NULL;
    if (!out) return;
    put(out, __stop_tk_functions - __start_tk_functions);
    for (const struct tk_function *f = __start_tk_functions; f < __stop_tk_functions; f++) {
        put(out, (uintptr_t)f->ids);
        put(out, (uintptr_t)f->unit);
        put(out, f->function);
        put(out, f->paths);
    }
    put(out, __stop_tk_globals - __start_tk_globals);
    for (const struct tk_global *g = __start_tk_globals; g < __stop_tk_globals; g++) {
        put(out, (uintptr_t)g->address);
        put(out, (uintptr_t)g->unit);
        put(out, g->global);
    }
    for (const struct tk_function *f = __start_tk_functions; f < __stop_tk_functions; f++)
        if (f == __start_tk_functions || f->unit != f[-1].unit) put_unit(out, f->unit);
    put(out, 0);
    if (__tk_state.pos)
        for (uint64_t *word = buffer; word < __tk_state.pos; word++) put(out, *word);
    fclose(out);
}
