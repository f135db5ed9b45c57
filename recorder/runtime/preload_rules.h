/* What the files share that make windows open by themselves: preload_rules.c, preload_times.c, preload_watches.c. */
#ifndef TRACEKIT_PRELOAD_RULES_H
#define TRACEKIT_PRELOAD_RULES_H

#include "preload.h"

/* What is known of a rule of the pool. */
struct tk_rule {
    int open;
    uint64_t on, till; /* of each condition, what has happened: a bit for each event */
    uint64_t until;    /* nanoseconds since the start; 0: no time closes it */
    uint64_t from;     /* accesses when it opened */
    uint64_t next;     /* of a rule that opens every so many accesses: when it opens next */
    uint64_t happened[2][TK_EVENTS];
    const void *activation; /* of the call that opened it, and closes it; NULL: none does */
    struct tk_thread *thread;
};

/* preload_rules.c */
extern struct tk_rule tk_rules[TK_RULES];
int tk_open_rule(int number, const void *activation);
int tk_close_rule(int number);
int tk_happen(int number, int closes, uint32_t index, const void *activation);

/* preload_times.c */
void tk_read_times(void);

/* preload_watches.c */
void tk_read_watches(void);
int tk_may_await_lines(void);

/* What opens the rule or, with `closes`, closes it. */
static inline const struct tk_window_condition *tk_condition_of(int number, int closes)
{
    const struct tk_window_rule *rule = &tk_pool->rule[number];
    return closes ? &rule->till : &rule->on;
}

static inline int tk_is_open(int number)
{
    return __atomic_load_n(&tk_rules[number].open, __ATOMIC_SEQ_CST);
}

#endif
