/* What workers do: take the program's full buffers, encode them, free them. Each worker fills one chunk at a time; a
 * chunk owns a range of its stream's buffers, so that the next chunk can be begun by another worker as soon as the
 * program has filled that range. A worker that finds no such buffer sleeps, so there are as many at work as it takes. */
#define _GNU_SOURCE
#include "encoder.h"

#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SHARE_EVERY 8 /* buffers after which a worker looks whether there is work for another one */

enum tk_worked {
    TK_WORKED_NOTHING, /* time is up */
    TK_WORKED_CHUNK,   /* a chunk is whole */
    TK_WORKED_IMAGE,   /* an image was registered that tk_encoder_add has not been told of */
    TK_WORKED_ALL,     /* the program is gone, and everything that it wrote is in chunks that were taken */
    TK_WORKED_FAILED,  /* out of memory */
};

struct tk_job {
    struct tk_encoder *encoder;
    struct tk_pool *pool;
    struct tk_chunk *chunk;
    struct tk_buffer *buffer;
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

static int has_exited(const struct tk_pool *pool)
{
    return (int)__atomic_load_n(&pool->exited, __ATOMIC_SEQ_CST);
}

static void wake_program(struct tk_encoder *encoder, struct tk_pool *pool)
{
    __atomic_store_n(&encoder->unwoken, 0, __ATOMIC_RELAXED);
    if (__atomic_load_n(&pool->waiting, __ATOMIC_SEQ_CST))
        futex(&pool->freed, FUTEX_WAKE, INT32_MAX, NULL);
}

/* Zero a buffer and hand it back. A program that waits is woken when it can go on for a while: to change between it and
 * the workers for each buffer costs them all. */
static void free_buffer(struct tk_encoder *encoder, struct tk_pool *pool, struct tk_buffer *buffer, uint64_t words)
{
    uint64_t dirty = words + TK_SLACK < pool->buffer_words ? words + TK_SLACK : pool->buffer_words;
    memset(tk_buffer_words(pool, buffer), 0, dirty * sizeof(uint64_t));
    buffer->stream = TK_NO_STREAM;
    buffer->words = 0;
    __atomic_store_n(&buffer->state, TK_FREE, __ATOMIC_RELEASE);
    __atomic_fetch_add(&pool->freed, 1, __ATOMIC_SEQ_CST);
    if (__atomic_add_fetch(&encoder->unwoken, 1, __ATOMIC_RELAXED) * 8 >= pool->buffers)
        wake_program(encoder, pool);
}

/* -- which buffer next; the caller holds the lock --------------------------------------------------------------- */

static int is_readable(const struct tk_buffer *buffer, int exited)
{
    uint32_t state = __atomic_load_n(&buffer->state, __ATOMIC_ACQUIRE);
    return state == TK_FULL || (exited && state == TK_OWNED);
}

/* The chunk that owns the buffer if the buffer is the next one that it needs, and no worker has it; NULL otherwise. */
static struct tk_chunk *owner(const struct tk_stream_chunks *chunks, uint64_t sequence, int force)
{
    for (struct tk_chunk *chunk = chunks->open; chunk; chunk = chunk->link)
        if (sequence < chunk->end)
            return sequence == chunk->next && !chunk->busy && (force || !chunk->stalled) ? chunk : NULL;
    return NULL;
}

/* Buffers of a chunk: for each worker there are to be two chunks in the pool, the threads of the program share it too. */
static uint64_t chunk_buffers(const struct tk_encoder *encoder, const struct tk_pool *pool)
{
    uint64_t streams = pool->streams < 16 ? pool->streams : 16, least = 1u << 18;
    uint64_t share = encoder->limit / streams, items = share > least ? share : least;
    uint64_t pooled = (uint64_t)pool->buffers / (2 * encoder->workers), buffers;
    buffers = (items < encoder->limit ? items : encoder->limit) / pool->buffer_words;
    buffers = buffers < pooled ? buffers : pooled;
    return buffers ? buffers : 1;
}

/* How far the chunks of a stream may run ahead of one that stands still, in chunks. */
static int is_far_ahead(const struct tk_encoder *encoder, const struct tk_stream_chunks *chunks, uint64_t length)
{
    return chunks->open && chunks->frontier - chunks->open->next >= 4 * length * encoder->workers;
}

/* The chunk that the buffer continues or begins; NULL if it is not its turn. */
static struct tk_chunk *chunk_for(struct tk_encoder *encoder, const struct tk_pool *pool,
                                  const struct tk_buffer *buffer, uint32_t stream, int force)
{
    struct tk_stream_chunks *chunks = tk_stream_chunks(encoder, stream);
    if (!chunks) {
        encoder->failed = 1;
        return NULL;
    }
    if (buffer->sequence != chunks->frontier)
        return owner(chunks, buffer->sequence, force);
    uint64_t length = chunk_buffers(encoder, pool);
    if (is_far_ahead(encoder, chunks, length))
        return NULL;
    struct tk_chunk *chunk = tk_chunk_begin(encoder, stream, buffer->thread, buffer->kind);
    if (!chunk) {
        encoder->failed = 1;
        return NULL;
    }
    chunk->next = chunks->frontier;
    chunk->end = chunks->frontier += length;
    chunk->began = nanoseconds();
    return chunk;
}

/* Find a buffer that can be encoded, `job->chunk`'s next one if it is set: buffers are used in turn, so it is seldom far
 * from the last one. */
static int find_buffer(struct tk_job *job, int force)
{
    struct tk_encoder *encoder = job->encoder;
    struct tk_pool *pool = job->pool;
    const int exited = has_exited(pool);
    uint32_t buffers = __atomic_load_n(&pool->buffers, __ATOMIC_ACQUIRE);
    uint32_t first = job->chunk ? (uint32_t)(job->buffer - pool->buffer) + 1 : encoder->cursor;
    for (uint32_t step = 0; step < buffers; step++) {
        struct tk_buffer *buffer = &pool->buffer[(first + step) % buffers];
        if (!is_readable(buffer, exited))
            continue;
        uint32_t stream = __atomic_load_n(&buffer->stream, __ATOMIC_ACQUIRE);
        if (stream == TK_NO_STREAM) /* taken at the moment the program died */
            continue;
        if (job->chunk ? stream != job->chunk->stream || buffer->sequence != job->chunk->next
                       : !(job->chunk = chunk_for(encoder, pool, buffer, stream, force)))
            continue;
        job->buffer = buffer;
        encoder->cursor = (uint32_t)(buffer - pool->buffer);
        return 1;
    }
    return 0;
}

/* Whether another worker would find something to do. */
static int is_work_left(const struct tk_encoder *encoder, const struct tk_pool *pool)
{
    const int exited = has_exited(pool);
    uint32_t buffers = __atomic_load_n(&pool->buffers, __ATOMIC_ACQUIRE);
    for (uint32_t number = 0; number < buffers; number++) {
        const struct tk_buffer *buffer = &pool->buffer[number];
        if (!is_readable(buffer, exited))
            continue;
        uint32_t stream = __atomic_load_n(&buffer->stream, __ATOMIC_ACQUIRE);
        if (stream == TK_NO_STREAM)
            continue;
        if (stream >= encoder->stream_count || buffer->sequence == encoder->streams[stream].frontier ||
            owner(&encoder->streams[stream], buffer->sequence, 0))
            return 1;
    }
    return 0;
}

/* -- encoding; the caller does not hold the lock ------------------------------------------------------------------- */

static void note_unloads(struct tk_encoder *encoder, const struct tk_pool *pool)
{
    for (uint32_t index = 0; index < encoder->range_count; index++) {
        uint32_t unloaded = __atomic_load_n(&pool->image[index].unloaded, __ATOMIC_ACQUIRE);
        __atomic_store_n(&encoder->ranges[index].unloaded, unloaded, __ATOMIC_RELEASE);
    }
}

/* Encode what is left of the job's buffer. False if it stops at an id that nobody knows yet; with `force`, such a rest is
 * dropped and counted, since records of unknown length cannot be passed over. */
static int encode_buffer(const struct tk_job *job, int force)
{
    struct tk_chunk *chunk = job->chunk;
    const uint64_t *first = tk_buffer_words(job->pool, job->buffer);
    int full = __atomic_load_n(&job->buffer->state, __ATOMIC_RELAXED) == TK_FULL;
    uint64_t words = full ? job->buffer->words : job->pool->buffer_words;
    chunk->resume += tk_encode(job->encoder, chunk, first + chunk->resume, words - chunk->resume, job->buffer->epoch);
    int complete = chunk->resume == words || first[chunk->resume] == 0;
    if (!complete && !force)
        return 0;
    if (!complete && first[chunk->resume] >= TK_FIRST_PATH && job->encoder->images == job->pool->images)
        for (uint64_t left = chunk->resume; left < words && first[left] != 0; left++)
            chunk->unknown++;
    chunk->resume = 0;
    chunk->next++;
    free_buffer(job->encoder, job->pool, job->buffer, words);
    return 1;
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
        if (__atomic_load_n(&job->pool->images, __ATOMIC_ACQUIRE) != encoder->images) {
            result = TK_WORKED_IMAGE;
            break;
        }
        note_unloads(encoder, job->pool);
        if (encoder->waiting && chunk->next % SHARE_EVERY == 0 && is_work_left(encoder, job->pool))
            pthread_cond_signal(&encoder->work);
        pthread_mutex_unlock(&encoder->lock);
        int done = encode_buffer(job, force);
        pthread_mutex_lock(&encoder->lock);
        chunk->stalled = !done;
        if (encoder->failed)
            result = TK_WORKED_FAILED;
        else if (chunk->next == chunk->end)
            result = TK_WORKED_CHUNK;
    } while (result == TK_WORKED_NOTHING && !chunk->stalled && find_buffer(job, 0));
    encoder->active--;
    chunk->busy = 0;
    return result;
}

