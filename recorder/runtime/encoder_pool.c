/* The collector's side of the pool's header. The program may have written anything there: each value is read once, and
 * believed if it can be so. */
#define _GNU_SOURCE
#include "encoder.h"

#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LOOKED_THROUGH (64u << 20)   /* bytes of free buffers that are looked through at the end */
#define FIRST_ALLOCATED (1u << 20)   /* bytes of buffers that are allocated before the program has filled any */
#define ALLOCATED_AT_ONCE (4u << 20) /* and at most in one step, a few milliseconds long */
#define PAGE 4096u
#define PAGES_AT_ONCE 64u

/* What Python reads of the pool's header. */
struct tk_pool_status {
    uint32_t mode, owner, images, images_lost, streams, buffers;
    uint64_t waited, waits, unrecorded, forked;
};

#define READ(field) __atomic_load_n(&(field), __ATOMIC_RELAXED)

static void futex(uint32_t *word, int operation, uint32_t value)
{
    syscall(SYS_futex, word, operation, value, NULL, NULL, 0);
}

/* Bytes of a pool with buffers of that many words; the buffers beyond the first few cost nothing until threads
 * need them. */
TK_EXPORT uint64_t tk_pool_bytes(uint32_t buffer_words, uint64_t area_bytes)
{
    return tk_layout_of(NULL, buffer_words, area_bytes).bytes;
}

/* Lay out a zeroed mapping of tk_pool_bytes; `area_bytes` is a multiple of the page size. NULL without memory. */
TK_EXPORT struct tk_view *tk_pool_format(void *memory, uint32_t buffer_words, uint32_t buffers, uint64_t area_bytes)
{
    struct tk_view *view = calloc(1, sizeof *view);
    if (!view)
        return NULL;
    view->at = tk_layout_of(memory, buffer_words, area_bytes);
    view->buffers = buffers;
    struct tk_pool *pool = view->at.pool;
    struct tk_exchange *exchange = view->at.exchange;
    pool->bytes = view->at.bytes;
    pool->area_bytes = area_bytes;
    pool->buffer_words = buffer_words;
    pool->buffers = exchange->buffers = buffers;
    exchange->streams = 1;
    for (uint32_t number = 0; number < TK_MAX_BUFFERS; number++)
        exchange->buffer[number].stream = TK_NO_STREAM;
    pool->magic = TK_POOL_MAGIC;
    return view;
}

TK_EXPORT void tk_pool_free(struct tk_view *view)
{
    free(view);
}

/* Before the program has claimed it. */
TK_EXPORT void tk_pool_set_windows(struct tk_view *view, int windows)
{
    view->at.pool->windows = windows != 0;
}

/* Rule `number` of those by which windows open by themselves; 0 if there is no place for it. */
TK_EXPORT int tk_pool_set_rule(struct tk_view *view, uint32_t number, uint64_t from, uint64_t length, uint64_t every,
                               uint64_t accesses, uint64_t every_accesses)
{
    if (number >= TK_RULES)
        return 0;
    view->at.pool->rule[number] = (struct tk_window_rule){
        .from = from, .length = length, .every = every, .accesses = accesses, .every_accesses = every_accesses};
    return 1;
}

/* One more event that opens the window of a rule, or closes it; 0 if there is no place for it. `enough`: as in struct
 * tk_window_condition, the same for all events of one. */
TK_EXPORT int tk_pool_add_event(struct tk_view *view, uint32_t number, int closes, uint32_t enough, uint32_t kind,
                                const char *name, uint64_t which, uint32_t line)
{
    if (number >= TK_RULES || strlen(name) >= TK_NAME)
        return 0;
    struct tk_window_rule *rule = &view->at.pool->rule[number];
    struct tk_window_condition *condition = closes ? &rule->till : &rule->on;
    if (condition->count >= TK_EVENTS)
        return 0;
    struct tk_window_event *event = &condition->event[condition->count++];
    *event = (struct tk_window_event){.kind = kind, .line = line, .number = which};
    strcpy(event->name, name);
    condition->enough = enough;
    return 1;
}

/* One more choice of what is recorded, in windows of a rule or in all (TK_RULES); 0 if there is no place for it. */
TK_EXPORT int tk_pool_add_filter(struct tk_view *view, uint32_t rule, uint32_t of, int excludes, uint64_t number,
                                 const char *name)
{
    struct tk_pool *pool = view->at.pool;
    if (pool->filters >= TK_FILTERS || strlen(name) >= TK_NAME || rule > TK_RULES)
        return 0;
    struct tk_filter *filter = &pool->filter[pool->filters++];
    *filter = (struct tk_filter){.of = of, .excludes = excludes != 0, .rule = rule, .number = number};
    strcpy(filter->name, name);
    return 1;
}

/* Allocate the memory of a few more buffers, so that the program need not, when the program has come so far that it may
 * need them: it takes the first free one, so most of them are never used. Called in the collector, without a lock. */
