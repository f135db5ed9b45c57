/* What workers do: take the program's full buffers, encode them, free them. Each worker fills one chunk at a time; a
 * chunk owns a range of its stream's buffers, so that the next chunk can be begun by another worker as soon as the
 * program has filled that range. A worker that finds no such buffer sleeps, so there are as many at work as it takes.
 */
#define _GNU_SOURCE
#include "encoder.h"

#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define STUCK_AFTER 200000000 /* nanoseconds without any buffer that is free or next */
#define POLLED_EVERY 1000000  /* nanoseconds between two looks for buffers of a program that makes no system calls */
#define SHARE_EVERY 8         /* buffers after which a worker looks whether there is work for another one */

enum tk_worked {
    TK_WORKED_NOTHING, /* time is up */
    TK_WORKED_CHUNK,   /* a chunk is whole */
    TK_WORKED_IMAGE,   /* an image was registered that tk_encoder_add has not been told of */
    TK_WORKED_ALL,     /* the program is gone, and everything that it wrote is in chunks that were taken */
    TK_WORKED_FAILED,  /* out of memory */
    TK_WORKED_DAMAGED, /* the program wrote into the pool what it should not */
};

struct tk_job {
    struct tk_encoder *encoder;
    struct tk_view *view;
    struct tk_chunk *chunk;
    struct tk_filled filled; /* its next buffer */
};

static uint64_t nanoseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void futex(uint32_t *word, int operation, uint32_t value, const struct timespec *timeout)
{
    syscall(SYS_futex, word, operation, value, timeout, NULL, 0);
}

static int has_exited(const struct tk_view *view)
{
    return __atomic_load_n(&view->exited, __ATOMIC_SEQ_CST) != 0;
}

static int is_damaged(const struct tk_view *view)
{
    return __atomic_load_n(&view->damaged, __ATOMIC_RELAXED) != 0;
}

static uint32_t buffers_of(const struct tk_view *view)
{
    return __atomic_load_n(&view->buffers, __ATOMIC_RELAXED);
}

static void wake_program(struct tk_encoder *encoder, const struct tk_view *view)
{
    struct tk_exchange *exchange = view->at.exchange;
    const uint32_t freed = __atomic_exchange_n(&encoder->unwoken, 0, __ATOMIC_RELAXED);
    if (freed && __atomic_load_n(&exchange->waiting, __ATOMIC_SEQ_CST))
        futex(&exchange->freed, FUTEX_WAKE, freed, NULL); /* a thread for each buffer: more would find none */
}

/* Zero a buffer and hand it back. A program that waits is woken when it can go on for a while: to change between it and
 * the workers for each buffer costs them all. */
static void free_buffer(struct tk_encoder *encoder, struct tk_view *view, const struct tk_filled *filled)
{
    struct tk_buffer *buffer = filled->buffer;
    uint64_t dirty = filled->words + TK_SLACK, all = view->at.buffer_words;
    memset(tk_buffer_words(&view->at, buffer), 0, (dirty < all ? dirty : all) * sizeof(uint64_t));
    __atomic_store_n(&buffer->stream, TK_NO_STREAM, __ATOMIC_RELAXED);
    __atomic_store_n(&buffer->words, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&buffer->last, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&buffer->state, TK_FREE, __ATOMIC_RELEASE);
    __atomic_fetch_add(&view->at.exchange->freed, 1, __ATOMIC_SEQ_CST);
    if (__atomic_add_fetch(&encoder->unwoken, 1, __ATOMIC_RELAXED) * 8 >= buffers_of(view))
        wake_program(encoder, view);
}

/* -- which buffer next; the caller holds the lock --------------------------------------------------------------- */

/* The chunk that owns the buffer if the buffer is the next one that it needs, and no worker has it; NULL otherwise. */
static struct tk_chunk *owner(const struct tk_stream_chunks *chunks, uint64_t sequence, int force)
{
    for (struct tk_chunk *chunk = chunks->open; chunk; chunk = chunk->link)
        if (sequence < chunk->end)
            return sequence == chunk->next && !chunk->busy && (force || !chunk->stalled) ? chunk : NULL;
    return NULL;
}

