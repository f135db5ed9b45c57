/* A function whose calls are recorded with arguments and results: what the pass, the shims of `record --intercept`
 * (recorder/intercept.py) and the preloaded library agree on. */
#ifndef TRACEKIT_PROBE_H
#define TRACEKIT_PROBE_H

#include <stdint.h>

#define TK_MOST_ARGUMENTS 16

struct tk_probe {
    const char *text; /* its prototype: "compress(dest: out bytes[size], size: inout u64, ...) -> i32" */
    uint32_t arguments;
    uint32_t number; /* 0: it has not been called so far; TK_NO_PROBE: its prototype means nothing */
};

#define TK_NO_PROBE 0xffffffffu

/* At its entry, and before it returns with `result`. Arguments and results are 64 bits, of which the type says what
 * counts. */
void __tk_call(struct tk_probe *probe, int leaves, uint64_t result, const uint64_t *arguments);

#endif
