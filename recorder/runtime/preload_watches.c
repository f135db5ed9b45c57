/* Windows that open or close when something happens in the program: a function is called or returns, a line runs, a
 * library comes or goes, a signal comes. What functions do is told by code (tk_watched); lines are found in the records
 * that it writes (preload_steps.c). */
#include "preload_rules.h"

/* The events of code: the bits of tk_activation_layout.watched. */
static struct watch {
    const struct tk_window_event *event;
    uint8_t rule, closes, index;
} watches[TK_WATCHES];
static int watch_count;

static int is_of_code(const struct tk_window_event *event)
{
    return event->kind == TK_HAPPENS_CALL || event->kind == TK_HAPPENS_RETURN || event->kind == TK_HAPPENS_LINE ||
           event->kind == TK_HAPPENS_INTO;
}

void tk_read_watches(void)
{
    for (int number = 0; number < TK_RULES; number++)
        for (int closes = 0; closes < 2; closes++)
            for (uint32_t index = 0; index < tk_condition_of(number, closes)->count; index++) {
                const struct tk_window_event *event = &tk_condition_of(number, closes)->event[index];
                if (is_of_code(event) && watch_count < TK_WATCHES)
                    watches[watch_count++] = (struct watch){event, (uint8_t)number, (uint8_t)closes, (uint8_t)index};
            }
}

/* -- lines ------------------------------------------------------------------------------------ */

/* Whether a rule waits for a line now. */
int tk_awaits_lines(void)
{
    for (int bit = 0; bit < watch_count; bit++)
        if (watches[bit].event->kind == TK_HAPPENS_LINE &&
            __atomic_load_n(&tk_rules[watches[bit].rule].open, __ATOMIC_SEQ_CST) == watches[bit].closes)
            return 1;
    return 0;
}

/* Whether any rule ever does. */
int tk_may_await_lines(void)
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
        uint64_t *told = &tk_rules[watch->rule].happened[watch->closes][watch->index], before = 0;
        if (!(bits >> bit & 1) || watch->event->kind != TK_HAPPENS_LINE)
            continue;
        if (watch->event->number &&
            (watch->event->number < first || watch->event->number > last ||
             !__atomic_compare_exchange_n(told, &before, 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)))
            continue; /* each block of the line has a count of its own: the first to get there says so */
        changed |= tk_happen(watch->rule, watch->closes, watch->index, NULL) << watch->closes;
    }
    return changed;
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
            for (uint32_t index = 0; index < tk_condition_of(number, closes)->count; index++) {
                const struct tk_window_event *event = &tk_condition_of(number, closes)->event[index];
                if (event->kind == (uint32_t)kind && (name ? is_image(name, event->name) : event->line == line))
                    changed |= tk_happen(number, closes, index, NULL);
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
    return tk_rules[number].open && tk_rules[number].activation && tk_rules[number].thread == tk_current &&
           (const char *)activation > (const char *)tk_rules[number].activation;
}

/* The window is one call's: calls inside it are not looked at. */
static int enter(const struct watch *watch, const void *activation)
{
    uint64_t *calls = &tk_rules[watch->rule].happened[watch->closes][watch->index];
    uint64_t call = __atomic_add_fetch(calls, 1, __ATOMIC_SEQ_CST);
    int changed = is_stale(watch->rule, activation) && tk_close_rule(watch->rule);
    if (!watch->event->number || watch->event->number == call)
        changed |= tk_happen(watch->rule, watch->closes, watch->index, activation);
    return changed;
}

static int leave(const struct watch *watch, const void *activation)
{
    int number = watch->rule, changed = 0;
    if (watch->event->kind == TK_HAPPENS_RETURN) {
        uint64_t *calls = &tk_rules[number].happened[watch->closes][watch->index];
        uint64_t call = __atomic_add_fetch(calls, 1, __ATOMIC_SEQ_CST);
        if (!watch->event->number || watch->event->number == call)
            changed = tk_happen(number, watch->closes, watch->index, NULL);
    }
    if (tk_rules[number].open && tk_rules[number].activation == activation && tk_rules[number].thread == tk_current)
        changed |= tk_close_rule(number);
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
