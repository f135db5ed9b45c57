/* What every file of the runtime asks of the compiler. */
#ifndef TRACEKIT_COMPILER_H
#define TRACEKIT_COMPILER_H

#define TK_EXPORT __attribute__((visibility("default")))
#define TK_INLINE static inline __attribute__((always_inline))
#define TK_LIKELY(x) __builtin_expect(!!(x), 1)
#define TK_UNLIKELY(x) __builtin_expect(!!(x), 0)

#endif