/* -- when there is nothing to encode; the caller holds the lock ----------------------------------------------------- */

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
        if (!chunk->link && chunk->records && !chunk->resume && now - chunk->began >= age) {
            chunks->frontier = chunk->next;
            return chunk;
        }
    }
    return NULL;
}

/* One worker sleeps until the program fills a buffer, unless some are encoding: these look for more after each buffer.
 * The others wait to be told by these. */
static void rest(struct tk_encoder *encoder, struct tk_pool *pool, uint32_t filled, uint64_t until)
{
    uint64_t now = nanoseconds(), left = until > now ? until - now : 0;
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
    __atomic_store_n(&pool->collector_sleeps, 1, __ATOMIC_SEQ_CST);
    futex(&pool->filled, FUTEX_WAIT, filled, &timeout);
    __atomic_store_n(&pool->collector_sleeps, 0, __ATOMIC_SEQ_CST);
    pthread_mutex_lock(&encoder->lock);
    encoder->watching = 0;
}

static enum tk_worked take(struct tk_encoder *encoder, struct tk_chunk *chunk, struct tk_chunk **ready)
{
    tk_chunk_detach(encoder, chunk);
    *ready = chunk;
    return TK_WORKED_CHUNK;
}

/* One look for something to do: encode, give up what stalls, take what is stale. */
static enum tk_worked step(struct tk_encoder *encoder, struct tk_pool *pool, uint64_t age, int *idle,
                           struct tk_chunk **ready)
{
    struct tk_job job = {encoder, pool, NULL, NULL};
    int exited = has_exited(pool);
    if (find_buffer(&job, 0)) {
        enum tk_worked result = fill_chunk(&job, 0);
        return result == TK_WORKED_CHUNK ? take(encoder, job.chunk, ready) : result;
    }
    wake_program(encoder, pool);
    *idle = 1;
    if (encoder->active)
        return TK_WORKED_NOTHING;
    /* A program that waits while nothing can be encoded would wait for ever: give up what stalls it. */
    int stuck = exited || __atomic_load_n(&pool->waiting, __ATOMIC_SEQ_CST) > 0;
    if (stuck && find_buffer(&job, 1)) {
        *idle = 0;
        enum tk_worked result = fill_chunk(&job, 1);
        return result == TK_WORKED_CHUNK ? take(encoder, job.chunk, ready) : result;
    }
    struct tk_chunk *stale = stale_chunk(encoder, age, exited);
    if (stale)
        return take(encoder, stale, ready);
    return exited ? TK_WORKED_ALL : TK_WORKED_NOTHING;
}

