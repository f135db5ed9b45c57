/* Records one by one: what windows need that wait for a line of the source, or for a number of accesses.
 *
 * A thread that steps has a limit one word behind its position, so that it comes to its check behind each record: in a
 * window in its buffer, outside in a page of its own, which holds the last record. A window that opens at a line begins
 * with that record: it is moved into the thread's stream, behind the contexts as they were before it. */
#include "preload_record.h"

enum { SCRATCH = 4096, COPY = 4096 }; /* words */

/* What a path's record stands for. */
struct path {
    uint32_t accesses, bits; /* loads and stores; events of lines that run in it */
    uint32_t hits;           /* first of its rows of `hits`, if it has bits */
    uint16_t words, is_run;
};

/* A block of a path that has lines which are waited for; the last one of a path has no bits. */
struct hit {
    uint32_t counter, bits;
};

static struct image_steps {
    uintptr_t low;
    uint64_t span;
    struct path *paths;
    struct hit *hits;
    uint64_t *counters; /* how often each such block ran */
} images[TK_MAX_IMAGES];

static uint32_t used;     /* entries so far */
static uint64_t accesses; /* of the process, while anybody counts */

uint64_t tk_count_accesses(void)
{
    return __atomic_load_n(&accesses, __ATOMIC_SEQ_CST);
}

/* -- what is known of an image ---------------------------------------------------------------- */

const void *tk_table(const struct tk_unit *unit, enum tk_table id, uint64_t *count)
{
    const struct tk_unit_table *rows = (const struct tk_unit_table *)(unit + 1);
    for (uint32_t row = 0; row < unit->tables; row++)
        if (rows[row].id == id) {
            if (count)
                *count = rows[row].rows;
            return (const char *)unit + rows[row].offset;
        }
    if (count)
        *count = 0;
    return NULL;
}

/* The tables of a unit, and of each block its accesses and bits. */
struct blocks {
    const struct tk_unit *unit;
    const struct tk_row_functions *functions;
    const struct tk_row_paths *paths;
    const struct tk_row_path_blocks *path_blocks;
    const struct tk_row_locations *locations;
    const struct tk_row_sources *sources;
    const char *strings;
    uint64_t count;
    struct {
        uint32_t accesses, bits, counter;
    } *of;
};

static void *pages(uint64_t bytes)
{
    return tk_mmap(bytes ? bytes : 1, MAP_PRIVATE | MAP_ANONYMOUS, -1);
}

static uint32_t accesses_of(const struct tk_row_ops *op)
{
    switch (op->kind) {
    case TK_OP_LOAD:
    case TK_OP_STORE:
    case TK_OP_COPY_FROM:
    case TK_OP_COPY_TO:
    case TK_OP_SET:
        return 1;
    case TK_OP_ATOMIC:
        return 2;
    default:
        return 0;
    }
}

/* Whether the end of a path is `wanted`. By hand: the interposed string functions would record this. */
static int is_file(const char *path, const char *wanted)
{
    size_t length = 0, end = 0;
    while (path[end])
        end++;
    while (wanted[length])
        length++;
    if (length > end || (length < end && path[end - length - 1] != '/'))
        return 0;
    for (size_t at = 0; at < length; at++)
        if (path[end - length + at] != wanted[at])
            return 0;
    return 1;
}

/* The events whose line is at this location, or at the call that was inlined there. */
static uint32_t bits_at(const struct blocks *blocks, uint32_t location)
{
    uint32_t bits = 0;
    for (int depth = 0; location != TK_NONE && depth < 256; depth++) {
        const struct tk_row_locations *row = &blocks->locations[location];
        const struct tk_window_event *event;
        for (int bit = 0; bit < TK_WATCHES; bit++)
            if ((event = tk_watched_line(bit)) && row->line == event->line && row->source != TK_NONE &&
                is_file(blocks->strings + blocks->sources[row->source].path, event->name))
                bits |= 1u << bit;
        location = row->inlined_at;
    }
    return bits;
}

