/* Functions of the C library of which it is recorded what they read and write. */
#ifndef TRACEKIT_PRELOAD_LIBRARY_H
#define TRACEKIT_PRELOAD_LIBRARY_H

#define __NO_INLINE__ /* the C library's headers must not define what is interposed */
#include "preload_record.h"

#include <errno.h>
#include <string.h>

/* The bytes of a string that a function of at most `limit` bytes looks at: its NUL included. */
static inline size_t tk_span(const char *string, size_t limit)
{
    size_t length = TK_REAL(strnlen)(string, limit);
    return length < limit ? length + 1 : limit;
}

static inline void tk_string_load(const char *string)
{
    tk_library_load(string, tk_span(string, SIZE_MAX));
}

static inline void tk_string_store(const char *string)
{
    tk_library_store(string, tk_span(string, SIZE_MAX));
}

/* What the kernel puts where there is room for it (an address of a socket): of what does not fit only the beginning is
 * stored, and its whole length. */
static inline void tk_put(const void *to, unsigned room, const unsigned *bytes)
{
    tk_library_load(bytes, sizeof *bytes);
    if (to)
        tk_library_store(to, *bytes < room ? *bytes : room);
    tk_library_store(bytes, sizeof *bytes);
}

/* name(parameters) { call; if recorded, `accesses`; return }, with the real function's result as `result`. */
#define TK_WRAP(type, name, parameters, arguments, accesses) \
    TK_EXPORT type name parameters \
    { \
        type result = TK_REAL(name) arguments; \
        if (TK_IS_RECORDED()) { \
            int saved = errno; \
            accesses; \
            errno = saved; \
        } \
        return result; \
    }

/* For functions that change what they read: the loads are measured before the call. */
#define TK_WRAP_BEFORE(type, name, parameters, arguments, accesses) \
    TK_EXPORT type name parameters \
    { \
        if (TK_IS_RECORDED()) { \
            accesses; \
        } \
        return TK_REAL(name) arguments; \
    }

#endif
