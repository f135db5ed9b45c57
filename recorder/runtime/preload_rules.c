/* Windows that open by themselves: at a time, again and again, or when something happens in the program (record
 * --window, --windows, --sample).
 *
 * Time is looked at where a thread takes a new buffer, and by the clock (preload_clock.c). What functions do is told by
 * code (tk_watched), or found in the records that it writes (preload_steps.c). */
#include "preload.h"

/* What is known of each rule of the pool. */
static struct {
    int open;
    uint64_t on, till; /* of each condition, what has happened: a bit for each event */
    uint64_t until;    /* nanoseconds since the start; 0: no time closes it */
    uint64_t from;     /* accesses when it opened */
    uint64_t next;     /* of a rule that opens every so many accesses: when it opens next */
    uint64_t happened[2][TK_EVENTS];
    const void *activation; /* of the call that opened it, and closes it; NULL: none does */
    struct tk_thread *thread;
} rules[TK_RULES];

/* The events of code: the bits of tk_activation_layout.watched. */
static struct watch {
    const struct tk_window_event *event;
    uint8_t rule, closes, index;
} watches[TK_WATCHES];
static int watch_count;

static int by_time; /* whether anything waits for a time */

static const struct tk_window_condition *condition_of(int number, int closes)
{
    const struct tk_window_rule *rule = &tk_pool->rule[number];
    return closes ? &rule->till : &rule->on;
}

/* Whether the rule opens at times that are known beforehand. */
static int is_by_time(const struct tk_window_rule *rule)
{
    return !rule->on.count && (rule->length || rule->from);
}

static int is_of_code(const struct tk_window_event *event)
{
    return event->kind == TK_HAPPENS_CALL || event->kind == TK_HAPPENS_RETURN || event->kind == TK_HAPPENS_LINE ||
           event->kind == TK_HAPPENS_INTO;
}

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
        open |= (uint32_t)__atomic_load_n(&rules[number].open, __ATOMIC_SEQ_CST) << number;
    return open;
}

/* -- opening and closing ---------------------------------------------------------------------- */

static int happen(int number, int closes, uint32_t index, const void *activation);

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
    const struct tk_window_condition *condition = condition_of(number, closes);
    uint64_t kept = for_good(condition);
    __atomic_and_fetch(closes ? &rules[number].till : &rules[number].on, kept, __ATOMIC_SEQ_CST);
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