/* Buffers of a chunk: for each worker there are to be two chunks in the pool, the threads of the program share it too.
 */
static uint64_t chunk_buffers(const struct tk_encoder *encoder, const struct tk_view *view)
{
    uint64_t streams = __atomic_load_n(&view->at.exchange->streams, __ATOMIC_RELAXED), least = 1u << 18;
    streams = streams < 1 ? 1 : streams < 16 ? streams : 16;
    uint64_t share = encoder->limit / streams, items = share > least ? share : least;
    uint64_t pooled = (uint64_t)buffers_of(view) / (2 * encoder->workers), buffers;
    buffers = (items < encoder->limit ? items : encoder->limit) / view->at.buffer_words;
    buffers = buffers < pooled ? buffers : pooled;
    return buffers ? buffers : 1;
}

/* How far the chunks of a stream may run ahead of one that stands still, in chunks. */
static int is_far_ahead(const struct tk_encoder *encoder, const struct tk_stream_chunks *chunks, uint64_t length)
{
    return chunks->open && chunks->frontier - chunks->open->next >= 4 * length * encoder->workers;
}

/* Whether a buffer of the stream may have this number: not if it was encoded long ago, nor if more were to come before
 * it than the pool has, nor if the stream has become another thread's. */
static int can_come(const struct tk_stream_chunks *chunks, const struct tk_filled *filled)
{
    if (chunks->ordinals && (filled->thread != chunks->thread || filled->kind != chunks->kind))
        return 0;
    for (const struct tk_chunk *chunk = chunks->open; chunk; chunk = chunk->link)
        if (filled->sequence < chunk->end)
            return chunk->busy || filled->sequence >= chunk->next;
    return filled->sequence - chunks->frontier < TK_MAX_BUFFERS;
}

static struct tk_chunk *begin_chunk(struct tk_encoder *encoder, const struct tk_filled *filled,
                                    struct tk_stream_chunks *chunks, uint64_t length)
{
    struct tk_chunk *chunk = tk_chunk_begin(encoder, filled->stream, filled->thread, filled->kind);
    if (!chunk) {
        encoder->failed = 1;
        return NULL;
    }
    chunks->thread = filled->thread;
    chunks->kind = filled->kind;
    chunk->next = chunks->frontier;
    chunk->end = chunks->frontier += length;
    chunk->began = nanoseconds();
    return chunk;
}

/* End a chunk before its range is full; what is left of that begins the next one. False if that one has been begun
 * behind the range: it may be whole and gone, yet it is the one that follows. */
static int end_early(struct tk_stream_chunks *chunks, const struct tk_chunk *chunk)
{
    if (chunks->frontier != chunk->end)
        return 0;
    chunks->frontier = chunk->next;
    return 1;
}

/* The chunk that the buffer continues or begins; NULL if it is not its turn. */
static struct tk_chunk *chunk_for(struct tk_encoder *encoder, struct tk_view *view, const struct tk_filled *filled,
                                  int force)
{
    struct tk_stream_chunks *chunks = tk_stream_chunks(encoder, filled->stream);
    if (!chunks) {
        encoder->failed = 1;
        return NULL;
    }
    if (!can_come(chunks, filled)) {
        tk_damage(view);
        return NULL;
    }
    if (filled->sequence != chunks->frontier)
        return owner(chunks, filled->sequence, force);
    uint64_t length = chunk_buffers(encoder, view);
    return is_far_ahead(encoder, chunks, length) ? NULL : begin_chunk(encoder, filled, chunks, length);
}

/* Find a buffer that can be encoded, `job->chunk`'s next one if it is set: buffers are used in turn, so it is seldom
 * far from the last one. */
static int find_buffer(struct tk_job *job, int force)
{
    struct tk_encoder *encoder = job->encoder;
    struct tk_view *view = job->view;
    tk_see_buffers(view);
    const uint32_t buffers = buffers_of(view);
    const struct tk_buffer *table = view->at.exchange->buffer;
    uint32_t first = job->chunk ? (uint32_t)(job->filled.buffer - table) + 1 : encoder->cursor;
    for (uint32_t step = 0; step < buffers; step++) {
        struct tk_filled filled;
        const uint32_t number = (first + step) % buffers;
        if (!tk_see_buffer(view, number, &filled))
            continue;
        if (job->chunk ? filled.stream != job->chunk->stream || filled.sequence != job->chunk->next
                       : !(job->chunk = chunk_for(encoder, view, &filled, force)))
            continue;
        job->filled = filled;
        encoder->cursor = number;
        return 1;
    }
    return 0;
}

