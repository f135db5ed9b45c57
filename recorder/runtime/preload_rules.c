/* Windows that open by themselves: at a time, again and again, or at calls of a function (record --window, --sample).
 *
 * Time is looked at where a thread takes a new buffer, and by the clock (preload_clock.c). */
#include "preload.h"

/* What is known of each rule of the pool. */
static struct {
    int open;
    uint64_t calls;         /* so far */
    uint64_t until;         /* nanoseconds since the start; 0: until the call returns */
    const void *activation; /* of the call that opened it */
    struct tk_thread *thread;
} rules[TK_RULES];

static int by_time, by_call; /* whether there are such rules */

void tk_read_rules(void)
{
    for (int number = 0; number < TK_RULES; number++) {
        const struct tk_window_rule *rule = &tk_pool->rule[number];
        by_call |= rule->name[0] != 0;
        by_time |= rule->length != 0 || rule->from != 0;
    }
}

int tk_is_a_rule_open(void)
{
    for (int number = 0; number < TK_RULES; number++)
        if (__atomic_load_n(&rules[number].open, __ATOMIC_SEQ_CST))
            return 1;
    return 0;
}

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

uint64_t tk_next_change(void)
{
    uint64_t now = tk_nanoseconds() - tk_windows.began, next = UINT64_MAX;
    for (int number = 0; number < TK_RULES; number++) {
        const struct tk_window_rule *rule = &tk_pool->rule[number];
        uint64_t when = UINT64_MAX;
        if (!rule->name[0] && (rule->length || rule->from))
            when = next_of(rule, now);
        else if (rule->name[0] && __atomic_load_n(&rules[number].open, __ATOMIC_SEQ_CST))
            when = rules[number].until ? rules[number].until : UINT64_MAX;
        next = when < next ? when : next;
    }
    return next;
}

/* Whether calls open windows that end after a time. */
int tk_has_lengths(void)
{
    return by_call && by_time;
}

void tk_look_at_the_clock(void)
{
    int changed = 0;
    if (!by_time)
        return;
    uint64_t now = tk_nanoseconds() - tk_windows.began;
    for (int number = 0; number < TK_RULES; number++) {
        const struct tk_window_rule *rule = &tk_pool->rule[number];
        int open = __atomic_load_n(&rules[number].open, __ATOMIC_SEQ_CST), wanted = open;
        if (!rule->name[0])
            wanted = (rule->length || rule->from) && is_time(rule, now);
        else if (open && rules[number].until && now >= rules[number].until)
            wanted = 0;
        if (wanted != open)
            changed |=
                __atomic_compare_exchange_n(&rules[number].open, &open, wanted, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    }
    if (changed)
        tk_settle_windows();
}

/* -- calls ------------------------------------------------------------------------------------ */

static const void *table_of(const struct tk_unit *unit, enum tk_table id)
{
    const struct tk_unit_table *rows = (const struct tk_unit_table *)(unit + 1);
    for (uint32_t row = 0; row < unit->tables; row++)
        if (rows[row].id == id)
            return (const char *)unit + rows[row].offset;
    return NULL;
}

/* By hand: the interposed string functions would record this. Of C++ without what stands in parentheses. */
static int is_name(const char *name, const char *wanted)
{
    while (*wanted && *name == *wanted)
        name++, wanted++;
    return !*wanted && (!*name || *name == '(');
}

static int is_called(const struct tk_function *function, const char *wanted)
{
    const struct tk_row_functions *rows = table_of(function->unit, TK_TABLE_functions);
    const char *strings = table_of(function->unit, TK_TABLE_strings);
    if (!rows || !strings)
        return 0;
    const struct tk_row_functions *row = &rows[function->function];
    return is_name(strings + row->name, wanted) || (row->source_name && is_name(strings + row->source_name, wanted));
}

/* An image is there: mark the functions that rules name. A bit for each rule. */
void tk_watch_layouts(const struct tk_image *image, const struct tk_code *code)
{
    if (!tk_windows.paused || !tk_pool || !by_call)
        return;
    for (const struct tk_function *function = image->functions; function < image->functions_end; function++)
        for (uint32_t number = 0; number < TK_RULES; number++) {
            const char *wanted = tk_pool->rule[number].name;
            if (!wanted[0] || !is_called(function, wanted))
                continue;
            for (struct tk_activation_layout *layout = code->layouts; layout < code->layouts_end; layout++)
                if (layout->ids == function->ids)
                    layout->watched |= 1u << number;
        }
}

/* The window is one call's: calls inside it are not looked at. One that was left by an exception or longjmp has ended
 * when its thread calls again from further out on the stack. */
static int enter(int number, const void *activation)
{
    const struct tk_window_rule *rule = &tk_pool->rule[number];
    uint64_t call = __atomic_add_fetch(&rules[number].calls, 1, __ATOMIC_SEQ_CST);
    int closed = 0, stale = rules[number].open && !rules[number].until && rules[number].thread == tk_current &&
                            (const char *)activation > (const char *)rules[number].activation;
    if (stale)
        __atomic_store_n(&rules[number].open, 0, __ATOMIC_SEQ_CST);
    if ((rule->call && rule->call != call) ||
        !__atomic_compare_exchange_n(&rules[number].open, &closed, 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        return stale;
    rules[number].activation = activation;
    rules[number].thread = tk_current;
    rules[number].until = rule->length ? tk_nanoseconds() - tk_windows.began + rule->length : 0;
    if (rule->length)
        tk_wake_clock();
    return 1;
}

static int leave(int number, const void *activation)
{
    if (!rules[number].open || rules[number].until || rules[number].activation != activation ||
        rules[number].thread != tk_current)
        return 0;
    __atomic_store_n(&rules[number].open, 0, __ATOMIC_SEQ_CST);
    return 1;
}

void tk_watched(const struct tk_activation_layout *layout, const void *activation, int enters)
{
    int changed = 0;
    if (!tk_pool || !tk_windows.paused)
        return;
    for (int number = 0; number < TK_RULES; number++)
        if (layout->watched >> number & 1)
            changed |= enters ? enter(number, activation) : leave(number, activation);
    if (changed)
        tk_settle_windows();
}
