/* The collector's side of the pool's header. */
#define _GNU_SOURCE
#include "encoder.h"

#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* What Python reads of the pool's header. */
struct tk_pool_status {
    uint32_t mode, owner, images, images_lost, streams, buffers;
    uint64_t waited, waits, unrecorded;
};

static void futex(uint32_t *word, int operation, uint32_t value)
{
    syscall(SYS_futex, word, operation, value, NULL, NULL, 0);
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
    futex(&pool->filled, FUTEX_WAKE, INT32_MAX);
    futex(&pool->freed, FUTEX_WAKE, INT32_MAX);
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
