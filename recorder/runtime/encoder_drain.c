/* The collector's side of the pool: takes full buffers in the order of their streams, encodes and frees them. */
#define _GNU_SOURCE
#include "encoder.h"

#include <linux/futex.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum tk_drained {
    TK_DRAINED_NOTHING, /* time is up */
    TK_DRAINED_CHUNK,   /* a stream's chunk is complete */
    TK_DRAINED_IMAGE,   /* an image was registered that tk_encoder_add has not been told of */
    TK_DRAINED_ALL,     /* the program is gone and everything it wrote is encoded */
    TK_DRAINED_FAILED,  /* out of memory */
};

/* What Python reads of the pool's header. */
struct tk_pool_status {
    uint32_t mode, owner, images, images_lost, streams, buffers;
    uint64_t waited, waits, unrecorded;
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

/* Bytes of a pool with buffers of that many words; the buffers beyond the first few cost nothing until threads
 * need them. */
TK_EXPORT uint64_t tk_pool_bytes(uint32_t buffer_words, uint64_t area_bytes)
{
    uint64_t header = (sizeof(struct tk_pool) + 4095) & ~(uint64_t)4095;
    return header + area_bytes + (uint64_t)TK_MAX_BUFFERS * buffer_words * sizeof(uint64_t);
}

/* Lay out a zeroed mapping of tk_pool_bytes; `area_bytes` is a multiple of the page size. */
TK_EXPORT void tk_pool_format(struct tk_pool *pool, uint32_t buffer_words, uint32_t buffers, uint64_t area_bytes)
{
    pool->bytes = tk_pool_bytes(buffer_words, area_bytes);
    pool->area_offset = (sizeof(struct tk_pool) + 4095) & ~(uint64_t)4095;
    pool->area_bytes = area_bytes;
    pool->buffers_offset = pool->area_offset + area_bytes;
    pool->buffer_words = buffer_words;
    pool->buffers = buffers;
    pool->streams = 1;
    for (uint32_t number = 0; number < TK_MAX_BUFFERS; number++)
        pool->buffer[number].stream = TK_NO_STREAM;
    pool->magic = TK_POOL_MAGIC;
}

/* Called in the collector: allocate the pages of the first `buffers` buffers, so that the program need not. */
TK_EXPORT void tk_pool_adopt(struct tk_pool *pool, uint32_t buffers)
{
    __atomic_store_n(&pool->collector, (uint32_t)getpid(), __ATOMIC_SEQ_CST);
#ifdef MADV_POPULATE_WRITE
    madvise((char *)pool + pool->buffers_offset, (size_t)buffers * pool->buffer_words * 8, MADV_POPULATE_WRITE);
#else
    (void)buffers;
#endif
}

static void wake_both(struct tk_pool *pool)
{
    __atomic_fetch_add(&pool->filled, 1, __ATOMIC_SEQ_CST);
    __atomic_fetch_add(&pool->freed, 1, __ATOMIC_SEQ_CST);
    futex(&pool->filled, FUTEX_WAKE, INT32_MAX, NULL);
    futex(&pool->freed, FUTEX_WAKE, INT32_MAX, NULL);
}

/* The program is gone: what its threads own may be encoded. */
TK_EXPORT void tk_pool_exited(struct tk_pool *pool)
{
    __atomic_store_n(&pool->exited, 1, __ATOMIC_SEQ_CST);
    wake_both(pool);
}

/* Nobody will encode any more: the program goes on in scratch memory. */
TK_EXPORT void tk_pool_discard(struct tk_pool *pool)
{
    __atomic_store_n(&pool->mode, TK_DISCARD, __ATOMIC_SEQ_CST);
    wake_both(pool);
}

TK_EXPORT void tk_pool_status(const struct tk_pool *pool, struct tk_pool_status *status)
{
    *status = (struct tk_pool_status){pool->mode, pool->owner, pool->images, pool->images_lost, pool->streams,
                                      pool->buffers, pool->waited, pool->waits, pool->unrecorded};
}

/* The exit status as the program said it, -1 if it did not. */
TK_EXPORT int tk_pool_exit_status(const struct tk_pool *pool)
{
    return (pool->status & 256) ? (int)(pool->status & 255) : -1;
}

/* The offset in the pool of an image's registration, struct tk_pool_image. */
TK_EXPORT uint64_t tk_pool_image_offset(const struct tk_pool *pool, uint32_t number)
{
    return (uint64_t)((const char *)&pool->image[number] - (const char *)pool);
}

static void free_buffer(struct tk_pool *pool, struct tk_buffer *buffer, uint64_t words)
{
    uint64_t dirty = words + TK_SLACK < pool->buffer_words ? words + TK_SLACK : pool->buffer_words;
    memset(tk_buffer_words(pool, buffer), 0, dirty * sizeof(uint64_t));
    buffer->stream = TK_NO_STREAM;
    buffer->words = 0;
    __atomic_store_n(&buffer->state, TK_FREE, __ATOMIC_RELEASE);
    __atomic_fetch_add(&pool->freed, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&pool->waiting, __ATOMIC_SEQ_CST))
        futex(&pool->freed, FUTEX_WAKE, INT32_MAX, NULL);
}

static void note_unloads(struct tk_encoder *encoder, const struct tk_pool *pool)
{
    for (uint32_t index = 0; index < encoder->range_count; index++)
        encoder->ranges[index].unloaded = __atomic_load_n(&pool->image[index].unloaded, __ATOMIC_ACQUIRE);
}

/* Encode what is left of a stream's next buffer. False if it stops at an id that nobody knows yet; with `force`, such a
 * rest is dropped and counted, since records of unknown length cannot be passed over. */