static void close_blocks(struct blocks *blocks)
{
    if (blocks->of)
        tk_munmap(blocks->of, blocks->count * sizeof *blocks->of);
    *blocks = (struct blocks){0};
}

/* 0: it cannot be known. */
static int open_blocks(struct blocks *blocks, const struct tk_unit *unit, uint32_t *counters)
{
    uint64_t lines;
    const struct tk_row_blocks *rows = tk_table(unit, TK_TABLE_blocks, &blocks->count);
    const struct tk_row_ops *ops = tk_table(unit, TK_TABLE_ops, NULL);
    const struct tk_row_lines *line = tk_table(unit, TK_TABLE_lines, &lines);
    blocks->functions = tk_table(unit, TK_TABLE_functions, NULL);
    blocks->paths = tk_table(unit, TK_TABLE_paths, NULL);
    blocks->path_blocks = tk_table(unit, TK_TABLE_path_blocks, NULL);
    blocks->locations = tk_table(unit, TK_TABLE_locations, NULL);
    blocks->sources = tk_table(unit, TK_TABLE_sources, NULL);
    blocks->strings = tk_table(unit, TK_TABLE_strings, NULL);
    blocks->of = pages(blocks->count * sizeof *blocks->of);
    if (!blocks->of)
        return 0;
    blocks->unit = unit;
    for (uint64_t block = 0; block < blocks->count; block++) {
        for (uint32_t op = 0; op < rows[block].ops; op++)
            blocks->of[block].accesses += accesses_of(&ops[rows[block].first_op + op]);
        blocks->of[block].bits = bits_at(blocks, rows[block].location);
    }
    for (uint64_t row = 0; row < lines; row++)
        blocks->of[line[row].block].bits |= bits_at(blocks, line[row].location);
    for (uint64_t block = 0; block < blocks->count; block++)
        if (blocks->of[block].bits)
            blocks->of[block].counter = (*counters)++;
    return 1;
}

/* Of a function's paths what their records stand for; how many hits they have, which are written if there is room. */
static uint32_t describe(const struct blocks *blocks, const struct tk_function *function, struct path *paths,
                         struct hit *hits, uint32_t first)
{
    const struct tk_row_functions *self = &blocks->functions[function->function];
    uint32_t count = first;
    for (uint32_t number = 0; number < function->paths && number < self->paths; number++) {
        const struct tk_row_paths *row = &blocks->paths[self->first_path + number];
        struct path *path = &paths[number];
        *path = (struct path){0, 0, count, (uint16_t)row->words, (row->flags & TK_PATH_RUN) != 0};
        for (uint32_t at = 0; at < row->blocks; at++) {
            uint32_t block = blocks->path_blocks[row->first + at].block, bits = blocks->of[block].bits;
            path->accesses += row->flags & TK_PATH_GROUND_TRUTH ? 0 : blocks->of[block].accesses;
            path->bits |= bits;
            if (bits && hits)
                hits[count] = (struct hit){blocks->of[block].counter, bits};
            count += bits != 0;
        }
        count += path->bits != 0; /* the end */
    }
    return count;
}

/* Twice: to count the hits, and to write them. */
static int describe_all(struct image_steps *steps, const struct tk_image *image, uint32_t *hits, uint32_t *counters)
{
    struct blocks blocks = {0};
    *hits = *counters = 0;
    for (const struct tk_function *function = image->functions; function < image->functions_end; function++) {
        if (blocks.unit != function->unit) {
            close_blocks(&blocks);
            if (!open_blocks(&blocks, function->unit, counters))
                return 0;
        }
        struct path *paths = steps->paths + ((uintptr_t)function->ids - steps->low);
        *hits = describe(&blocks, function, paths, steps->hits, *hits);
    }
    close_blocks(&blocks);
    return 1;
}

static int describe_image(struct image_steps *steps, const struct tk_image *image)
{
    uint32_t hits, counters;
    steps->paths = pages(steps->span * sizeof *steps->paths);
    if (!steps->paths || !describe_all(steps, image, &hits, &counters))
        return 0;
    if (!hits)
        return 1;
    steps->hits = pages(hits * sizeof *steps->hits);
    steps->counters = pages(counters * sizeof *steps->counters);
    return steps->hits && steps->counters && describe_all(steps, image, &hits, &counters);
}

