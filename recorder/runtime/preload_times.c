/* Windows that open or close at a time, or with a number of accesses. Time is looked at where a thread takes a new
 * buffer, and by the clock (preload_clock.c); accesses are counted at each record while a rule waits for a number
 * (preload_steps.c). */
#include "preload_rules.h"

static int by_time; /* whether anything waits for a time */

/* Whether the rule opens at times that are known beforehand. */
static int is_by_time(const struct tk_window_rule *rule)
{
    return !rule->on.count && (rule->length || rule->from);
}

/* -- time ------------------------------------------------------------------------------------- */

static int is_time(const struct tk_window_rule *rule, uint64_t now)
{
    if (now < rule->from)
        return 0;
    uint64_t since = now - rule->from;
    return !rule->length || (rule->every ? since % rule->every : since) < rule->length;
}

/* When a rule by time opens or closes next after `now`; UINT64_MAX: never. */
static uint64_t next_of(const struct tk_window_rule *rule, uint64_t now)
{
    if (now < rule->from)
        return rule->from;
    uint64_t since = now - rule->from, phase = rule->every ? since % rule->every : since;
    if (rule->length && phase < rule->length)
        return now - phase + rule->length;
    return rule->every ? now - phase + rule->every : UINT64_MAX;
}

/* When the next of the times comes that its conditions name. */
static uint64_t next_happening(int number, uint64_t now)
{
    uint64_t next = UINT64_MAX;
    for (int closes = 0; closes < 2; closes++)
        for (uint32_t index = 0; index < tk_condition_of(number, closes)->count; index++) {
            const struct tk_window_event *event = &tk_condition_of(number, closes)->event[index];
            if (event->kind == TK_HAPPENS_TIME && event->number > now && event->number < next)
                next = event->number;
        }
    return next;
}

uint64_t tk_next_change(void)
{
    uint64_t now = tk_nanoseconds() - tk_windows.began, next = UINT64_MAX;
    for (int number = 0; number < TK_RULES; number++) {
        const struct tk_window_rule *rule = &tk_pool->rule[number];
        uint64_t when = next_happening(number, now);
        if (is_by_time(rule))
            when = next_of(rule, now);
        else if (tk_is_open(number) && tk_rules[number].until && tk_rules[number].until < when)
            when = tk_rules[number].until;
        next = when < next ? when : next;
    }
    return next;
}

/* Whether windows that something opens end after a time. */
int tk_has_lengths(void)
{
    for (int number = 0; number < TK_RULES; number++)
        if (tk_pool->rule[number].on.count && tk_pool->rule[number].length)
            return 1;
    return 0;
}

/* Events that are so from a time or a number of accesses on, each told once. */
static int tell_reached(int number, enum tk_happening kind, uint64_t reached)
{
    int changed = 0;
    for (int closes = 0; closes < 2; closes++)
        for (uint32_t index = 0; index < tk_condition_of(number, closes)->count; index++) {
            const struct tk_window_event *event = &tk_condition_of(number, closes)->event[index];
            uint64_t told = 0;
            if (event->kind == (uint32_t)kind && reached >= event->number &&
                __atomic_compare_exchange_n(&tk_rules[number].happened[closes][index], &told, 1, 0, __ATOMIC_SEQ_CST,
                                            __ATOMIC_SEQ_CST)) {
                changed |= tk_happen(number, closes, index, NULL);
                changed |= kind == TK_HAPPENS_ACCESSES; /* nobody has to count any more */
            }
        }
    return changed;
}

void tk_look_at_the_clock(void)
{
    int changed = 0;
    if (!by_time)
        return;
    uint64_t now = tk_nanoseconds() - tk_windows.began;
    for (int number = 0; number < TK_RULES; number++) {
        const struct tk_window_rule *rule = &tk_pool->rule[number];
        int open = tk_is_open(number);
        changed |= tell_reached(number, TK_HAPPENS_TIME, now);
        if (is_by_time(rule)) {
            if (is_time(rule, now) != open)
                changed |= open ? tk_close_rule(number) : tk_open_rule(number, NULL);
        } else if (open && tk_rules[number].until && now >= tk_rules[number].until) {
            changed |= tk_close_rule(number);
        }
    }
    if (changed)
        tk_settle_windows();
}

/* -- accesses --------------------------------------------------------------------------------- */

/* Whether a rule waits for a number of accesses, or may later. */
int tk_is_counting(void)
{
    for (int number = 0; number < TK_RULES; number++) {
        const struct tk_window_rule *rule = &tk_pool->rule[number];
        int open = tk_is_open(number);
        if (rule->every_accesses || ((open || !tk_windows.may_step) && rule->accesses))
            return 1;
        for (uint32_t index = 0; !open && index < rule->on.count; index++)
            if (rule->on.event[index].kind == TK_HAPPENS_ACCESSES && !tk_rules[number].happened[0][index])
                return 1;
    }
    return 0;
}

/* There are more accesses than before; whether windows open or close. */
int tk_look_at_the_count(void)
{
    int changed = 0;
    uint64_t count = tk_count_accesses();
    for (int number = 0; number < TK_RULES; number++) {
        const struct tk_window_rule *rule = &tk_pool->rule[number];
        int open = tk_is_open(number);
        if (rule->accesses && open && count - tk_rules[number].from >= rule->accesses)
            changed |= tk_close_rule(number);
        if (rule->every_accesses) {
            if (count >= tk_rules[number].next)
                changed |= tk_open_rule(number, NULL);
        } else {
            changed |= tell_reached(number, TK_HAPPENS_ACCESSES, count);
        }
    }
    return changed;
}

/* -- the pool's rules ------------------------------------------------------------------------- */

void tk_read_times(void)
{
    for (int number = 0; number < TK_RULES; number++) {
        const struct tk_window_rule *rule = &tk_pool->rule[number];
        by_time |= rule->length != 0 || rule->from != 0;
        for (int closes = 0; closes < 2; closes++)
            for (uint32_t index = 0; index < tk_condition_of(number, closes)->count; index++)
                by_time |= tk_condition_of(number, closes)->event[index].kind == TK_HAPPENS_TIME;
        if (rule->every_accesses)
            tk_rules[number].next = rule->on.event[0].number;
    }
}
