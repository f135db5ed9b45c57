/* Windows that open by themselves: at a time, again and again, or when something happens in the program (record
 * --window, --windows, --sample). Here a rule's conditions become so, and it opens and closes; what happens is found
 * out by preload_times.c and preload_watches.c. */
#include "preload_rules.h"

struct tk_rule tk_rules[TK_RULES];

/* What is so from a point in the run on, and not at a moment. */
static int is_for_good(const struct tk_window_event *event)
{
    return event->kind == TK_HAPPENS_TIME || event->kind == TK_HAPPENS_ACCESSES || event->kind == TK_HAPPENS_LOAD;
}

/* A bit for each. */
uint32_t tk_open_rules(void)
{
    uint32_t open = 0;
    for (int number = 0; number < TK_RULES; number++)
        open |= (uint32_t)tk_is_open(number) << number;
    return open;
}

/* -- opening and closing ---------------------------------------------------------------------- */

static int is_whole(const struct tk_window_condition *condition, uint64_t seen)
{
    return condition->enough >> seen & 1;
}

static int is_enough_alone(const struct tk_window_condition *condition, uint32_t index)
{
    return is_whole(condition, (uint64_t)1 << index);
}

/* The bits of what goes on being so, and is not enough by itself. */
static uint64_t for_good(const struct tk_window_condition *condition)
{
    uint64_t bits = 0;
    for (uint32_t index = 0; index < condition->count; index++)
        if (is_for_good(&condition->event[index]) && !is_enough_alone(condition, index))
            bits |= (uint64_t)1 << index;
    return bits;
}

static void forget(int number, int closes)
{
    const struct tk_window_condition *condition = tk_condition_of(number, closes);
    uint64_t kept = for_good(condition);
    __atomic_and_fetch(closes ? &tk_rules[number].till : &tk_rules[number].on, kept, __ATOMIC_SEQ_CST);
}

/* Whether a time that closes the window is over. */
static int is_too_late(const struct tk_window_condition *till)
{
    uint64_t now = tk_nanoseconds() - tk_windows.began;
    for (uint32_t index = 0; index < till->count; index++)
        if (is_enough_alone(till, index) && till->event[index].kind == TK_HAPPENS_TIME &&
            till->event[index].number <= now)
            return 1;
    return 0;
}

int tk_open_rule(int number, const void *activation)
{
    const struct tk_window_rule *rule = &tk_pool->rule[number];
    int closed = 0;
    if (tk_is_open(number) || is_too_late(&rule->till))
        return 0;
    forget(number, 1);
    tk_rules[number].activation = rule->length || rule->accesses || rule->till.count ? NULL : activation;
    tk_rules[number].thread = tk_current;
    tk_rules[number].until = rule->length ? tk_nanoseconds() - tk_windows.began + rule->length : 0;
    tk_rules[number].from = tk_count_accesses();
    if (!__atomic_compare_exchange_n(&tk_rules[number].open, &closed, 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        return 0;
    if (rule->length)
        tk_wake_clock();
    return 1;
}

/* It may be another window's end that this one's waits for. */
int tk_close_rule(int number)
{
    int open = 1;
    if (!__atomic_compare_exchange_n(&tk_rules[number].open, &open, 0, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        return 0;
    if (tk_pool->rule[number].every_accesses)
        tk_rules[number].next = tk_rules[number].from + tk_pool->rule[number].every_accesses;
    forget(number, 0);
    for (int other = 0; other < TK_RULES; other++)
        for (int closes = 0; closes < 2; closes++)
            for (uint32_t index = 0; index < tk_condition_of(other, closes)->count; index++) {
                const struct tk_window_event *event = &tk_condition_of(other, closes)->event[index];
                if (event->kind == TK_HAPPENS_END && event->line == (uint32_t)number)
                    tk_happen(other, closes, index, NULL);
            }
    return 1;
}

/* An event of a rule: whether the rule opens or closes with it. */
int tk_happen(int number, int closes, uint32_t index, const void *activation)
{
    const struct tk_window_condition *condition = tk_condition_of(number, closes);
    int open = tk_is_open(number);
    if (open != closes && !is_for_good(&condition->event[index]))
        return 0;
    uint64_t seen = __atomic_or_fetch(closes ? &tk_rules[number].till : &tk_rules[number].on, (uint64_t)1 << index,
                                      __ATOMIC_SEQ_CST);
    if (open != closes || !is_whole(condition, seen))
        return 0;
    return closes ? tk_close_rule(number) : tk_open_rule(number, activation);
}

/* -- the pool's rules ------------------------------------------------------------------------- */

void tk_read_rules(void)
{
    tk_read_times();
    tk_read_watches();
    tk_windows.may_step = tk_is_counting() || tk_may_await_lines();
    if (tk_look_at_the_count() || tk_windows.may_step)
        tk_settle_windows();
}