/* An image is there: what its records stand for, if anybody asks. An image that goes leaves its entry: another one at
 * its place comes behind it. */
void tk_enter_steps(const struct tk_image *image)
{
    uintptr_t low = UINTPTR_MAX, high = 0;
    if (!tk_windows.may_step || used == TK_MAX_IMAGES)
        return;
    for (const struct tk_function *row = image->functions; row < image->functions_end; row++) {
        low = (uintptr_t)row->ids < low ? (uintptr_t)row->ids : low;
        high = (uintptr_t)row->ids + row->paths > high ? (uintptr_t)row->ids + row->paths : high;
    }
    struct image_steps steps = {low, high > low ? high - low : 0, NULL, NULL, NULL};
    if (!steps.span || !describe_image(&steps, image))
        return;
    images[used] = steps;
    __atomic_store_n(&used, used + 1, __ATOMIC_RELEASE);
}

static const struct path *find_path(uint64_t id, const struct image_steps **image)
{
    for (uint32_t number = __atomic_load_n(&used, __ATOMIC_ACQUIRE); number-- > 0;)
        if (id - images[number].low < images[number].span) {
            *image = &images[number];
            return &images[number].paths[id - images[number].low];
        }
    return NULL;
}

/* Whether a line that event `bit` waits for is in the function. */
int tk_has_line(const struct tk_function *function, int bit)
{
    const struct image_steps *image;
    const struct path *path = find_path((uintptr_t)function->ids, &image);
    for (uint32_t number = 0; path && number < function->paths; number++)
        if (path[number].bits >> bit & 1)
            return 1;
    return 0;
}

/* -- records ---------------------------------------------------------------------------------- */

/* Lines behind one that opens a window are told when the thread is in it. */
static int run_lines(struct tk_steps *steps, const struct image_steps *image, const struct path *path, uint64_t times)
{
    int changed = 0;
    for (const struct hit *hit = image->hits + path->hits; hit->bits; hit++) {
        uint64_t before = __atomic_fetch_add(&image->counters[hit->counter], times, __ATOMIC_SEQ_CST);
        for (uint32_t left = hit->bits; left; left &= left - 1) {
            uint32_t bit = left & -left;
            if (!(changed & 1))
                changed |= tk_line_ran(bit, before + 1, before + times);
            else if (steps->late < 4)
                steps->later[steps->late++] = (struct tk_lines_ran){bit, before + 1, before + times};
        }
    }
    return changed;
}

/* Whether windows open or close because of lines that ran at the beginning of this one. */
int tk_tell_later(void)
{
    struct tk_thread *thread = tk_current;
    int changed = 0;
    if (!thread || thread->depth > 0 || thread->crossing)
        return 0;
    for (int number = 0; number < thread->steps.late; number++) {
        const struct tk_lines_ran *ran = &thread->steps.later[number];
        changed |= tk_line_ran(ran->bits, ran->first, ran->last);
    }
    thread->steps.late = 0;
    if (changed)
        tk_settle_windows();
    return changed;
}

/* What stands between two places has happened. 1: a window opens at a line of it; 2: something else opens or closes. */
static int look(struct tk_steps *steps, const uint64_t *from, const uint64_t *to)
{
    uint64_t count = 0;
    int changed = 0;
    while (from < to) {
        const struct image_steps *image;
        const struct path *path = *from < TK_FIRST_PATH ? NULL : find_path(*from, &image);
        if (!path && *from >= TK_FIRST_PATH)
            break; /* nobody knows how long it is */
        uint64_t words = path ? path->words : TK_EVENT_WORDS[*from], times = path && path->is_run ? from[words] : 1;
        if (path)
            count += path->accesses * times;
        if (path && path->bits && times)
            changed |= run_lines(steps, image, path, times);
        from += 1 + words;
    }
    if (count && (tk_windows.steps & TK_COUNTING)) {
        __atomic_add_fetch(&accesses, count, __ATOMIC_SEQ_CST);
        changed |= tk_look_at_the_count() ? 2 : 0;
    }
    return changed;
}