/* Whether another worker would find something to do. */
static int is_work_left(const struct tk_encoder *encoder, struct tk_view *view)
{
    const uint32_t buffers = buffers_of(view);
    for (uint32_t number = 0; number < buffers; number++) {
        struct tk_filled filled;
        if (!tk_see_buffer(view, number, &filled))
            continue;
        if (filled.stream >= encoder->stream_count || filled.sequence == encoder->streams[filled.stream].frontier ||
            owner(&encoder->streams[filled.stream], filled.sequence, 0))
            return 1;
    }
    return 0;
}

/* -- encoding; the caller does not hold the lock ------------------------------------------------------------------- */

static void note_unloads(struct tk_encoder *encoder, const struct tk_view *view)
{
    for (uint32_t index = 0; index < encoder->range_count; index++) {
        uint32_t unloaded = __atomic_load_n(&view->at.pool->image[index].unloaded, __ATOMIC_ACQUIRE);
        __atomic_store_n(&encoder->ranges[index].unloaded, unloaded, __ATOMIC_RELEASE);
    }
}

/* Whether an id that nobody knows may become known: it is an address, of an image that is still to be registered. */
static int can_be_explained(uint64_t raw)
{
    return raw >= 4096 && raw < 1ull << 56;
}

/* Count the words of a rest that no image explains. 0 if there should be none: then no program wrote it. */
static int drop_rest(const struct tk_job *job, const uint64_t *first)
{
    for (uint64_t left = job->chunk->resume; left < job->filled.words && first[left] != 0; left++)
        job->chunk->unknown++;
    return __atomic_load_n(&job->view->at.pool->images_lost, __ATOMIC_RELAXED) != 0;
}

static int is_image_new(const struct tk_job *job)
{
    return __atomic_load_n(&job->view->images, __ATOMIC_RELAXED) != job->encoder->images;
}

/* Encode what is left of the job's buffer. False if it stops at an id that nobody knows yet, or that cannot be; with
 * `force`, such a rest is dropped and counted, since records of unknown length cannot be passed over. */
static int encode_buffer(const struct tk_job *job, int force)
{
    struct tk_chunk *chunk = job->chunk;
    const uint64_t *first = tk_buffer_words(&job->view->at, job->filled.buffer), words = job->filled.words;
    int can_be = chunk->resume <= words;
    if (can_be)
        chunk->resume +=
            tk_encode_trimmed(job->encoder, chunk, first + chunk->resume, words - chunk->resume, job->filled.epoch);
    if (chunk->resume < words) {
        const uint64_t raw = __atomic_load_n(&first[chunk->resume], __ATOMIC_RELAXED);
        can_be = raw ? can_be_explained(raw) : !job->filled.full;
        if (raw && can_be && (!force || is_image_new(job)))
            return 0;
        can_be = can_be && (!raw || drop_rest(job, first));
    }
    if (!can_be && tk_damage(job->view))
        return 0;
    chunk->resume = 0;
    chunk->next++;
    free_buffer(job->encoder, job->view, &job->filled);
    return 1;
}

/* encode_buffer, called and left with the lock. */
static int encode_unlocked(const struct tk_job *job, int force)
{
    const uint32_t number = (uint32_t)(job->filled.buffer - job->view->at.exchange->buffer);
    uint8_t *in_hand = &job->view->in_hand[number];
    *in_hand = 1;
    pthread_mutex_unlock(&job->encoder->lock);
    if (2 * job->filled.words > job->view->at.buffer_words) /* else it is a short thread's, or an image came */
        tk_allocate_ahead(job->view, number + 1);
    int done = encode_buffer(job, force);
    pthread_mutex_lock(&job->encoder->lock);
    *in_hand = 0;
    return done;
}