/* Encode what the program hands over until a chunk is whole (`*ready`, the caller's alone), an image appears, everything
 * is done, or the time is up. Called by every worker. `age`: nanoseconds after which a chunk is taken as it is. */
TK_EXPORT enum tk_worked tk_work(struct tk_encoder *encoder, struct tk_pool *pool, uint64_t age, uint64_t timeout,
                                 struct tk_chunk **ready)
{
    uint64_t until = nanoseconds() + timeout;
    enum tk_worked result = TK_WORKED_NOTHING;
    pthread_mutex_lock(&encoder->lock);
    while (result == TK_WORKED_NOTHING && !encoder->finished) {
        uint32_t filled = __atomic_load_n(&pool->filled, __ATOMIC_SEQ_CST);
        int idle = 0;
        result = step(encoder, pool, age, &idle, ready);
        if (encoder->failed)
            result = TK_WORKED_FAILED;
        if (result == TK_WORKED_NOTHING && idle) {
            if (nanoseconds() >= until)
                break;
            rest(encoder, pool, filled, until);
        }
    }
    if (encoder->finished || result == TK_WORKED_ALL) {
        encoder->finished = 1;
        result = TK_WORKED_ALL;
        pthread_cond_broadcast(&encoder->work);
    }
    pthread_cond_signal(&encoder->work); /* another one is to watch the program */
    pthread_mutex_unlock(&encoder->lock);
    wake_program(encoder, pool);
    return result;
}