void tk_allocate_ahead(struct tk_view *view, uint32_t used)
{
    const uint64_t bytes = view->at.buffer_words * sizeof(uint64_t), least = FIRST_ALLOCATED / bytes;
    const uint32_t buffers = READ(view->buffers);
    uint32_t allocated = READ(view->allocated);
    if (allocated >= buffers || 2 * used < allocated)
        return;
    uint64_t more = allocated < ALLOCATED_AT_ONCE / bytes ? allocated : ALLOCATED_AT_ONCE / bytes;
    more = more > least ? more : least;
    more = more > 1 ? more : 1;
    more = more < buffers - allocated ? more : buffers - allocated;
    if (!__atomic_compare_exchange_n(&view->allocated, &allocated, allocated + (uint32_t)more, 0, __ATOMIC_RELAXED,
                                     __ATOMIC_RELAXED))
        return; /* another worker does */
#ifdef MADV_POPULATE_WRITE
    madvise((char *)view->at.words + allocated * bytes, more * bytes, MADV_POPULATE_WRITE);
#endif
}

/* Called in the collector. */
TK_EXPORT void tk_pool_adopt(struct tk_view *view)
{
    __atomic_store_n(&view->at.pool->collector, (uint32_t)getpid(), __ATOMIC_SEQ_CST);
    tk_allocate_ahead(view, 0);
}

static void wake_both(struct tk_exchange *exchange)
{
    __atomic_fetch_add(&exchange->filled, 1, __ATOMIC_SEQ_CST);
    __atomic_fetch_add(&exchange->freed, 1, __ATOMIC_SEQ_CST);
    futex(&exchange->filled, FUTEX_WAKE, INT32_MAX);
    futex(&exchange->freed, FUTEX_WAKE, INT32_MAX);
}

/* The workers of this process may encode what the program's threads own. `gone`: it is certain that none runs. */
TK_EXPORT void tk_pool_exited(struct tk_view *view, int gone)
{
    __atomic_store_n(&view->exited, gone ? TK_GONE : TK_ENDED, __ATOMIC_SEQ_CST);
    wake_both(view->at.exchange);
}

/* Nobody will encode any more: the program goes on in scratch memory. */
TK_EXPORT void tk_pool_discard(struct tk_view *view)
{
    __atomic_store_n(&view->discarded, 1, __ATOMIC_SEQ_CST);
    __atomic_store_n(&view->at.pool->mode, TK_DISCARD, __ATOMIC_SEQ_CST);
    wake_both(view->at.exchange);
}

TK_EXPORT void tk_pool_status(struct tk_view *view, struct tk_pool_status *status)
{
    const struct tk_pool *pool = view->at.pool;
    const struct tk_exchange *exchange = view->at.exchange;
    tk_see_images(view);
    tk_see_buffers(view);
    *status = (struct tk_pool_status){READ(pool->mode),        READ(pool->owner),       READ(view->images),
                                      READ(pool->images_lost), READ(exchange->streams), READ(view->buffers),
                                      READ(exchange->waited),  READ(exchange->waits),   READ(exchange->unrecorded),
                                      READ(exchange->forked)};
}

/* The exit status as the program said it, -1 if it did not. */
TK_EXPORT int tk_pool_exit_status(const struct tk_view *view)
{
    uint32_t status = READ(view->at.exchange->status);
    return status >> 8 == 1 ? (int)(status & 255) : -1;
}

/* Offsets in the pool: of an image's registration, struct tk_pool_image; of the image area; of the table of buffers,
 * struct tk_buffer; of the first buffer. */
TK_EXPORT uint64_t tk_pool_image_offset(const struct tk_view *view, uint32_t number)
{
    return (uint64_t)((const char *)&view->at.pool->image[number] - (const char *)view->at.pool);
}

TK_EXPORT uint64_t tk_pool_area_offset(const struct tk_view *view)
{
    return view->at.area_offset;
}

TK_EXPORT uint64_t tk_pool_table_offset(const struct tk_view *view)
{
    return (uint64_t)((const char *)view->at.exchange->buffer - (const char *)view->at.pool);
}

TK_EXPORT uint64_t tk_pool_words_offset(const struct tk_view *view)
{
    return (uint64_t)((const char *)view->at.words - (const char *)view->at.pool);
}

/* -- what workers believe ---------------------------------------------------------------------------------------- */

/* Note that the program wrote what it should not. 0 if that is no surprise: one that is not waited for may still fill
 * what it owned. */
int tk_damage(struct tk_view *view)
{
    if (READ(view->exited) == TK_ENDED)
        return 0;
    __atomic_store_n(&view->damaged, 1, __ATOMIC_RELAXED);
    return 1;
}