/* -- stepping --------------------------------------------------------------------------------- */

/* The innermost activation, as it is before the next record. */
static void keep_top(struct tk_steps *steps)
{
    const struct tk_activation *top = __tk_activations;
    uint64_t *copy = (uint64_t *)steps->copy;
    steps->top = top;
    steps->is_kept = !top;
    if (!top || top->self != top)
        return;
    size_t words = sizeof *top / 8 + top->layout->registers + top->layout->loops + 2 * (size_t)top->layout->objects;
    if (words > COPY)
        return;
    for (size_t word = 0; word < words; word++)
        copy[word] = ((const uint64_t *)top)[word];
    steps->is_kept = 1;
}

/* At the end of a check: the thread comes back behind its next record, if records are of interest. */
void tk_set_step(void)
{
    struct tk_thread *thread = tk_current;
    if (!tk_windows.may_step || !tk_pool || !thread || thread->depth > 0 || thread->crossing)
        return;
    struct tk_steps *steps = &thread->steps;
    steps->is_on = steps->opens = 0;
    if (!__atomic_load_n(&tk_windows.steps, __ATOMIC_SEQ_CST))
        return;
    if (!steps->memory) {
        steps->memory = pages((SCRATCH + COPY) * sizeof(uint64_t));
        steps->copy = (struct tk_activation *)(steps->memory + SCRATCH);
    }
    if (!steps->memory || (!__tk_state.stream && !thread->held.stream))
        return;
    if (!__tk_state.stream)
        __tk_state = (struct tk_state){steps->memory, steps->memory + 1, NULL, NULL};
    else if (__tk_state.pos + 1 < __tk_state.limit)
        __tk_state.limit = __tk_state.pos + 1;
    steps->from = __tk_state.pos;
    steps->is_on = 1;
    keep_top(steps);
    tk_check_epoch();
}

/* At the beginning of a check. 1: there was nothing but a record to look at. */
int tk_step(void)
{
    struct tk_thread *thread = tk_current;
    if (!thread || !thread->steps.is_on || thread->depth > 0 || thread->crossing || !tk_pool)
        return 0;
    struct tk_steps *steps = &thread->steps;
    int changed = look(steps, steps->from, __tk_state.pos);
    steps->to = __tk_state.pos;
    steps->is_on = 0;
    steps->opens = !__tk_state.stream && (changed & 1) != 0;
    if (changed)
        tk_settle_windows();
    if (changed || !__tk_state.limit || (__tk_state.stream && tk_is_buffer_over()))
        return 0;
    if (__tk_state.stream)
        __tk_state.limit = __tk_state.pos + 2; /* there is room: the buffer is not over */
    tk_set_step();
    return 1;
}

/* The thread has gone into a window that its last records open: they are the first ones in it. */
void tk_move_step(struct tk_thread *thread)
{
    const struct tk_steps *steps = &thread->steps;
    for (const uint64_t *from = steps->from; from < steps->to;) {
        const struct image_steps *image;
        const struct path *path = find_path(*from, &image);
        if (!path)
            return;
        if (__tk_state.pos >= __tk_state.limit)
            tk_flip();
        if (!__tk_state.stream)
            return;
        uint64_t *pos = __tk_state.pos;
        for (uint32_t word = 1; word <= path->words; word++)
            pos[word] = from[word];
        __atomic_store_n(pos, *from, __ATOMIC_RELEASE);
        __tk_state.pos = pos + 1 + path->words;
        from += 1 + path->words;
    }
}

/* A function that somebody waits for leaves: its last record is not to be found at somebody else's check. */
void tk_end_steps(void)
{
    if (tk_current && tk_current->steps.is_on && __tk_state.pos >= __tk_state.limit)
        tk_flip();
}
