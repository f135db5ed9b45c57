/* What is recorded inside windows (record --only, --without): functions by name, file and image, and threads.
 *
 * A function that is left out runs its clean body, as code that was not instrumented. One that has none, or has to tell
 * of its calls, mutes its thread: from its entry to its return the stream waits in `held`, but for calls of functions
 * that are recorded. Those tell of their calls, too, as soon as there is a function that mutes. */
#include "preload.h"

enum { EXCLUDED = 1u << 31, UNMUTES = 1u << 30 }; /* bits of tk_activation_layout.watched */

static int by_code; /* whether functions are chosen */
static int mutes;   /* whether there is a function that mutes */

/* In whose windows functions are left out: of each layout of an image a bit for each rule, where these differ. */
static struct choice {
    struct tk_activation_layout *layouts; /* NULL: it is free */
    uint32_t *left_out;
    size_t count;
} choices[TK_MAX_IMAGES];

static uint32_t choosing = ~(uint32_t)0; /* the rules whose windows are open; all of them if none is */
static uint32_t chosen;                  /* counts changes of that */

void tk_read_filter(void)
{
    for (uint32_t number = 0; number < tk_pool->filters && number < TK_FILTERS; number++) {
        by_code |= tk_pool->filter[number].of != TK_FILTER_THREAD;
        tk_windows.differ |= tk_pool->filter[number].rule != TK_RULES;
    }
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

/* Of each kind of choice one has to be met, and none of those that leave out. `rule`: of a rule's filters, or of those
 * of all windows (TK_RULES). */
static int is_recorded(const struct tk_function *function, const char *image, uint32_t rule)
{
    int asked = 0, met = 0;
    for (uint32_t number = 0; number < tk_pool->filters && number < TK_FILTERS; number++) {
        const struct tk_filter *filter = &tk_pool->filter[number];
        if (filter->of == TK_FILTER_THREAD || filter->rule != rule)
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

static int is_thread_of(uint32_t thread, uint32_t rule)
{
    int asked = 0, met = 0;
    for (uint32_t number = 0; number < tk_pool->filters && number < TK_FILTERS; number++) {
        const struct tk_filter *filter = &tk_pool->filter[number];
        if (filter->of != TK_FILTER_THREAD || filter->rule != rule)
            continue;
        if (filter->excludes && filter->number == thread)
            return 0;
        asked |= !filter->excludes;
        met |= !filter->excludes && filter->number == thread;
    }
    return asked == met;
}

/* Whether one of the windows that are open wants the thread. */
int tk_is_recorded_thread(uint32_t thread)
{
    uint32_t open = tk_windows.differ ? __atomic_load_n(&tk_windows.asking, __ATOMIC_SEQ_CST) : 0;
    if (!is_thread_of(thread, TK_RULES))
        return 0;
    for (uint32_t rule = 0; rule < TK_RULES; rule++)
        if ((open >> rule & 1) && is_thread_of(thread, rule))
            return 1;
    return !(open & ((1u << TK_RULES) - 1)) || (open >> TK_RULES & 1);
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

/* In whose windows the function is left out. */
static uint32_t left_out_of(const struct tk_function *function, const char *image)
{
    uint32_t rules = 0;
    if (!is_recorded(function, image, TK_RULES))
        return ~(uint32_t)0;
    for (uint32_t rule = 0; tk_windows.differ && rule < TK_RULES; rule++)
        rules |= (uint32_t)!is_recorded(function, image, rule) << rule;
    return rules;
}

/* A function is recorded that one of the windows wants that are open. */
static void exclude(struct tk_activation_layout *layout, uint32_t left_out)
{
    uint32_t watched = layout->watched & ~EXCLUDED;
    __atomic_store_n(&layout->watched, watched | (choosing & ~left_out ? 0 : EXCLUDED), __ATOMIC_SEQ_CST);
}

static struct choice *new_choice(const struct tk_code *code)
{
    size_t count = (size_t)(code->layouts_end - code->layouts), number = 0;
    tk_unfilter_layouts(code);
    while (number < TK_MAX_IMAGES && choices[number].layouts)
        number++;
    if (!tk_windows.differ || !count || number == TK_MAX_IMAGES)
        return NULL;
    uint32_t *left_out = tk_mmap(count * sizeof *left_out, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    if (!left_out)
        return NULL;
    choices[number] = (struct choice){code->layouts, left_out, count};
    return &choices[number];
}

/* The image goes, or is there anew. */
void tk_unfilter_layouts(const struct tk_code *code)
{
    for (struct choice *choice = choices; choice < choices + TK_MAX_IMAGES; choice++)
        if (choice->layouts && choice->layouts == code->layouts) {
            tk_munmap(choice->left_out, choice->count * sizeof *choice->left_out);
            *choice = (struct choice){0};
        }
}

/* An image is there, and marked for rules. */
void tk_filter_layouts(const struct tk_image *image, const struct tk_code *code)
{
    if (!by_code)
        return;
    int muted_before = mutes;
    const char *name = tk_image_name(image);
    struct choice *choice = new_choice(code);
    for (const struct tk_function *function = image->functions; function < image->functions_end; function++) {
        uint32_t left_out = left_out_of(function, name);
        if (!left_out)
            continue;
        for (struct tk_activation_layout *layout = code->layouts; layout < code->layouts_end; layout++)
            if (layout->ids == function->ids) {
                if (choice)
                    choice->left_out[layout - code->layouts] = left_out;
                exclude(layout, left_out);
                mutes |= tk_windows.differ || has_to_mute(layout);
            }
    }
    if (mutes)
        let_unmute(code);
    if (mutes && !muted_before)
        tk_each_code(let_unmute);
}

/* Windows are open that these ask for. The caller holds tk_lock. */
void tk_choose(uint32_t asking)
{
    choosing = asking ? asking : ~(uint32_t)0;
    for (struct choice *choice = choices; choice < choices + TK_MAX_IMAGES; choice++)
        for (size_t number = 0; choice->layouts && number < choice->count; number++)
            exclude(&choice->layouts[number], choice->left_out[number]);
    __atomic_add_fetch(&chosen, 1, __ATOMIC_SEQ_CST);
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
    thread->mute.entering = enters ? activation : NULL;
    thread->mute.entered = layout;
    if (enters)
        enter(thread, activation, tk_is_excluded(layout));
    else
        forget_calls(thread, (const char *)activation + 1);
}

/* Control is back at a place of the stack by unwinding. */
void tk_unmute_landing(const void *place)
{
    struct tk_thread *thread = tk_current;
    if (!mutes || !thread || thread->depth > 0)
        return;
    thread->mute.entering = NULL;
    forget_calls(thread, place);
}

/* The activations of a thread, the innermost first: one that is not in the list yet, and those that are. */
struct mute_walk {
    const struct tk_activation *at, *above;
    const struct tk_activation_layout *layout;
};

static void settle_at(struct mute_walk *walk, const struct tk_activation *at)
{
    walk->at = at > walk->above && at->self == at ? at : NULL;
    walk->layout = walk->at ? at->layout : NULL;
}

static struct mute_walk innermost(const struct tk_thread *thread, const void *here)
{
    struct mute_walk walk = {thread->mute.entering, here, thread->mute.entered};
    if (!walk.at || (__tk_activations && walk.at >= __tk_activations))
        settle_at(&walk, __tk_activations);
    return walk;
}

static void go_out(struct mute_walk *walk, const struct tk_thread *thread)
{
    const struct tk_activation *below =
        walk->at == thread->mute.entering && walk->at != __tk_activations ? __tk_activations : walk->at->below;
    walk->above = walk->at;
    settle_at(walk, below);
}

/* Fills in calls that change what is muted, the outermost first, or counts them only (`to` 0). */
static int list_mutes(struct tk_thread *thread, int to)
{
    int count = 0;
    for (struct mute_walk walk = innermost(thread, __builtin_frame_address(0)); walk.at;) {
        const struct tk_activation *at = walk.at;
        int excluded = tk_is_excluded(walk.layout);
        go_out(&walk, thread);
        if (excluded == (walk.layout ? tk_is_excluded(walk.layout) : 0))
            continue;
        if (count++ < to && to - count < TK_MUTES) {
            thread->mute.call[to - count].activation = (const char *)at;
            thread->mute.call[to - count].was_muted = !excluded;
        }
    }
    return count;
}

/* Whether other functions are recorded than when the thread looked last. */
int tk_is_behind(const struct tk_thread *thread)
{
    return mutes && thread->mute.chosen != __atomic_load_n(&chosen, __ATOMIC_SEQ_CST);
}

/* Other functions are recorded than before: where the thread's activations mute it, or let it be heard. One that is
 * left out now may run its instrumented body to its end. */
void tk_mute_anew(struct tk_thread *thread)
{
    if (!tk_is_behind(thread))
        return;
    thread->mute.chosen = __atomic_load_n(&chosen, __ATOMIC_SEQ_CST);
    int count = list_mutes(thread, 0), depth = count < TK_MUTES ? count : TK_MUTES;
    list_mutes(thread, count);
    thread->mute.depth = depth;
    set_muted(thread, depth ? !thread->mute.call[depth - 1].was_muted : 0);
}