static int open_rule(int number, const void *activation)
{
    const struct tk_window_rule *rule = &tk_pool->rule[number];
    int closed = 0;
    if (__atomic_load_n(&rules[number].open, __ATOMIC_SEQ_CST) || is_too_late(&rule->till))
        return 0;
    forget(number, 1);
    rules[number].activation = rule->length || rule->accesses || rule->till.count ? NULL : activation;
    rules[number].thread = tk_current;
    rules[number].until = rule->length ? tk_nanoseconds() - tk_windows.began + rule->length : 0;
    rules[number].from = tk_count_accesses();
    if (!__atomic_compare_exchange_n(&rules[number].open, &closed, 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        return 0;
    if (rule->length)
        tk_wake_clock();
    return 1;
}

/* It may be another window's end that this one's waits for. */
static int close_rule(int number)
{
    int open = 1;
    if (!__atomic_compare_exchange_n(&rules[number].open, &open, 0, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        return 0;
    if (tk_pool->rule[number].every_accesses)
        rules[number].next = rules[number].from + tk_pool->rule[number].every_accesses;
    forget(number, 0);
    for (int other = 0; other < TK_RULES; other++)
        for (int closes = 0; closes < 2; closes++)
            for (uint32_t index = 0; index < condition_of(other, closes)->count; index++) {
                const struct tk_window_event *event = &condition_of(other, closes)->event[index];
                if (event->kind == TK_HAPPENS_END && event->line == (uint32_t)number)
                    happen(other, closes, index, NULL);
            }
    return 1;
}

/* An event of a rule: whether the rule opens or closes with it. */
static int happen(int number, int closes, uint32_t index, const void *activation)
{
    const struct tk_window_condition *condition = condition_of(number, closes);
    int open = __atomic_load_n(&rules[number].open, __ATOMIC_SEQ_CST);
    if (open != closes && !is_for_good(&condition->event[index]))
        return 0;
    uint64_t seen =
        __atomic_or_fetch(closes ? &rules[number].till : &rules[number].on, (uint64_t)1 << index, __ATOMIC_SEQ_CST);
    if (open != closes || !is_whole(condition, seen))
        return 0;
    return closes ? close_rule(number) : open_rule(number, activation);
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
        for (uint32_t index = 0; index < condition_of(number, closes)->count; index++) {
            const struct tk_window_event *event = &condition_of(number, closes)->event[index];
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
        else if (__atomic_load_n(&rules[number].open, __ATOMIC_SEQ_CST) && rules[number].until &&
                 rules[number].until < when)
            when = rules[number].until;
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
        for (uint32_t index = 0; index < condition_of(number, closes)->count; index++) {
            const struct tk_window_event *event = &condition_of(number, closes)->event[index];
            uint64_t told = 0;
            if (event->kind == (uint32_t)kind && reached >= event->number &&
                __atomic_compare_exchange_n(&rules[number].happened[closes][index], &told, 1, 0, __ATOMIC_SEQ_CST,
                                            __ATOMIC_SEQ_CST)) {
                changed |= happen(number, closes, index, NULL);
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
        int open = __atomic_load_n(&rules[number].open, __ATOMIC_SEQ_CST);
        changed |= tell_reached(number, TK_HAPPENS_TIME, now);
        if (is_by_time(rule)) {
            if (is_time(rule, now) != open)
                changed |= open ? close_rule(number) : open_rule(number, NULL);
        } else if (open && rules[number].until && now >= rules[number].until) {
            changed |= close_rule(number);
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
        int open = __atomic_load_n(&rules[number].open, __ATOMIC_SEQ_CST);
        if (rule->every_accesses || ((open || !tk_windows.may_step) && rule->accesses))
            return 1;
        for (uint32_t index = 0; !open && index < rule->on.count; index++)
            if (rule->on.event[index].kind == TK_HAPPENS_ACCESSES && !rules[number].happened[0][index])
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
        int open = __atomic_load_n(&rules[number].open, __ATOMIC_SEQ_CST);
        if (rule->accesses && open && count - rules[number].from >= rule->accesses)
            changed |= close_rule(number);
        if (rule->every_accesses) {
            if (count >= rules[number].next)
                changed |= open_rule(number, NULL);
        } else {
            changed |= tell_reached(number, TK_HAPPENS_ACCESSES, count);
        }
    }
    return changed;
}

/* -- lines ------------------------------------------------------------------------------------ */

/* Whether a rule waits for a line now. */
int tk_awaits_lines(void)
{
    for (int bit = 0; bit < watch_count; bit++)
        if (watches[bit].event->kind == TK_HAPPENS_LINE &&
            __atomic_load_n(&rules[watches[bit].rule].open, __ATOMIC_SEQ_CST) == watches[bit].closes)
            return 1;
    return 0;
}

/* Whether any rule ever does. */
static int waits_for_lines(void)
{
    for (int bit = 0; bit < watch_count; bit++)
        if (watches[bit].event->kind == TK_HAPPENS_LINE)
            return 1;
    return 0;
}

const struct tk_window_event *tk_watched_line(int bit)
{
    int is_line = bit < watch_count && watches[bit].event->kind == TK_HAPPENS_LINE;
    return is_line ? watches[bit].event : NULL;
}

/* A line of `bits` has run, for the `first` to the `last` time; what opens or closes. */
int tk_line_ran(uint32_t bits, uint64_t first, uint64_t last)
{
    int changed = 0;
    for (int bit = 0; bit < watch_count; bit++) {
        const struct watch *watch = &watches[bit];
        uint64_t *told = &rules[watch->rule].happened[watch->closes][watch->index], before = 0;
        if (!(bits >> bit & 1) || watch->event->kind != TK_HAPPENS_LINE)
            continue;
        if (watch->event->number &&
            (watch->event->number < first || watch->event->number > last ||
             !__atomic_compare_exchange_n(told, &before, 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)))
            continue; /* each block of the line has a count of its own: the first to get there says so */
        changed |= happen(watch->rule, watch->closes, watch->index, NULL) << watch->closes;
    }
    return changed;
}

void tk_read_rules(void)
{
    for (int number = 0; number < TK_RULES; number++) {
        const struct tk_window_rule *rule = &tk_pool->rule[number];
        by_time |= rule->length != 0 || rule->from != 0;
        for (int closes = 0; closes < 2; closes++)
            for (uint32_t index = 0; index < condition_of(number, closes)->count; index++) {
                const struct tk_window_event *event = &condition_of(number, closes)->event[index];
                by_time |= event->kind == TK_HAPPENS_TIME;
                if (is_of_code(event) && watch_count < TK_WATCHES)
                    watches[watch_count++] = (struct watch){event, (uint8_t)number, (uint8_t)closes, (uint8_t)index};
            }
        if (rule->every_accesses)
            rules[number].next = rule->on.event[0].number;
    }
    tk_windows.may_step = tk_is_counting() || waits_for_lines();
    if (tk_look_at_the_count() || tk_windows.may_step)
        tk_settle_windows();
}

/* -- images and signals ----------------------------------------------------------------------- */

/* By hand: the interposed string functions would record this. libz.so is libz.so.1, too. */
static int is_image(const char *name, const char *wanted)
{
    while (*wanted && *name == *wanted)
        name++, wanted++;
    return !*wanted && (!*name || *name == '.');
}

static void tell(enum tk_happening kind, const char *name, uint32_t line)
{
    int changed = 0;
    for (int number = 0; number < TK_RULES; number++)
        for (int closes = 0; closes < 2; closes++)
            for (uint32_t index = 0; index < condition_of(number, closes)->count; index++) {
                const struct tk_window_event *event = &condition_of(number, closes)->event[index];
                if (event->kind == (uint32_t)kind && (name ? is_image(name, event->name) : event->line == line))
                    changed |= happen(number, closes, index, NULL);
            }
    if (changed)
        tk_settle_windows();
}

void tk_image_came(const char *name)
{
    tell(TK_HAPPENS_LOAD, name, 0);
}

void tk_image_goes(const char *name)
{
    tell(TK_HAPPENS_UNLOAD, name, 0);
}

void tk_signal_came(int signal)
{
    if (tk_windows.paused && tk_pool)
        tell(TK_HAPPENS_SIGNAL, NULL, (uint32_t)signal);
}

/* -- calls ------------------------------------------------------------------------------------ */

/* Of C++ without what stands in parentheses. */
static int is_name(const char *name, const char *wanted)
{
    while (*wanted && *name == *wanted)
        name++, wanted++;
    return !*wanted && (!*name || *name == '(');
}

static int is_called(const struct tk_function *function, const char *wanted)
{
    const struct tk_row_functions *rows = tk_table(function->unit, TK_TABLE_functions, NULL);
    const char *strings = tk_table(function->unit, TK_TABLE_strings, NULL);
    if (!rows || !strings)
        return 0;
    const struct tk_row_functions *row = &rows[function->function];
    return is_name(strings + row->name, wanted) || (row->source_name && is_name(strings + row->source_name, wanted));
}

static int is_watched(const struct tk_function *function, const char *image, const struct tk_window_event *event,
                      int bit)
{
    switch (event->kind) {
    case TK_HAPPENS_CALL:
    case TK_HAPPENS_RETURN:
        return is_called(function, event->name);
    case TK_HAPPENS_INTO:
        return is_image(image, event->name);
    default:
        return tk_has_line(function, bit);
    }
}

/* An image is there: mark the functions that rules name. A bit for each event. */
void tk_watch_layouts(const struct tk_image *image, const struct tk_code *code)
{
    if (!tk_windows.paused || !tk_pool)
        return;
    const char *name = tk_image_name(image);
    tk_enter_steps(image);
    for (const struct tk_function *function = image->functions; function < image->functions_end; function++)
        for (int bit = 0; bit < watch_count; bit++) {
            if (!is_watched(function, name, watches[bit].event, bit))
                continue;
            for (struct tk_activation_layout *layout = code->layouts; layout < code->layouts_end; layout++)
                if (layout->ids == function->ids)
                    layout->watched |= 1u << bit;
        }
    tk_image_came(name);
}

/* A window that was left by an exception or longjmp has ended when its thread calls again from further out on the
 * stack. */
static int is_stale(int number, const void *activation)
{
    return rules[number].open && rules[number].activation && rules[number].thread == tk_current &&
           (const char *)activation > (const char *)rules[number].activation;
}

/* The window is one call's: calls inside it are not looked at. */
static int enter(const struct watch *watch, const void *activation)
{
    uint64_t *calls = &rules[watch->rule].happened[watch->closes][watch->index];
    uint64_t call = __atomic_add_fetch(calls, 1, __ATOMIC_SEQ_CST);
    int changed = is_stale(watch->rule, activation) && close_rule(watch->rule);
    if (!watch->event->number || watch->event->number == call)
        changed |= happen(watch->rule, watch->closes, watch->index, activation);
    return changed;
}

static int leave(const struct watch *watch, const void *activation)
{
    int number = watch->rule, changed = 0;
    if (watch->event->kind == TK_HAPPENS_RETURN) {
        uint64_t *calls = &rules[number].happened[watch->closes][watch->index];
        uint64_t call = __atomic_add_fetch(calls, 1, __ATOMIC_SEQ_CST);
        if (!watch->event->number || watch->event->number == call)
            changed = happen(number, watch->closes, watch->index, NULL);
    }
    if (rules[number].open && rules[number].activation == activation && rules[number].thread == tk_current)
        changed |= close_rule(number);
    return changed;
}

void tk_watched(const struct tk_activation_layout *layout, const void *activation, int enters)
{
    int changed = 0;
    if (!tk_pool || !tk_windows.paused)
        return;
    if (!enters)
        tk_end_steps();
    else
        tk_mute(layout, activation, 1);
    for (int bit = 0; bit < watch_count; bit++) {
        const struct watch *watch = &watches[bit];
        if (!(layout->watched >> bit & 1) || watch->event->kind == TK_HAPPENS_LINE)
            continue;
        if (!enters)
            changed |= leave(watch, activation);
        else if (watch->event->kind != TK_HAPPENS_RETURN)
            changed |= enter(watch, activation);
    }
    if (changed)
        tk_settle_windows();
    if (!enters)
        tk_mute(layout, activation, 0);
}
