/* What is recorded inside windows (record --only, --without): functions by name, file and image, and threads.
 *
 * A function that is left out runs its clean body, as code that was not instrumented. One that has none, or has to tell
 * of its calls, mutes its thread: from its entry to its return the stream waits in `held`, but for calls of functions
 * that are recorded. Those tell of their calls, too, as soon as there is a function that mutes. */
#include "preload.h"

enum { EXCLUDED = 1u << 31, UNMUTES = 1u << 30 }; /* bits of tk_activation_layout.watched */

static int by_code; /* whether functions are chosen */
static int mutes;   /* whether there is a function that mutes */

void tk_read_filter(void)
{
    for (uint32_t number = 0; number < tk_pool->filters && number < TK_FILTERS; number++)
        by_code |= tk_pool->filter[number].of != TK_FILTER_THREAD;
}

/* `*` is any text. By hand: the interposed string functions would record this. */
static int is_like(const char *text, const char *pattern)
{
    const char *star = NULL, *from = NULL;
    while (*text) {
        if (*pattern == '*') {
            star = pattern++;
            from = text;
        } else if (*pattern == *text) {
            pattern++;
            text++;
        } else if (star) {
            pattern = star + 1;
            text = ++from;
        } else {
            return 0;
        }
    }
    while (*pattern == '*')
        pattern++;
    return !*pattern;
}

/* A function's name, of C++ without its parameters, too. */
static int is_function_like(const char *name, const char *pattern)
{
    char plain[TK_NAME];
    size_t length = 0;
    if (is_like(name, pattern))
        return 1;
    for (; name[length] && name[length] != '(' && length < sizeof plain - 1; length++)
        plain[length] = name[length];
    plain[length] = 0;
    return name[length] == '(' && is_like(plain, pattern);
}

/* The whole path, or what stands behind one of its slashes. */
static int is_file_like(const char *path, const char *pattern)
{
    if (is_like(path, pattern))
        return 1;
    for (; *path; path++)
        if (*path == '/' && is_like(path + 1, pattern))
            return 1;
    return 0;
}

static int is_meant(const struct tk_function *function, const char *image, const struct tk_filter *filter)
{
    const struct tk_row_functions *rows = tk_table(function->unit, TK_TABLE_functions, NULL);
    const struct tk_row_locations *locations = tk_table(function->unit, TK_TABLE_locations, NULL);
    const struct tk_row_sources *sources = tk_table(function->unit, TK_TABLE_sources, NULL);
    const struct tk_row_unit *unit = tk_table(function->unit, TK_TABLE_unit, NULL);
    const char *strings = tk_table(function->unit, TK_TABLE_strings, NULL);
    const struct tk_row_functions *row = &rows[function->function];
    switch (filter->of) {
    case TK_FILTER_FUNCTION:
        return is_function_like(strings + row->name, filter->name) ||
               (row->source_name && is_function_like(strings + row->source_name, filter->name));
    case TK_FILTER_FILE:
        if (row->location != TK_NONE && locations[row->location].source != TK_NONE)
            return is_file_like(strings + sources[locations[row->location].source].path, filter->name);
        return is_file_like(strings + unit->source, filter->name);
    case TK_FILTER_LIBRARY:
        return is_like(image, filter->name);
    default:
        return 0;
    }
}

/* Of each kind of choice one has to be met, and none of those that leave out. */
static int is_recorded(const struct tk_function *function, const char *image)
{
    int asked = 0, met = 0;
    for (uint32_t number = 0; number < tk_pool->filters && number < TK_FILTERS; number++) {
        const struct tk_filter *filter = &tk_pool->filter[number];
        if (filter->of == TK_FILTER_THREAD)
            continue;
        int meant = is_meant(function, image, filter);
        if (filter->excludes && meant)
            return 0;
        if (!filter->excludes) {
            asked |= 1 << filter->of;
            met |= meant << filter->of;
        }
    }
    return asked == met;
}