/* Whether the stream ends with the buffer that has just been encoded: then nothing more is waited for, and the chunk's
 * memory serves the next thread. A program may say so of one that others follow: these begin a chunk of their own. */
static int is_over(const struct tk_job *job)
{
    const struct tk_chunk *chunk = job->chunk;
    return !chunk->stalled && job->filled.last && end_early(&job->encoder->streams[chunk->stream], chunk);
}

/* Encode the job's chunk until it is whole or the program has filled no more of it. Called and left with the lock. */
static enum tk_worked fill_chunk(struct tk_job *job, int force)
{
    struct tk_encoder *encoder = job->encoder;
    struct tk_chunk *chunk = job->chunk;
    enum tk_worked result = TK_WORKED_NOTHING;
    chunk->busy = 1;
    encoder->active++;
    do {
        tk_see_images(job->view);
        if (__atomic_load_n(&job->view->images, __ATOMIC_RELAXED) != encoder->images) {
            result = TK_WORKED_IMAGE;
            break;
        }
        note_unloads(encoder, job->view);
        if (encoder->waiting && chunk->next % SHARE_EVERY == 0 && is_work_left(encoder, job->view))
            pthread_cond_signal(&encoder->work);
        chunk->stalled = !encode_unlocked(job, force);
        if (encoder->failed)
            result = TK_WORKED_FAILED;
        else if (is_damaged(job->view))
            result = TK_WORKED_DAMAGED;
        else if (chunk->next == chunk->end || is_over(job))
            result = TK_WORKED_CHUNK;
    } while (result == TK_WORKED_NOTHING && !chunk->stalled && find_buffer(job, 0));
    encoder->active--;
    chunk->busy = 0;
    return result;
}

/* -- when there is nothing to encode; the caller holds the lock -----------------------------------------------------
 */

/* A chunk that the program has not filled for `age` nanoseconds is written as it is, so that little is lost with the
 * machine; at the end all are. */
static struct tk_chunk *stale_chunk(struct tk_encoder *encoder, uint64_t age, int all)
{
    uint64_t now = nanoseconds();
    for (uint32_t number = 0; number < encoder->stream_count; number++) {
        struct tk_stream_chunks *chunks = &encoder->streams[number];
        struct tk_chunk *chunk = chunks->open;
        if (!chunk || chunk->busy)
            continue;
        if (all)
            return chunk;
        if (chunk->records && !chunk->resume && now - chunk->began >= age && end_early(chunks, chunk))
            return chunk;
    }
    return NULL;
}

/* One worker sleeps until the program fills a buffer, unless some are encoding: these look for more after each buffer.
 * The others wait to be told by these. */
static void rest(struct tk_encoder *encoder, struct tk_exchange *exchange, uint32_t filled, uint64_t until)
{
    uint64_t now = nanoseconds();
    if (__atomic_load_n(&exchange->polled, __ATOMIC_RELAXED) && until > now + POLLED_EVERY)
        until = now + POLLED_EVERY;
    uint64_t left = until > now ? until - now : 0;
    if (encoder->active || encoder->watching) {
        const struct timespec end = {(time_t)(until / 1000000000u), (long)(until % 1000000000u)};
        encoder->waiting++;
        pthread_cond_timedwait(&encoder->work, &encoder->lock, &end);
        encoder->waiting--;
        return;
    }
    const struct timespec timeout = {(time_t)(left / 1000000000u), (long)(left % 1000000000u)};
    encoder->watching = 1;
    pthread_mutex_unlock(&encoder->lock);
    __atomic_store_n(&exchange->collector_sleeps, 1, __ATOMIC_SEQ_CST);
    futex(&exchange->filled, FUTEX_WAIT, filled, &timeout);
    __atomic_store_n(&exchange->collector_sleeps, 0, __ATOMIC_SEQ_CST);
    pthread_mutex_lock(&encoder->lock);
    encoder->watching = 0;
}

static enum tk_worked take(struct tk_encoder *encoder, struct tk_chunk *chunk, struct tk_chunk **ready)
{
    tk_chunk_detach(encoder, chunk);
    *ready = chunk;
    return TK_WORKED_CHUNK;
}