static int encode_buffer(struct tk_encoder *encoder, struct tk_encoded *stream, const struct tk_pool *pool,
                         const struct tk_buffer *buffer, uint64_t words, int force)
{
    const uint64_t *first = tk_buffer_words((struct tk_pool *)pool, buffer);
    if (stream->records == 0 && stream->resume == 0)
        stream->began = nanoseconds();
    stream->resume += tk_encode(encoder, stream, first + stream->resume, words - stream->resume, buffer->epoch);
    int complete = stream->resume == words || first[stream->resume] == 0;
    if (!complete && !force) {
        stream->stalled = 1;
        return 0;
    }
    if (!complete && first[stream->resume] >= TK_FIRST_PATH && encoder->images == pool->images) {
        uint64_t left = stream->resume;
        while (left < words && first[left] != 0)
            left++;
        encoder->unknown += left - stream->resume;
    }
    stream->resume = 0;
    stream->expected = buffer->sequence + 1;
    return 1;
}

static uint32_t chunk_limit(const struct tk_encoder *encoder, const struct tk_pool *pool)
{
    uint32_t share = encoder->limit / (pool->streams < 16 ? pool->streams : 16);
    return share > 1u << 18 ? share : encoder->limit < 1u << 18 ? encoder->limit : 1u << 18;
}

/* One pass over the buffers in `state`; sets `*progress` if any could be encoded. */
static enum tk_drained pass(struct tk_encoder *encoder, struct tk_pool *pool, uint32_t state, int force,
                            struct tk_encoded **ready, int *progress)
{
    uint32_t buffers = __atomic_load_n(&pool->buffers, __ATOMIC_ACQUIRE);
    for (uint32_t number = 0; number < buffers; number++) {
        struct tk_buffer *buffer = &pool->buffer[number];
        if (__atomic_load_n(&buffer->state, __ATOMIC_ACQUIRE) != state)
            continue;
        uint32_t name = __atomic_load_n(&buffer->stream, __ATOMIC_ACQUIRE);
        if (name == TK_NO_STREAM)
            continue; /* taken at the moment the program died */
        if (__atomic_load_n(&pool->images, __ATOMIC_ACQUIRE) != encoder->images)
            return TK_DRAINED_IMAGE;
        note_unloads(encoder, pool);
        struct tk_encoded *stream = tk_encoder_stream(encoder, name, buffer->thread, buffer->kind);
        if (!stream)
            return TK_DRAINED_FAILED;
        if (buffer->sequence != stream->expected || (stream->stalled && !force))
            continue;
        uint64_t words = state == TK_FULL ? buffer->words : pool->buffer_words;
        if (!encode_buffer(encoder, stream, pool, buffer, words, force))
            continue;
        if (encoder->failed)
            return TK_DRAINED_FAILED;
        stream->stalled = 0;
        *progress = 1;
        free_buffer(pool, buffer, words);
        if (stream->records + stream->words >= chunk_limit(encoder, pool)) {
            *ready = stream;
            return TK_DRAINED_CHUNK;
        }
    }
    return TK_DRAINED_NOTHING;
}

static void sleep_until_filled(struct tk_pool *pool, uint32_t filled, uint64_t left)
{
    const struct timespec timeout = {(time_t)(left / 1000000000u), (long)(left % 1000000000u)};
    __atomic_store_n(&pool->collector_sleeps, 1, __ATOMIC_SEQ_CST);
    futex(&pool->filled, FUTEX_WAIT, filled, &timeout);
    __atomic_store_n(&pool->collector_sleeps, 0, __ATOMIC_SEQ_CST);
}

/* Encode what the program hands over until a chunk is complete, an image appears, everything is done, or the time is
 * up. `*ready` is the stream of a complete chunk. */
TK_EXPORT enum tk_drained tk_drain(struct tk_encoder *encoder, struct tk_pool *pool, uint64_t timeout,
                                   struct tk_encoded **ready)
{
    uint64_t deadline = nanoseconds() + timeout;
    int stuck = 0;
    for (;;) {
        int progress = 0;
        uint32_t filled = __atomic_load_n(&pool->filled, __ATOMIC_SEQ_CST);
        int exited = (int)__atomic_load_n(&pool->exited, __ATOMIC_SEQ_CST);
        enum tk_drained result = pass(encoder, pool, TK_FULL, stuck, ready, &progress);
        if (result != TK_DRAINED_NOTHING)
            return result;
        if (!progress && exited) {
            result = pass(encoder, pool, TK_OWNED, stuck, ready, &progress);
            if (result != TK_DRAINED_NOTHING)
                return result;
            if (!progress && stuck)
                return TK_DRAINED_ALL;
        }
        stuck = !progress && exited;
        if (progress || exited)
            continue;
        uint64_t now = nanoseconds();
        if (now >= deadline)
            return TK_DRAINED_NOTHING;
        /* A program that waits while nothing can be encoded would wait for ever: give up what stalls it. */
        stuck = __atomic_load_n(&pool->waiting, __ATOMIC_SEQ_CST) > 0;
        if (!stuck)
            sleep_until_filled(pool, filled, deadline - now);
    }
}

/* The next stream from `number` on whose chunk holds records and was begun `age` nanoseconds ago or earlier, else NULL. */
TK_EXPORT struct tk_encoded *tk_chunk_older(struct tk_encoder *encoder, uint32_t number, uint64_t age)
{
    uint64_t now = nanoseconds();
    for (; number < encoder->stream_count; number++) {
        struct tk_encoded *stream = encoder->streams[number];
        if (stream && stream->records && now - stream->began >= age)
            return stream;
    }
    return NULL;
}

TK_EXPORT uint32_t tk_chunk_stream(const struct tk_encoded *stream)
{
    return stream->number;
}