int tk_is_recorded_thread(uint32_t thread)
{
    int asked = 0, met = 0;
    for (uint32_t number = 0; number < tk_pool->filters && number < TK_FILTERS; number++) {
        const struct tk_filter *filter = &tk_pool->filter[number];
        if (filter->of != TK_FILTER_THREAD)
            continue;
        if (filter->excludes && filter->number == thread)
            return 0;
        asked |= !filter->excludes;
        met |= !filter->excludes && filter->number == thread;
    }
    return asked == met;
}

/* -- functions -------------------------------------------------------------------------------- */

static int has_to_mute(const struct tk_activation_layout *layout)
{
    return (layout->watched & EXCLUDED) && (!layout->armed || (layout->watched & ~(EXCLUDED | UNMUTES)));
}

static void let_unmute(const struct tk_code *code)
{
    for (struct tk_activation_layout *layout = code->layouts; layout < code->layouts_end; layout++)
        layout->watched |= UNMUTES;
}

/* An image is there, and marked for rules. */
void tk_filter_layouts(const struct tk_image *image, const struct tk_code *code)
{
    if (!by_code)
        return;
    int muted_before = mutes;
    const char *name = tk_image_name(image);
    for (const struct tk_function *function = image->functions; function < image->functions_end; function++) {
        if (is_recorded(function, name))
            continue;
        for (struct tk_activation_layout *layout = code->layouts; layout < code->layouts_end; layout++)
            if (layout->ids == function->ids) {
                layout->watched |= EXCLUDED;
                mutes |= has_to_mute(layout);
            }
    }
    if (mutes)
        let_unmute(code);
    if (mutes && !muted_before)
        tk_each_code(let_unmute);
}

int tk_is_excluded(const struct tk_activation_layout *layout)
{
    return (layout->watched & EXCLUDED) != 0;
}

/* Whether its clean body has to go over into the instrumented one, a window being open or not. */
int tk_is_armed(const struct tk_activation_layout *layout, int open)
{
    return (layout->watched & ~(EXCLUDED | UNMUTES)) || (open && !tk_is_excluded(layout));
}

/* -- muting ----------------------------------------------------------------------------------- */

static void set_muted(struct tk_thread *thread, int muted)
{
    if (thread->mute.is_muted == muted)
        return;
    tk_end_steps();
    thread->steps.is_on = 0;
    thread->mute.is_muted = muted;
    if (muted && __tk_state.stream) {
        thread->held = __tk_state;
        tk_scratch();
    } else if (!muted && thread->window && thread->held.stream) {
        struct tk_state state = thread->held;
        thread->held = (struct tk_state){0};
        tk_resume(&state);
    } else {
        tk_check_epoch();
    }
    if (tk_windows.steps)
        __tk_state.limit = NULL;
}

/* Calls below this place on the stack are over. */
static void forget_calls(struct tk_thread *thread, const void *place)
{
    int muted = thread->mute.is_muted;
    while (thread->mute.depth > 0 && thread->mute.call[thread->mute.depth - 1].activation < (const char *)place)
        muted = thread->mute.call[--thread->mute.depth].was_muted;
    set_muted(thread, muted);
}

static void enter(struct tk_thread *thread, const void *activation, int muted)
{
    forget_calls(thread, (const char *)activation + 1);
    if (muted == thread->mute.is_muted || thread->mute.depth == TK_MUTES)
        return;
    thread->mute.call[thread->mute.depth].activation = activation;
    thread->mute.call[thread->mute.depth++].was_muted = !muted;
    set_muted(thread, muted);
}

/* A call of a function, or its return. */
void tk_mute(const struct tk_activation_layout *layout, const void *activation, int enters)
{
    struct tk_thread *thread = tk_current;
    if (!mutes || !thread || thread->depth > 0)
        return;
    if (enters)
        enter(thread, activation, tk_is_excluded(layout));
    else
        forget_calls(thread, (const char *)activation + 1);
}

/* Control is back at a place of the stack by unwinding. */
void tk_unmute_landing(const void *place)
{
    struct tk_thread *thread = tk_current;
    if (mutes && thread && thread->depth == 0)
        forget_calls(thread, place);
}