/* Whether there has been no buffer for a while that the program could fill or a worker encode. Both wait for ever then:
 * what the full ones say of themselves is not true. */
static int is_stuck(struct tk_encoder *encoder, struct tk_view *view)
{
    const uint32_t buffers = buffers_of(view);
    uint32_t full = 0;
    for (uint32_t number = 0; number < buffers; number++) {
        const uint32_t state = __atomic_load_n(&view->at.exchange->buffer[number].state, __ATOMIC_RELAXED);
        full += state == TK_FULL;
        if (state == TK_FREE)
            return encoder->stuck = 0;
    }
    if (!full)
        return encoder->stuck = 0;
    if (!encoder->stuck)
        encoder->stuck = nanoseconds();
    return nanoseconds() - encoder->stuck > STUCK_AFTER;
}

static enum tk_worked work_on(struct tk_job *job, int force, struct tk_chunk **ready)
{
    enum tk_worked result = fill_chunk(job, force);
    job->encoder->stuck = 0;
    return result == TK_WORKED_CHUNK ? take(job->encoder, job->chunk, ready) : result;
}

/* One look for something to do: encode, give up what stalls, take what is stale. */
static enum tk_worked step(struct tk_encoder *encoder, struct tk_view *view, uint64_t age, int *idle,
                           struct tk_chunk **ready)
{
    struct tk_job job = {.encoder = encoder, .view = view};
    int exited = has_exited(view);
    if (find_buffer(&job, 0))
        return work_on(&job, 0, ready);
    wake_program(encoder, view);
    *idle = 1;
    if (encoder->active)
        return TK_WORKED_NOTHING;
    /* A program that waits while nothing can be encoded would wait for ever: give up what stalls it. */
    int stuck = exited || __atomic_load_n(&view->at.exchange->waiting, __ATOMIC_SEQ_CST) > 0;
    if (stuck && find_buffer(&job, 1)) {
        *idle = 0;
        return work_on(&job, 1, ready);
    }
    struct tk_chunk *stale = stale_chunk(encoder, age, exited);
    if (stale)
        return take(encoder, stale, ready);
    if (!stuck)
        encoder->stuck = 0;
    else if (exited ? !tk_is_pristine(view) : is_stuck(encoder, view))
        tk_damage(view);
    return exited ? TK_WORKED_ALL : TK_WORKED_NOTHING;
}

/* Encode what the program hands over until a chunk is whole (`*ready`, the caller's alone), an image appears,
 * everything is done, or the time is up. Called by every worker. `age`: nanoseconds after which a chunk is taken as it
 * is. */
TK_EXPORT enum tk_worked tk_work(struct tk_encoder *encoder, struct tk_view *view, uint64_t age, uint64_t timeout,
                                 struct tk_chunk **ready)
{
    uint64_t until = nanoseconds() + timeout;
    enum tk_worked result = TK_WORKED_NOTHING;
    pthread_mutex_lock(&encoder->lock);
    while (result == TK_WORKED_NOTHING && !encoder->finished) {
        uint32_t filled = __atomic_load_n(&view->at.exchange->filled, __ATOMIC_SEQ_CST);
        int idle = 0;
        result = step(encoder, view, age, &idle, ready);
        if (encoder->failed)
            result = TK_WORKED_FAILED;
        else if (is_damaged(view) && result != TK_WORKED_CHUNK)
            result = TK_WORKED_DAMAGED;
        if (result == TK_WORKED_NOTHING && idle) {
            if (nanoseconds() >= until)
                break;
            rest(encoder, view->at.exchange, filled, until);
        }
    }
    if (encoder->finished || result == TK_WORKED_ALL) {
        encoder->finished = 1;
        result = is_damaged(view) ? TK_WORKED_DAMAGED : TK_WORKED_ALL;
        pthread_cond_broadcast(&encoder->work);
    }
    if (result == TK_WORKED_DAMAGED)
        pthread_cond_broadcast(&encoder->work);
    pthread_cond_signal(&encoder->work); /* another one is to watch the program */
    pthread_mutex_unlock(&encoder->lock);
    wake_program(encoder, view);
    return result;
}