/* Take over a number that only grows. 0 if it shrank, or is too great. */
static int take_over(struct tk_view *view, uint32_t *believed, uint32_t said, uint32_t most)
{
    uint32_t before = __atomic_load_n(believed, __ATOMIC_RELAXED);
    while (said > before && said <= most &&
           !__atomic_compare_exchange_n(believed, &before, said, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
    /* Another worker may have seen a later one. */
    return said <= most || (tk_damage(view), 0);
}

int tk_see_buffers(struct tk_view *view)
{
    return take_over(view, &view->buffers, __atomic_load_n(&view->at.exchange->buffers, __ATOMIC_ACQUIRE),
                     TK_MAX_BUFFERS);
}

int tk_see_images(struct tk_view *view)
{
    return take_over(view, &view->images, __atomic_load_n(&view->at.pool->images, __ATOMIC_ACQUIRE), TK_MAX_IMAGES);
}

static int can_be(const struct tk_view *view, const struct tk_filled *filled)
{
    uint32_t streams = READ(view->at.exchange->streams);
    streams = streams < TK_MOST_STREAMS ? streams : TK_MOST_STREAMS;
    return filled->stream < streams && filled->thread < streams && filled->kind <= TK_HANDLER &&
           filled->words <= view->at.buffer_words;
}

/* Whether a buffer can be encoded, and what it says of itself. What is full stays as it is until a worker frees it, so
 * one that is in a worker's hands is not looked at. The caller holds the encoder's lock. */
int tk_see_buffer(struct tk_view *view, uint32_t number, struct tk_filled *filled)
{
    struct tk_buffer *buffer = &view->at.exchange->buffer[number];
    if (view->in_hand[number])
        return 0;
    const uint32_t state = __atomic_load_n(&buffer->state, __ATOMIC_ACQUIRE);
    if (state > TK_FULL)
        tk_damage(view);
    if (state != TK_FULL && !(state == TK_OWNED && READ(view->exited)))
        return 0;
    *filled = (struct tk_filled){.buffer = buffer,
                                 .full = state == TK_FULL,
                                 .last = state == TK_FULL && READ(buffer->last),
                                 .stream = READ(buffer->stream),
                                 .thread = READ(buffer->thread),
                                 .kind = READ(buffer->kind),
                                 .epoch = READ(buffer->epoch),
                                 .sequence = READ(buffer->sequence),
                                 .words = READ(buffer->words)};
    if (!filled->full)
        filled->words = view->at.buffer_words;
    if (!filled->full && filled->stream == TK_NO_STREAM)
        return 0; /* it was taken at the moment the program died */
    return can_be(view, filled) || (tk_damage(view), 0);
}

static int is_zero(const uint64_t *words, uint64_t count)
{
    uint64_t seen = 0;
    for (uint64_t word = 0; word < count; word++)
        seen |= words[word];
    return seen == 0;
}

/* The same of whole pages. Those that have no memory are not touched, which would allocate it. */
static int are_pages_zero(uint64_t *words, uint64_t count)
{
    unsigned char resident[PAGES_AT_ONCE];
    const uint64_t page = PAGE / sizeof(uint64_t);
    for (uint64_t first = 0; first < count; first += PAGES_AT_ONCE * page) {
        const uint64_t left = (count - first) / page, pages = left < PAGES_AT_ONCE ? left : PAGES_AT_ONCE;
        const int is_known = sysconf(_SC_PAGESIZE) == PAGE && mincore(words + first, pages * PAGE, resident) == 0;
        for (uint64_t number = 0; number < pages; number++)
            if ((!is_known || resident[number] & 1) && !is_zero(words + first + number * page, page))
                return 0;
    }
    return 1;
}

static int is_unused(const struct tk_buffer *buffer)
{
    return buffer->stream == TK_NO_STREAM && buffer->words == 0 && buffer->last == 0 && is_zero(buffer->reserved, 3);
}

static int is_header_intact(const struct tk_view *view)
{
    const struct tk_pool *pool = view->at.pool;
    return pool->magic == TK_POOL_MAGIC && pool->bytes == view->at.bytes && pool->area_bytes == view->at.area_bytes &&
           pool->buffer_words == view->at.buffer_words && pool->images == view->images &&
           view->at.exchange->buffers == view->buffers;
}

/* Whether nothing is there that nobody should have written, once the program is gone and all is encoded: a buffer that
 * is no one's turn, something in one that is free. So wild stores are noticed that happened to hit no record. */
int tk_is_pristine(const struct tk_view *view)
{
    const uint64_t most = LOOKED_THROUGH / 8 / view->at.buffer_words;
    if (READ(view->exited) != TK_GONE || READ(view->at.pool->mode) == TK_DISCARD)
        return 1;
    for (uint32_t number = 0; number < TK_MAX_BUFFERS; number++) {
        const struct tk_buffer *buffer = &view->at.exchange->buffer[number];
        const int is_in_use = number < view->buffers && number < most;
        if (buffer->state == TK_OWNED && buffer->stream == TK_NO_STREAM)
            continue;
        if (buffer->state != TK_FREE || !is_unused(buffer) ||
            (is_in_use && !are_pages_zero(tk_buffer_words(&view->at, buffer), view->at.buffer_words)))
            return 0;
    }
    return is_header_intact(view);
}
